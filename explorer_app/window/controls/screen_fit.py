"""Sizes that fit on the screen."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QDialog

FRAME = (16, 48)
"""Allowance for the window manager's frame, in px; its true size is unknown until the window is shown."""


def fit_to_screen(dialog: QDialog) -> None:
    """Make a dialog that is not shown yet no larger than the screen of its window."""
    owner = dialog.parentWidget()
    screen = dialog.screen() if owner is None else owner.window().screen()
    dialog.resize(dialog.size().boundedTo(screen.availableGeometry().size() - QSize(*FRAME)))
