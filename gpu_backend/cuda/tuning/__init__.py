"""The search for tiles on this GPU."""
