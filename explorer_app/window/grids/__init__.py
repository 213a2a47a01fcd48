"""Grids in place of the picture: variations and style mixes."""
