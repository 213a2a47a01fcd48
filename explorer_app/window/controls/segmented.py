"""A segmented control: a few exclusive choices side by side."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QContextMenuEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from explorer_app.window.controls.parameter_menu import open_parameter_menu
from explorer_app.window.look import theme


class Segment(QRadioButton):
    """One choice: a radio button with a custom look, and standard keyboard and screen reader support."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size of the text with padding."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + theme.px(12), theme.px(23))

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size of the text with minimal padding."""
        return QSize(self.fontMetrics().horizontalAdvance(self.text()) + theme.px(4), theme.px(23))

    def hitButton(self, pos: object) -> bool:  # noqa: N802
        """Make the whole segment clickable."""
        return True

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the segment, raised if it is checked."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        if self.isChecked() and self.isEnabled():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(
                QColor(tokens.edge) if tokens.name == "dark" else theme.mixed(tokens.edge, tokens.raised, 0.3)
            )
            painter.drawRoundedRect(rect, theme.RADIUS - 1, theme.RADIUS - 1)
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(rect, theme.RADIUS - 1, theme.RADIUS - 1)
        if not self.isEnabled():
            painter.setPen(theme.alpha(tokens.dim, 0.55))
        elif self.isChecked() or self.underMouse():
            painter.setPen(QColor(tokens.strong))
        else:
            painter.setPen(QColor(tokens.dim))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())
        painter.end()


class SegmentedControl(QWidget):
    """Choices side by side.

    Signals
    -------
    chosen(str)
        Key of the selected choice.
    """

    chosen = Signal(str)

    def __init__(self, choices: Sequence[tuple[str, str, str]], name: str, parent: QWidget | None = None) -> None:
        """Build the control from `choices` (key, label, tooltip); `name` is its accessible name."""
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self.path = ""
        """Path of the parameter that the choices set, for the context menu; empty without one."""
        self._group = QButtonGroup(self)
        self.segments: dict[str, Segment] = {}
        for key, words, tip in choices:
            segment = Segment(words, self)
            segment.setToolTip(tip)
            segment.setAccessibleName(f"{name}: {words}")
            segment.clicked.connect(lambda _=False, key=key: self.chosen.emit(key))
            self._group.addButton(segment)
            self.segments[key] = segment
            layout.addWidget(segment)

    def show_choice(self, key: str) -> None:
        """Show a choice without emitting."""
        if key in self.segments:
            self.segments[key].setChecked(True)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Offer to animate the choice, and to learn a controller that steps through all of them."""
        if self.path:
            open_parameter_menu(self, self.path, event.globalPos(), 0.0, len(self.segments) - 1.0)
        else:
            super().contextMenuEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the background of the segments."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.raised if tokens.name == "dark" else tokens.ground))
        painter.drawRoundedRect(QRectF(self.rect()), theme.RADIUS, theme.RADIUS)
        painter.end()
