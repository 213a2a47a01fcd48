"""The model panel, its words and the menu of recent models."""
