"""Controls that no library has, and the ones built from them: sliders, numbers, popups, rows."""
