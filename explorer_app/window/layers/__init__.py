"""The layers panel: which layer is shown instead of the picture, how, and what is in it."""
