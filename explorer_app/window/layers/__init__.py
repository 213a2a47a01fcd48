"""The layers panel: selects a layer for the canvas, and shows its statistics and spectrum."""
