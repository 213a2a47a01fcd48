"""The main window: top bar, status bar, commands and the table of docks."""
