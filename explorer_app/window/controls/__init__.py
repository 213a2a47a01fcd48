"""Custom controls: sliders, number fields, popups, labels and rows built from them."""
