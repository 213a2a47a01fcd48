"""The sliders panel: directions with their rows, and every dimension of w."""
