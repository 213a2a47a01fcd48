"""A switch: a check box with a sliding knob, left for off and right for on."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QWidget

from explorer_app.window.look import ink, theme

_TRACK = (26, 14)
_SPACE = 6


class Switch(QCheckBox):
    """A switch with a label after it; both are clickable."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the switch and its label."""
        words = self.fontMetrics().horizontalAdvance(self.text())
        return QSize(theme.px(_TRACK[0] + _SPACE + 6) + words, theme.px(22))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the same."""
        return self.sizeHint()

    def hitButton(self, pos: QPoint) -> bool:  # noqa: N802 - Qt's name
        """Return whether a position is inside the switch or its label."""
        return self.rect().contains(pos)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the track, the knob and the label."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = theme.px(_TRACK[0]), theme.px(_TRACK[1])
        track = QRectF(1, (self.height() - height) / 2, width, height)
        radius = height / 2
        on, able = self.isChecked(), self.isEnabled()
        ground = QColor(tokens.accent if on else tokens.track)
        if not able:
            ground = theme.mixed(tokens.panel, tokens.track, 0.7)
        painter.setPen(QPen(QColor(tokens.accent if on and able else tokens.edge), 1))
        painter.setBrush(ground)
        painter.drawRoundedRect(track.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        knob = QPointF(track.right() - radius if on else track.left() + radius, track.center().y())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink.light() if able else QColor(tokens.edge))
        painter.drawEllipse(knob, radius - 2.5, radius - 2.5)
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.RADIUS, theme.RADIUS)
        faint = theme.mixed(tokens.dim, tokens.panel, 0.4)
        painter.setPen(QColor(tokens.strong if self.underMouse() else tokens.text) if able else faint)
        area = self.rect().adjusted(theme.px(_TRACK[0] + _SPACE), 0, 0, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, self.text())
        painter.end()
