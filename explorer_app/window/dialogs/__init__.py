"""Dialogs about the program: preferences, shortcuts, About, and the question before quitting."""
