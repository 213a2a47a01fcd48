"""The main window and what surrounds its docks."""
