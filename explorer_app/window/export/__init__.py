"""The export dialog and its list of keys."""
