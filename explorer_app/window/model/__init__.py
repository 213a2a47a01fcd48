"""The model panel, its texts, and the menus of devices and recent models."""
