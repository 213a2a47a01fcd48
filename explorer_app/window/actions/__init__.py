"""The table of actions, the QActions built from it, and the menu bar."""
