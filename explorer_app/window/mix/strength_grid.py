"""The strength grid: one line of cells per mix source, painted by dragging."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QHelpEvent,
    QHideEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPixmap,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.value_slider import COMMIT_MS
from explorer_app.window.look import fonts, theme
from explorer_app.window.mix.mix_cells import GridShape, cell_colour, paint_picture, source_colour

Strengths = tuple[tuple[float, ...], ...]

COARSE_STEP, FINE_STEP = 0.1, 0.01

_LESS = (Qt.Key.Key_Minus, Qt.Key.Key_Underscore)
_AMOUNT = (Qt.Key.Key_Plus, Qt.Key.Key_Equal, Qt.Key.Key_Asterisk, *_LESS)
"""Keys that raise or lower a strength; with Shift many keyboards send other key codes."""


class StrengthGrid(QWidget):
    """A grid of sources by rows of w, with a strength in each cell.

    A press toggles a cell (a strength of 0.5 and more becomes 0, less becomes 1), and a drag paints that value over
    cells; the wheel changes the cell under the pointer. Arrow keys move the focused cell, Space toggles it, plus and
    minus change it, finely with Shift; Escape reverts a drag.

    Signals
    -------
    painted(object, bool)
        Strengths of all sources, a tuple of tuples; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    menu_requested(int, int, object)
        Source, row (-1 outside of the cells) and screen position of a right click or the menu key.
    pointed_at(int, int)
        Source and row under the pointer or with the focus; (-1, -1) for none.
    current_moved(int)
        The focused cell moved by key to this source.
    """

    painted = Signal(object, bool)
    gesture_cancelled = Signal()
    menu_requested = Signal(int, int, object)
    pointed_at = Signal(int, int)
    current_moved = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._strengths: Strengths = ()
        self._names: tuple[str, ...] = ()
        self._pictures: tuple[QPixmap | None, ...] = ()
        self._columns = 1
        self._resolutions: tuple[int, ...] = ()
        self._current = (0, 0)
        self._before: Strengths | None = None
        self._has_painted = False
        """Whether the active gesture has emitted strengths."""
        self._carried: float | None = None
        self._last_cell: tuple[int, int] | None = None
        self._key_held = False
        self._hover = (-1, -1)
        self._commit_timer = QTimer(self, singleShot=True, interval=COMMIT_MS)
        self._commit_timer.timeout.connect(self.finish)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Strength grid")

    @property
    def strengths(self) -> Strengths:
        """The shown strengths."""
        return self._strengths

    @property
    def current(self) -> tuple[int, int]:
        """Source and row of the focused cell."""
        return self._current

    def cell_rect(self, source: int, row: int) -> QRectF:
        """Return a cell's rectangle in widget coordinates."""
        return self._shape().cell(source, row)

    def picture_rect(self, source: int) -> QRectF:
        """Return the rectangle of a source's picture in widget coordinates."""
        return self._shape().picture(source)

    def show_rows(self, resolutions: Sequence[int]) -> None:
        """Set the resolution of each row of w."""
        self._resolutions = tuple(resolutions)
        self._columns = max(len(self._resolutions), 1)
        self.update()

    def show_sources(self, names: Sequence[str], strengths: Strengths) -> None:
        """Show sources without emitting; strengths are ignored during a drag."""
        if self._before is not None and len(names) == len(self._names) and self._carried is not None:
            return
        if self._before is not None and strengths != self._strengths:
            self._drop_gesture()
        resized = len(names) != len(self._names)
        before = (self._names, self._strengths, self._current)
        self._names = tuple(names)
        width = self._columns
        self._strengths = tuple(tuple(row[:width]) + (0.0,) * (width - len(row)) for row in strengths)
        self._current = (min(self._current[0], max(len(names) - 1, 0)), min(self._current[1], width - 1))
        if resized:
            self.updateGeometry()
            self.setFixedHeight(self.sizeHint().height())
        if (self._names, self._strengths, self._current) != before:
            self._describe_current()
            self.update()

    def show_pictures(self, pictures: Sequence[QPixmap | None]) -> None:
        """Show the sources' pictures, in order."""
        if tuple(pictures) != self._pictures:
            self._pictures = tuple(pictures)
            self.update()

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size with one line per source."""
        shape = self._shape()
        return QSize(theme.px(280), shape.pitch_y * len(self._names))

    def finish(self) -> None:
        """End the active gesture as a mouse release does."""
        has_painted = self._has_painted
        self._drop_gesture()
        if has_painted:  # also where the strengths are those of the start again
            self.painted.emit(self._strengths, True)

    def cancel(self) -> bool:
        """Restore the strengths before the active gesture; return False if no gesture is active."""
        if self._before is None:
            return False
        self._strengths = self._before
        self._drop_gesture()
        self.update()
        self.gesture_cancelled.emit()
        return True

    def undo_drag(self) -> bool:
        """End a drag and restore the strengths before it; return whether there was one."""
        return self._carried is not None and self.cancel()

    # --- gestures ---------------------------------------------------------------------------------------------------

    def _shape(self) -> GridShape:
        return GridShape(self.width(), self._columns)

    def _drop_gesture(self) -> None:
        self._before = None
        self._has_painted = False
        self._carried = None
        self._last_cell = None
        self._key_held = False
        self._commit_timer.stop()

    def _begin(self) -> None:
        self._commit_timer.stop()
        if self._before is None:
            self._before = self._strengths

    def _source_at(self, y: float) -> int:
        source = int(y // self._shape().pitch_y)
        return source if 0 <= source < len(self._names) and y >= 0 else -1

    def _cell_at(self, point: QPointF) -> tuple[int, int]:
        source = self._source_at(point.y())
        if source < 0 or not self._shape().left - 2 <= point.x() <= self.width():
            return -1, -1
        return source, self._shape().column_at(point.x())

    def _set(self, cells: Sequence[tuple[int, int]], strength: float) -> None:
        rows = [list(row) for row in self._strengths]
        for source, row in cells:
            rows[source][row] = strength
        strengths = tuple(tuple(row) for row in rows)
        if strengths != self._strengths:
            self._strengths = strengths
            self._has_painted = True
            self.update()
            self.painted.emit(strengths, False)
        self._describe_current()

    def _opposite(self, cell: tuple[int, int]) -> float:
        return 0.0 if self._strengths[cell[0]][cell[1]] >= 0.5 else 1.0

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Toggle the cell and begin a drag."""
        cell = self._cell_at(event.position())
        source = self._source_at(event.position().y())
        if source >= 0 and event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton):
            self._current = (source, max(cell[1], 0) if cell[0] >= 0 else self._current[1])
            self.update()
        if event.button() != Qt.MouseButton.LeftButton or cell[0] < 0:
            return
        self.finish()
        self._begin()
        self._carried = self._opposite(cell)
        self._last_cell = cell
        self._set([cell], self._carried)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Paint all cells between the last and the current position, so that fast drags leave no gaps."""
        if self._carried is None or self._last_cell is None:
            self._point(self._cell_at(event.position()), self._source_at(event.position().y()))
            return
        source = self._source_at(event.position().y())
        if source < 0:
            return
        cell = (source, self._shape().column_at(event.position().x()))
        steps = max(abs(cell[0] - self._last_cell[0]), abs(cell[1] - self._last_cell[1]), 1)
        way = [
            (
                round(self._last_cell[0] + (cell[0] - self._last_cell[0]) * step / steps),
                round(self._last_cell[1] + (cell[1] - self._last_cell[1]) * step / steps),
            )
            for step in range(steps + 1)
        ]
        self._last_cell = cell
        self._current = cell
        self._set(way, self._carried)
        self._point(cell, source)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """End the drag."""
        if event.button() == Qt.MouseButton.LeftButton and self._carried is not None:
            self.finish()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802
        """Handle a double-click as a second press."""
        self.mousePressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802
        """Request the source's menu."""
        if event.reason() == QContextMenuEvent.Reason.Mouse:
            source, where = self._source_at(event.pos().y()), event.globalPos()
            row = self._cell_at(QPointF(event.pos()))[1]
        else:
            source, row = self._current
            where = self.mapToGlobal(self.picture_rect(source).bottomLeft().toPoint())
        if 0 <= source < len(self._names):
            self.finish()
            self.menu_requested.emit(source, row, QPoint(where))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Change the strength of the cell under the pointer; elsewhere let the list scroll."""
        cell = self._cell_at(event.position())
        if cell[0] < 0 or self._carried is not None:
            event.ignore()
            return
        turn = event.angleDelta().y() or event.angleDelta().x()
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        self._begin()
        self._current = cell
        self._change(cell, (FINE_STEP if fine else COARSE_STEP) * turn / 120.0)
        self._commit_timer.start()
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Move, toggle, change or cancel."""
        key = Qt.Key(event.key())
        if key == Qt.Key.Key_Escape:
            if not self.cancel():
                event.ignore()
            return
        if not self._names:
            event.ignore()
            return
        source, row = self._current
        moves = {
            Qt.Key.Key_Left: (source, row - 1),
            Qt.Key.Key_Right: (source, row + 1),
            Qt.Key.Key_Up: (source - 1, row),
            Qt.Key.Key_Down: (source + 1, row),
            Qt.Key.Key_Home: (source, 0),
            Qt.Key.Key_End: (source, self._columns - 1),
        }
        fine = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if key in moves:
            source, row = moves[key]
            self._current = (min(max(source, 0), len(self._names) - 1), min(max(row, 0), self._columns - 1))
            self._describe_current()
            self._point(self._current, self._current[0])
            self.current_moved.emit(self._current[0])
            self.update()
        elif key == Qt.Key.Key_Space:
            self._begin()
            self._set([self._current], self._opposite(self._current))
            self.finish()
        elif key in _AMOUNT:
            less = key in _LESS
            self._begin()
            self._key_held = True
            self._change(self._current, (FINE_STEP if fine else COARSE_STEP) * (-1 if less else 1))
        else:
            event.ignore()

    def keyReleaseEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """End the gesture of a held key."""
        if self._key_held and not event.isAutoRepeat():
            self.finish()
        else:
            super().keyReleaseEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802
        """End the active gesture when focus is lost."""
        if self._carried is None:
            self.finish()
        self.update()
        super().focusOutEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        """End the active gesture when the grid is hidden."""
        self.finish()
        super().hideEvent(event)

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802
        """Report that no cell is under the pointer."""
        self._point((-1, -1), -1)
        super().leaveEvent(event)

    def _change(self, cell: tuple[int, int], by: float) -> None:
        strength = round(self._strengths[cell[0]][cell[1]] + by, 4)
        self._set([cell], min(max(strength, 0.0), 1.0))
        self._point(cell, cell[0])

    def _point(self, cell: tuple[int, int], source: int) -> None:
        self._hover = cell if cell[0] >= 0 else (source, -1)
        self.pointed_at.emit(*self._hover)
        self.update()

    def _describe_current(self) -> None:
        source, row = self._current
        if source < len(self._names) and row < len(self._resolutions):
            strength = self._strengths[source][row]
            self.setAccessibleDescription(
                f"{self._names[source]}, row {row}, {self._resolutions[row]} px: {strength:.2f}"
            )

    # --- painting ---------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Show tooltips; claim plus and minus for the focused cell before the window's shortcuts."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride and event.key() in _AMOUNT:
            event.accept()
            return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            source = self._source_at(event.pos().y())
            cell = self._cell_at(QPointF(event.pos()))
            if source < 0:
                words = ""
            elif cell[0] < 0:
                words = f"{self._names[source]}: a right click offers groups of rows, a seed, a name, and to remove it."
            else:
                px = self._resolutions[cell[1]] if cell[1] < len(self._resolutions) else 0
                words = (
                    f"{self._names[source]}, row {cell[1]}, {px} px: {self._strengths[source][cell[1]]:.2f} of 0 to 1; "
                    "drag to paint, the wheel sets the amount, Shift finely."
                )
            QToolTip.showText(event.globalPos(), plain_tip(words), self)
            return True
        return super().event(event)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802
        """Paint the pictures, the cells and the focus ring."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(fonts.caption())
        shape = self._shape()
        for source, row_strengths in enumerate(self._strengths):
            if not event.rect().intersects(shape.picture(source).toRect().adjusted(0, -4, self.width(), 4)):
                continue
            picture = self._pictures[source] if source < len(self._pictures) else None
            paint_picture(painter, shape.picture(source), picture, str(source + 1))
            colour = source_colour(source)
            for row, strength in enumerate(row_strengths):
                rect = shape.cell(source, row)
                hot = (source, row) == self._hover
                painter.setPen(QPen(QColor(tokens.dim), 1) if hot else Qt.PenStyle.NoPen)
                painter.setBrush(cell_colour(colour, strength))
                painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5) if hot else rect, 3, 3)
        if self.hasFocus() and self._strengths:
            painter.setPen(QPen(QColor(tokens.strong), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(shape.cell(*self._current).adjusted(-1, -1, 1, 1), 4, 4)
        painter.end()
