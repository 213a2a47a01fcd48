"""The export dialog and its list of keyframes."""
