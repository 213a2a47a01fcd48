"""One patch in the list: a lamp, the source, what it moves, its range, and a bar with the source's value."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QEnterEvent, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from explorer_app.inputs.sampler import Level
from explorer_app.inputs.sources import source_label
from explorer_app.session.patches import Patch
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import theme

_HEIGHT_PX = 40
_LAMP_PX = 8
_BAR_PX = 3
_TARGET_AT = 0.42
"""Where the parameter's name begins, as a share of the width: the same in every row."""

_NO_LEVEL = Level()


class PatchRow(QAbstractButton):
    """A patch; a click, Space or Enter selects it, arrow keys go on, Delete removes it.

    Signals
    -------
    moved_on(int)
        An arrow key moved the focus by this number of rows.
    removed()
        Delete was pressed.
    """

    moved_on = Signal(int)
    removed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._patch: Patch | None = None
        self._target = ""
        self._level = _NO_LEVEL
        self._colour = 0
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def show_patch(self, patch: Patch, target: str, colour: int) -> None:
        """Show a patch, the label of its parameter, and the colour of its kind of source."""
        self._patch, self._target, self._colour = patch, target, colour
        source = source_label(patch.source)
        verb = "adds to" if patch.mode == "add" else "moves"
        state = "" if patch.is_on else ", off"
        words = f"{source} {verb} {target}, {range_text(patch)}{state}"
        self.setAccessibleName(words)
        self.setToolTip(plain_tip(f"{words}. A click edits it, Delete removes it."))
        self.update()

    def show_level(self, level: Level) -> None:
        """Show the source's value."""
        if level != self._level:
            self._level = level
            self.update()

    @property
    def level(self) -> Level:
        """What is shown of the source."""
        return self._level

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the height of a line with a bar below."""
        return QSize(theme.px(240), theme.px(_HEIGHT_PX))

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return a width at which texts are elided."""
        return QSize(theme.px(160), theme.px(_HEIGHT_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Go on, remove, or select."""
        match event.key():
            case Qt.Key.Key_Down:
                self.moved_on.emit(1)
            case Qt.Key.Key_Up:
                self.moved_on.emit(-1)
            case Qt.Key.Key_Delete | Qt.Key.Key_Backspace:
                self.removed.emit()
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.click()
            case _:
                super().keyPressEvent(event)

    def enterEvent(self, event: QEnterEvent) -> None:  # noqa: N802 - Qt's name
        """Light up."""
        self.update()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Go dark."""
        self.update()
        super().leaveEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the lamp, the texts and the bar."""
        patch = self._patch
        if patch is None:
            return
        tokens, level = theme.current(), self._level
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 1.5, -0.5, -1.5)
        if self.isChecked() or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(tokens.raised if self.isChecked() else tokens.head))
            painter.drawRoundedRect(area, theme.RADIUS, theme.RADIUS)
        if self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent), 1))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(area, theme.RADIUS, theme.RADIUS)
        colour = QColor(theme.source_colour(self._colour) if patch.is_on else tokens.edge)
        margin, lamp, bar = theme.px(8), theme.px(_LAMP_PX), theme.px(_BAR_PX)
        line = QRectF(margin, 0, self.width() - 2 * margin, self.height() - theme.px(10))
        self._paint_lamp(painter, QPointF(line.left() + lamp / 2, line.center().y()), lamp, colour)
        self._paint_texts(painter, line.adjusted(lamp + theme.px(8), 0, 0, 0), patch)
        groove = QRectF(line.left() + lamp + theme.px(8), line.bottom(), line.width() - lamp - theme.px(8), bar)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(tokens.track))
        painter.drawRoundedRect(groove, bar / 2, bar / 2)
        if level.source is not None:
            painter.setBrush(theme.alpha(colour.name(), 0.45) if level.is_waiting else colour)
            painter.drawRoundedRect(
                QRectF(groove.topLeft(), QSize(1, bar).toSizeF()).adjusted(
                    0, 0, max(bar, groove.width() * level.source) - 1, 0
                ),
                bar / 2,
                bar / 2,
            )
        painter.end()

    def _paint_lamp(self, painter: QPainter, centre: QPointF, size: float, colour: QColor) -> None:
        """Paint a ring; filled once the source has sent something."""
        painter.setPen(QPen(colour, 1.5))
        is_heard = self._level.source is not None
        painter.setBrush(colour if is_heard else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(centre, size / 2 - 0.75, size / 2 - 0.75)

    def _paint_texts(self, painter: QPainter, area: QRectF, patch: Patch) -> None:
        tokens = theme.current()
        dim = QColor(tokens.dim)
        metrics = QFontMetrics(self.font())
        end = "pick up" if self._level.is_waiting else range_text(patch)
        painter.setPen(QColor(tokens.accent_text) if self._level.is_waiting else dim)
        flags = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area, flags | Qt.AlignmentFlag.AlignRight, end)
        half = _TARGET_AT * area.width()
        room = area.width() - half - metrics.horizontalAdvance(end) - theme.px(8)
        sign = "+" if patch.mode == "add" else "→"
        middle, right = Qt.TextElideMode.ElideMiddle, Qt.TextElideMode.ElideRight  # a source ends with its number
        painter.setPen(QColor(tokens.strong) if patch.is_on else dim)
        painter.drawText(area, flags, metrics.elidedText(source_label(patch.source), middle, round(half - theme.px(6))))
        painter.setPen(QColor(tokens.text) if patch.is_on else dim)
        painter.drawText(
            area.adjusted(half, 0, 0, 0), flags, metrics.elidedText(f"{sign} {self._target}", right, round(room))
        )


def range_text(patch: Patch) -> str:
    """Return the values at both ends: "−2 – 2"."""
    low, high = (f"{value:.4g}".replace("-", "−") for value in (patch.low, patch.high))
    return f"{low} – {high}"
