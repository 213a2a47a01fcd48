"""What hands can do without an action, for the list of shortcuts."""

from __future__ import annotations

GESTURES: tuple[tuple[str, str], ...] = (
    ("Drag, arrow keys", "Walk the seed plane"),
    ("Shift", "Ten times finer"),
    ("Wheel", "Zoom at the pointer"),
    ("Space and drag, middle drag", "Pan"),
    ("Escape", "Cancel the drag and bring back what was"),
    ("Escape on the picture", "Show the picture, not a layer"),
    ("Double-click on a value", "Back to its neutral value"),
    ("Ctrl on a slider or a handle", "Snap"),
)
