"""The search for tiles on the GPU at hand."""
