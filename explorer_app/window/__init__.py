"""What is painted: the main window, its docks and its dialogs. Widgets emit intentions and obey; they never compute."""
