"""Says whether the loop closes, in the corner left of the ruler, and offers to close it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from explorer_app.session.timeline.seam import Seam
from explorer_app.window.look import fonts, theme


class SeamBadge(QWidget):
    """The verdict on the seam of what plays.

    Signals
    -------
    close_requested()
        The button was clicked.
    """

    close_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.label = QLabel()
        self.label.setFont(fonts.caption())
        self.close_button = QToolButton()
        self.close_button.setText("Close")
        self.close_button.setFont(fonts.caption())
        self.close_button.setToolTip(
            "Close the loop: each track gets at the end the value that it has at the start. What repeats gets the "
            "nearest period that goes into the loop."
        )
        self.close_button.setAccessibleName("Close the loop")
        theme.set_role(self.close_button, "flat")
        self.close_button.clicked.connect(self.close_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(8), 0, theme.px(4), 0)
        row.setSpacing(theme.px(4))
        row.addWidget(self.label)
        row.addStretch(1)
        row.addWidget(self.close_button)
        self.show_seam(None)

    def show_seam(self, seam: Seam | None) -> None:
        """Show whether value and velocity meet; None where nothing is repeated."""
        self.label.setText("" if seam is None else _text(seam))
        self.label.setToolTip("" if seam is None else _tip(seam))
        self.close_button.setVisible(seam is not None and not seam.value_meets)
        is_good = seam is not None and seam.velocity_meets and not seam.only_repeats
        theme.set_role(self.label, "good" if is_good else "dim")


def _text(seam: Seam) -> str:
    if not seam.value_meets:
        return "✗ loop jumps"
    if not seam.velocity_meets:
        return "✗ loop jerks"
    return "✓ loop repeats" if seam.only_repeats else "✓ loop closes"


def _tip(seam: Seam) -> str:
    if not seam.value_meets:
        return "The picture at the end is not that at the start: the loop jumps."
    if not seam.velocity_meets:
        return "The pictures meet, but move differently before and after: the loop jerks."
    if seam.only_repeats:
        return "A track that repeats jumps or jerks each time it begins again, at the end of the loop as within it."
    return "The loop repeats without a jump and without a jerk."
