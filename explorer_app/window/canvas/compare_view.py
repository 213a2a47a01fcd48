"""Comparison view over the canvas: the picture before a step, or two pictures with a divider."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

from explorer_app.window.canvas.canvas_view import is_smooth
from explorer_app.window.canvas.frame_image import shrunk
from explorer_app.window.canvas.picture_stage import PictureStage
from explorer_app.window.look import fonts, theme

_STEP, _FINE_STEP = 0.05, 0.01
_GRIP_PX = 9.0
_TEXT_MARGIN_PX = _GRIP_PX + 5.0
"""Between the text of a picture that is being rendered and the divider."""


@dataclass(slots=True)
class Side:
    """A picture and its label; the picture is None until it is rendered."""

    name: str
    image: QImage | None = None


class CompareView(QWidget):
    """Covers the canvas during a comparison and shows pictures in the canvas's place.

    With two pictures, a divider separates left and right. Drag it, or move it with the arrow keys (Shift moves it
    finely); a double-click centres it. Escape ends the comparison. The wheel and the middle button zoom and pan as on
    the canvas.

    Signals
    -------
    left()
        The comparison of two pictures was closed.
    """

    left = Signal()

    def __init__(self, stage: PictureStage) -> None:
        super().__init__(stage)
        self._stage = stage
        self._sides: tuple[Side, ...] = ()
        self._hint = ""
        self._share = 0.5
        self.setObjectName("compare-view")
        self.setAccessibleName("Comparison")
        self.hide()
        stage.resized.connect(self._place)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The compared pictures: none, one, or two."""
        return self._sides

    @property
    def share(self) -> float:
        """Position of the divider, as a share of the picture's width in 0..1."""
        return self._share

    def show_one(self, side: Side, hint: str) -> None:
        """Show one picture in place of the canvas's; mouse events still reach the canvas."""
        self._show((side,), hint)

    def show_two(self, first: Side, second: Side) -> None:
        """Show two pictures with a divider, and take the keyboard focus."""
        is_new = len(self._sides) != 2
        self._show((first, second), "drag the line, Escape leaves")
        if is_new:
            self._share = 0.5
            self.setFocus()

    def leave(self) -> None:
        """Hide the comparison, so that the canvas is visible again."""
        had_focus = self.hasFocus()
        self._sides = ()
        self.hide()
        if had_focus:
            self._stage.setFocus()

    def _show(self, sides: tuple[Side, ...], hint: str) -> None:
        self._sides, self._hint = sides, hint
        are_two = len(sides) == 2
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not are_two)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus if are_two else Qt.FocusPolicy.NoFocus)
        self.setCursor(Qt.CursorShape.SplitHCursor if are_two else Qt.CursorShape.ArrowCursor)
        self.setAccessibleDescription(" and ".join(side.name for side in sides))
        self._place()
        self.show()
        self.raise_()
        self.update()

    @Slot()
    def _place(self) -> None:
        self.setGeometry(self._stage.rect())
        if self.isVisible():
            self.raise_()  # above what the canvas places again, such as the badge of a layer

    # -- mouse and keyboard -----------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Move the divider to the pointer; pass the middle button to the canvas."""
        if event.button() == Qt.MouseButton.LeftButton:
            self._bring_line(event.position().x())
        else:
            event.ignore()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Move the divider with the pointer."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._bring_line(event.position().x())
        else:
            event.ignore()
            self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Leave the line where it is."""
        event.setAccepted(event.button() == Qt.MouseButton.LeftButton)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Centre the divider."""
        self._set_share(0.5)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Move the divider, or end the comparison."""
        step = _FINE_STEP if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else _STEP
        shares = {
            Qt.Key.Key_Left: self._share - step,
            Qt.Key.Key_Right: self._share + step,
            Qt.Key.Key_Home: 0.0,
            Qt.Key.Key_End: 1.0,
        }
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
            self.left.emit()
        elif event.key() in shares:
            self._set_share(shares[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def _bring_line(self, x: float) -> None:
        rect = self._stage.picture_rect()
        self._set_share((x - rect.left()) / max(rect.width(), 1.0))

    def _set_share(self, share: float) -> None:
        self._share = min(max(share, 0.0), 1.0)
        self.update()

    # -- painting ---------------------------------------------------------------------------------------------------

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the background, the pictures and the caption."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(tokens.ground))
        well = QPainterPath()
        well.addRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.DOCK_RADIUS, theme.DOCK_RADIUS)
        painter.fillPath(well, QColor(tokens.well))
        painter.setClipPath(well)
        target = self._stage.picture_rect()
        x = target.left() + self._share * target.width() if len(self._sides) == 2 else target.right()
        parts = (
            QRectF(target.topLeft(), QPointF(x, target.bottom())),
            QRectF(QPointF(x, target.top()), target.bottomRight()),
        )
        for side, part in zip(self._sides, parts, strict=False):
            self._paint_side(painter, side, target, part)
        if len(self._sides) == 2:
            painter.setPen(QPen(QColor(tokens.accent), 2))
            painter.drawLine(QPointF(x, target.top()), QPointF(x, target.bottom()))
            painter.setBrush(QColor(tokens.accent))
            painter.drawEllipse(QPointF(x, target.center().y()), _GRIP_PX, _GRIP_PX)
        self._paint_caption(painter)
        painter.end()

    def _paint_side(self, painter: QPainter, side: Side, target: QRectF, part: QRectF) -> None:
        painter.save()
        painter.setClipRect(part, Qt.ClipOperation.IntersectClip)
        if side.image is None:
            painter.setPen(QColor(theme.current().dim))
            self._paint_waiting(painter, side, part)
        else:
            image = side.image
            wide = target.width() * self.devicePixelRatioF()
            if wide < 0.5 * image.width():
                image = shrunk(image, round(wide))
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, is_smooth(wide / image.width()))
            painter.drawImage(target, image)
        painter.restore()

    def _paint_waiting(self, painter: QPainter, side: Side, part: QRectF) -> None:
        """Paint that a picture is being rendered, clear of the divider and its grip."""
        room = part.adjusted(_TEXT_MARGIN_PX, 0.0, -_TEXT_MARGIN_PX, 0.0)
        text = f"{side.name} is being rendered"
        how = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
        needed = painter.boundingRect(QRectF(0.0, 0.0, room.width(), 0.0), how, text).size()
        if needed.width() > room.width() or needed.height() > room.height():
            text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
            how = Qt.AlignmentFlag.AlignCenter
        if room.width() > painter.fontMetrics().horizontalAdvance("…"):
            painter.drawText(room, how, text)

    def _paint_caption(self, painter: QPainter) -> None:
        """Paint both labels below the picture, with the available gestures between them."""
        tokens = theme.current()
        line = self._stage.caption_rect()
        is_over_picture = line.intersects(self._stage.picture_rect())
        if is_over_picture:
            painter.fillRect(line.adjusted(-theme.px(12), 0, theme.px(12), 0), theme.alpha(tokens.well, 0.8))
        painter.setFont(fonts.caption())
        metrics = painter.fontMetrics()
        middle = Qt.AlignmentFlag.AlignVCenter
        if len(self._sides) == 1:
            painter.setPen(QColor(tokens.strong))
            words = f"{self._sides[0].name} · {self._hint}"
            cut = metrics.elidedText(words, Qt.TextElideMode.ElideRight, int(line.width()))
            painter.drawText(line, middle | Qt.AlignmentFlag.AlignLeft, cut)
            return
        room = int(max(0.0, line.width() - metrics.horizontalAdvance(self._hint)) / 2) - theme.px(16)
        if room < theme.px(60):
            room = int(line.width() / 2) - theme.px(8)
        else:
            painter.setPen(QColor(tokens.dim))
            painter.drawText(line, Qt.AlignmentFlag.AlignCenter, self._hint)
        painter.setPen(QColor(tokens.strong))
        ends = (("A", Qt.AlignmentFlag.AlignLeft), ("B", Qt.AlignmentFlag.AlignRight))
        for side, (letter, end) in zip(self._sides, ends, strict=True):
            cut = metrics.elidedText(f"{letter} · {side.name}", Qt.TextElideMode.ElideRight, room)
            painter.drawText(line, middle | end, cut)
