"""The library of kept pictures."""
