"""The table of actions, the QActions made of it, and the menu bar."""
