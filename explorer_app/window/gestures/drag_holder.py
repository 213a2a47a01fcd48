"""Widgets whose drag undo cancels."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class DragHolder(Protocol):
    """A widget that edits the session by a drag, and has the focus during it."""

    def undo_drag(self) -> bool:
        """End the drag, revert what it edited, and return whether it had edited anything; False without a drag."""
        ...


def undo_drag_of(widget: object) -> bool:
    """Cancel the drag of a widget; return whether it had edited anything. False for a widget without drags."""
    return isinstance(widget, DragHolder) and widget.undo_drag()
