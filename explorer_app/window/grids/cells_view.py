"""The cells of a grid: painted pictures that are picked, kept, locked and adopted by mouse and keyboard."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFontMetrics,
    QHelpEvent,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QMenu, QScrollBar, QSizePolicy, QToolTip, QWidget

from explorer_app.session.variations import Cell
from explorer_app.window.canvas.canvas_view import is_smooth
from explorer_app.window.canvas.frame_image import frame_image
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.look import fonts, icons, theme
from gpu_backend import Frame, dataclass

_GAP_PX = 6
_EDGE_PX = 3
"""Margin around all cells, for the ring around a cell that has the focus."""

_SMALL_CELL_PX = 48
"""Side of a cell in px up to which the words in it and the gap to the next one are small."""

_LEAST_CELL_PX = 40
"""Side of a cell in px that a low view keeps, where the grid then scrolls; a narrow view has smaller cells."""

_RADIUS = 5.0
_BADGE_PX = 20
_LARGE_ENOUGH = 3.2
"""A cell shows its buttons if it is as many times as wide as one."""

_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}
_ADOPT = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_KEYS = {Qt.Key.Key_K: "keep", Qt.Key.Key_S: "keep", Qt.Key.Key_L: "lock", Qt.Key.Key_Space: "pick"}
_GRID_KEYS = {Qt.Key.Key_R: "roll", Qt.Key.Key_B: "breed"}


@dataclass(frozen=True, slots=True)
class CellLook:
    """A cell. `title` is painted where there is no picture; `name` is for the tooltip and screen readers."""

    name: str
    frame: Frame | None = None
    is_stale: bool = False
    is_current: bool = False
    is_kept: bool = False
    is_locked: bool = False
    is_picked: bool = False
    is_parent: bool = False
    is_edge: bool = False
    """Whether it is a source at the edge of a mix grid."""


class CellsView(QWidget):
    """A grid of cells. Click or Enter adopts, Shift-click, K or S keeps, Ctrl-click or Space picks, L locks.

    Signals
    -------
    adopted(object), kept(object), locked(object), picked(object)
        A cell.
    rolled(), bred(), left()
        R, B, Escape.
    side_changed(int)
        Side of a cell, in device px.
    """

    adopted = Signal(object)
    kept = Signal(object)
    locked = Signal(object)
    picked = Signal(object)
    rolled = Signal()
    bred = Signal()
    left = Signal()
    side_changed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._cells: dict[Cell, CellLook] = {}
        self._images: dict[Cell, tuple[Frame, QImage]] = {}
        """Images over the bytes of frames, which they do not own."""
        self._shape = (0, 0)
        self._first: Cell = (0, 0)
        self._focus: Cell | None = None
        self._hot: Cell | None = None
        self._pressed: tuple[Cell, str] | None = None
        self._empty = ""
        self.can_vary = True
        """Whether cells can be locked and picked."""
        self.bar = QScrollBar(Qt.Orientation.Vertical, self)
        self.bar.hide()
        self.bar.valueChanged.connect(self.update)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Variations")

    # -- content ----------------------------------------------------------------------------------------------------

    @property
    def focused(self) -> Cell | None:
        """The cell that keys act on."""
        return self._focus

    def show_cells(self, cells: Mapping[Cell, CellLook], shape: tuple[int, int], first: Cell, empty: str = "") -> None:
        """Show cells.

        Parameters
        ----------
        shape
            Rows and columns.
        first
            The cell at the upper left, which may be missing.
        empty
            Text in place of a grid without cells.
        """
        is_other = shape != self._shape or first != self._first or empty != self._empty
        changed = [cell for cell, look in cells.items() if self._cells.get(cell) != look]
        self._cells, self._shape, self._first, self._empty = dict(cells), shape, first, empty
        self._images = {
            cell: (look.frame, self._image(cell, look.frame)) for cell, look in cells.items() if look.frame is not None
        }
        if self._focus not in self._cells:
            self._focus = next((cell for cell, look in cells.items() if look.is_current), next(iter(cells), None))
        if is_other:
            self._arrange()
            self._announce_side()
            self.update()
        else:
            for cell in changed:
                self.update(self.cell_rect(cell).toAlignedRect().adjusted(-3, -3, 3, 3))
        self._describe()

    def _image(self, cell: Cell, frame: Frame) -> QImage:
        before = self._images.get(cell)
        return before[1] if before is not None and before[0] is frame else frame_image(frame)

    def cell_rect(self, cell: Cell) -> QRectF:
        """Return the rectangle of a cell."""
        columns = self._shape[1]
        side, gap = self._side(), self._gap()
        width, height = columns * (side + gap) - gap, self._cells_height()
        left = (self.width() - width) // 2
        top = _EDGE_PX - self.bar.value() if self._scrolls() else (self.height() - height) // 2
        down, right = cell[0] - self._first[0], cell[1] - self._first[1]
        return QRectF(left + right * (side + gap), top + down * (side + gap), side, side)

    def _cells_height(self) -> int:
        """Return the height of all rows, in px."""
        return self._shape[0] * (self._side() + self._gap()) - self._gap()

    def _scrolls(self) -> bool:
        return self._cells_height() > self.height() - 2 * _EDGE_PX

    def _side(self) -> int:
        return max(8, self._side_with(self._gap())) if all(self._shape) else 0

    def _side_with(self, gap: int) -> int:
        """Return the side of a cell in px if so many px are between two cells; 0 without cells."""
        rows, columns = self._shape
        if not rows or not columns:
            return 0
        height = self.height() - 2 * _EDGE_PX
        low, least = (height + gap) // rows - gap, theme.px(_LEAST_CELL_PX)
        width = self.width() - 2 * _EDGE_PX - (2 * self.bar.sizeHint().width() if low < least else 0)
        return min((width + gap) // columns - gap, max(low, least))

    def _gap(self) -> int:
        """Return the px between two cells: fewer between small ones, whose pictures need them."""
        usual = theme.px(_GAP_PX)
        return usual if self._side_with(usual) > theme.px(_SMALL_CELL_PX) else usual // 2

    def _arrange(self) -> None:
        """Fit the scroll bar to the cells, with the focused one in the middle."""
        self.bar.setVisible(self._scrolls())
        if self.bar.isHidden():
            return
        width = self.bar.sizeHint().width()
        self.bar.setGeometry(self.width() - width, 0, width, self.height())
        self.bar.setPageStep(self.height())
        self.bar.setSingleStep(self._side() + self._gap())
        self.bar.setRange(0, self._cells_height() + 2 * _EDGE_PX - self.height())
        if self._focus is not None:
            self.bar.setValue(self.bar.value() + round(self.cell_rect(self._focus).center().y() - self.height() / 2))

    def _scroll_to_focus(self) -> None:
        if self._focus is None or self.bar.isHidden():
            return
        rect = self.cell_rect(self._focus)
        over, under = rect.top() - _EDGE_PX, rect.bottom() + _EDGE_PX - self.height()
        if over < 0 or rect.height() > self.height():
            self.bar.setValue(self.bar.value() + round(over))
        elif under > 0:
            self.bar.setValue(self.bar.value() + round(under))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802 - Qt's name
        """Scroll a grid that is higher than the view."""
        if self.bar.isHidden():
            super().wheelEvent(event)
        else:
            self.bar.event(event)

    def _announce_side(self) -> None:
        if self._side():
            self.side_changed.emit(round(self._side() * self.devicePixelRatioF()))

    def cell_at(self, place: QPointF) -> Cell | None:
        """Return the cell at a position."""
        return next((cell for cell in self._cells if self.cell_rect(cell).contains(place)), None)

    def badge_rect(self, cell: Cell, badge: str) -> QRectF:
        """Return the rectangle of a cell's star ("keep") or lock ("lock")."""
        rect, side = self.cell_rect(cell), theme.px(_BADGE_PX)
        left = rect.right() - side - 3 if badge == "keep" else rect.left() + 3
        return QRectF(left, rect.top() + 3, side, side)

    # -- mouse ------------------------------------------------------------------------------------------------------

    def _has_badges(self) -> bool:
        return self._side() >= _LARGE_ENOUGH * theme.px(_BADGE_PX)

    def _part_at(self, place: QPointF) -> tuple[Cell, str] | None:
        cell = self.cell_at(place)
        if cell is None:
            return None
        badges = ("keep", "lock") if self.can_vary else ("keep",)
        for badge in badges if self._has_badges() else ():
            if self.badge_rect(cell, badge).contains(place):
                return cell, badge
        return cell, "cell"

    def mousePressEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Record the start of a click."""
        self._pressed = self._part_at(event.position()) if event.button() == Qt.MouseButton.LeftButton else None
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Act on the cell, if the button is released where it was pressed."""
        pressed, self._pressed = self._pressed, None
        if pressed is None or self._part_at(event.position()) != pressed:
            return
        cell, part = pressed
        self._set_focus(cell)
        keys = event.modifiers()
        if part == "keep" or keys & Qt.KeyboardModifier.ShiftModifier:
            self.kept.emit(cell)
        elif part == "lock":
            self.locked.emit(cell)
        elif keys & Qt.KeyboardModifier.ControlModifier and self.can_vary:
            self.picked.emit(cell)
        else:
            self.adopted.emit(cell)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Take the second click of a double-click for none: it would adopt another cell than the one aimed at."""
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        """Mark the cell under the pointer."""
        self._set_hot(self.cell_at(event.position()))

    def leaveEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Mark no cell."""
        self._set_hot(None)
        super().leaveEvent(event)

    def _set_hot(self, cell: Cell | None) -> None:
        if cell == self._hot:
            return
        for changed in (self._hot, cell):
            if changed is not None:
                self.update(self.cell_rect(changed).toAlignedRect().adjusted(-3, -3, 3, 3))
        self._hot = cell
        self.setCursor(Qt.CursorShape.ArrowCursor if cell is None else Qt.CursorShape.PointingHandCursor)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:  # noqa: N802 - Qt's name
        """Show a menu with all actions of a cell."""
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        cell = self._focus if by_key else self.cell_at(QPointF(event.pos()))
        if cell is None or cell not in self._cells:
            return
        self._set_focus(cell)
        place = self.mapToGlobal(self.cell_rect(cell).center().toPoint()) if by_key else event.globalPos()
        self.menu_of(cell).popup(place)

    def menu_of(self, cell: Cell) -> QMenu:
        """Return a menu with all actions of a cell, which deletes itself when it is closed."""
        look = self._cells[cell]
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Continue from here", lambda: self.adopted.emit(cell))
        star = icons.icon("star", "dim")
        menu.addAction(star, "Keep no longer" if look.is_kept else "Keep", lambda: self.kept.emit(cell))
        if self.can_vary:
            menu.addAction("Unlock" if look.is_locked else "Lock", lambda: self.locked.emit(cell))
            words = "Unpick" if look.is_picked else "Pick as a parent"
            menu.addAction(words, lambda: self.picked.emit(cell))
        return menu

    # -- keyboard ---------------------------------------------------------------------------------------------------

    def event(self, event: QEvent) -> bool:
        """Claim the keys of the grid before the window's shortcuts, and show a cell's tooltip."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and not event.modifiers()
            and event.key() in (*_KEYS, *_GRID_KEYS)
        ):
            event.accept()
            return True
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            cell = self.cell_at(QPointF(event.pos()))
            QToolTip.showText(event.globalPos(), plain_tip(self._tip(cell)), self)
            return True
        return super().event(event)

    def _tip(self, cell: Cell | None) -> str:
        if cell is None:
            return ""
        name = self._cells[cell].name
        more = " Ctrl picks it as a parent, L locks it." if self.can_vary else ""
        return f"{name}: a click continues from it, Shift keeps it.{more}"

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Arrow keys move; Enter adopts, K or S keeps, L locks, Space picks; R rolls, B breeds, Escape leaves."""
        key, cell = Qt.Key(event.key()), self._focus
        if key == Qt.Key.Key_Escape:
            self.left.emit()
        elif key in _STEPS and cell is not None:
            step = _STEPS[key]
            target = (cell[0] + step[0], cell[1] + step[1])
            if target in self._cells:
                self._set_focus(target)
        elif key in _ADOPT and cell is not None:
            (self.kept if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else self.adopted).emit(cell)
        elif key in _KEYS and cell is not None and not event.modifiers():
            name = _KEYS[key]
            if name == "keep":
                self.kept.emit(cell)
            elif self.can_vary:
                (self.locked if name == "lock" else self.picked).emit(cell)
        elif key in _GRID_KEYS and not event.modifiers() and self.can_vary:
            (self.rolled if _GRID_KEYS[key] == "roll" else self.bred).emit()
        else:
            super().keyPressEvent(event)

    def _set_focus(self, cell: Cell) -> None:
        for changed in (self._focus, cell):
            if changed is not None:
                self.update(self.cell_rect(changed).toAlignedRect().adjusted(-3, -3, 3, 3))
        self._focus = cell
        self._scroll_to_focus()
        self._describe()

    def _describe(self) -> None:
        look = self._cells.get(self._focus) if self._focus is not None else None
        self.setAccessibleDescription("" if look is None else look.name)

    def focusInEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Show which cell the keys act on."""
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:  # noqa: N802 - Qt's name
        """Hide it."""
        super().focusOutEvent(event)
        self.update()

    # -- painting ---------------------------------------------------------------------------------------------------

    def minimumSizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the smallest usable size."""
        return QSize(theme.px(160), theme.px(8))

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Announce the new side of the cells."""
        super().resizeEvent(event)
        self._arrange()
        self._announce_side()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the cells in the exposed area, or the text of an empty grid."""
        painter = QPainter(self)
        if not self._cells and self._empty:
            painter.setPen(QColor(theme.current().dim))
            edge = theme.px(24)
            area = self.rect().adjusted(edge, 0, -edge, 0)
            painter.drawText(area, Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._empty)
        exposed = QRectF(event.rect())
        for cell, look in self._cells.items():
            rect = self.cell_rect(cell)
            if rect.adjusted(-3, -3, 3, 3).intersects(exposed):
                self._paint_cell(painter, cell, look, rect)
        painter.end()

    def _paint_cell(self, painter: QPainter, cell: Cell, look: CellLook, rect: QRectF) -> None:
        tokens = theme.current()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        path = QPainterPath()
        radius = _radius(rect)
        path.addRoundedRect(rect, radius, radius)
        image = self._images.get(cell)
        painter.save()
        painter.setClipPath(path)
        if image is None:
            painter.fillRect(rect, QColor(tokens.panel))
            painter.setPen(QPen(QColor(tokens.edge), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        else:
            scale = rect.width() * self.devicePixelRatioF() / image[1].width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, is_smooth(scale))
            painter.drawImage(rect, image[1])
        painter.restore()
        self._paint_frame(painter, cell, look, rect)
        if self._has_badges():
            is_hot = cell == self._hot
            if look.is_kept or is_hot:
                name, token = ("star-filled", "accent") if look.is_kept else ("star", "dim")
                self._paint_badge(painter, self.badge_rect(cell, "keep"), name, token)
            if self.can_vary and (look.is_locked or is_hot):
                name, token = ("lock-filled", "accent") if look.is_locked else ("lock", "dim")
                self._paint_badge(painter, self.badge_rect(cell, "lock"), name, token)

    def _paint_frame(self, painter: QPainter, cell: Cell, look: CellLook, rect: QRectF) -> None:
        """Paint the outline for the state of a cell: picked, the present picture, under the pointer, focused."""
        tokens, radius = theme.current(), _radius(rect)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if look.is_picked or look.is_parent:
            colour = theme.source_colour(0) if look.is_picked else theme.source_colour(1)
            painter.setPen(QPen(QColor(colour), 3))
            painter.drawRoundedRect(rect.adjusted(-0.5, -0.5, 0.5, 0.5), radius, radius)
            self._paint_word(painter, rect, "picked" if look.is_picked else "parent")
        elif look.is_current:
            painter.setPen(QPen(QColor(tokens.strong), 2))
            painter.drawRoundedRect(rect, radius, radius)
            self._paint_word(painter, rect, "now")
        elif cell == self._hot:
            painter.setPen(QPen(QColor(tokens.dim), 1))
            painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        if look.is_edge:
            self._paint_word(painter, rect, look.name, in_part=rect.width() > theme.px(_SMALL_CELL_PX))
        if cell == self._focus and self.hasFocus():
            painter.setPen(QPen(QColor(tokens.accent), 2))
            painter.drawRoundedRect(rect.adjusted(-1.5, -1.5, 1.5, 1.5), radius + 1, radius + 1)

    def _paint_word(self, painter: QPainter, rect: QRectF, word: str, *, in_part: bool = True) -> None:
        """Paint a word at the lower left of a cell, so that no state is shown by colour alone.

        A word that is too long is cut, or left out if `in_part` is False.
        """
        tokens = theme.current()
        painter.setFont(fonts.caption())
        metrics = painter.fontMetrics()
        pad = theme.px(8 if rect.width() > theme.px(_SMALL_CELL_PX) else 2)
        room = int(rect.width()) - 6 - pad
        cut = fitting_word(word, metrics, room)
        plate = QRectF(0, 0, metrics.horizontalAdvance(cut) + pad, metrics.height() + 2)
        if not cut or (cut != word and not in_part):
            return
        plate.moveBottomLeft(rect.bottomLeft() + QPointF(3, -3))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.alpha(tokens.panel, 0.82))
        painter.drawRoundedRect(plate, 4, 4)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QColor(tokens.strong))
        painter.drawText(plate, Qt.AlignmentFlag.AlignCenter, cut)

    def _paint_badge(self, painter: QPainter, rect: QRectF, name: str, token: str) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.alpha(theme.current().panel, 0.82))
        painter.drawEllipse(rect)
        edge = round(0.18 * rect.width())
        icons.icon(name, token).paint(painter, rect.toAlignedRect().adjusted(edge, edge, -edge, -edge))


def _radius(cell: QRectF) -> float:
    return min(_RADIUS, 0.15 * cell.width())


def fitting_word(word: str, metrics: QFontMetrics, room_px: int) -> str:
    """Return as much of a word as fits: where few letters have room, they say more without dots."""
    cut = metrics.elidedText(word, Qt.TextElideMode.ElideRight, room_px)
    if cut != word and len(cut) < 4:
        cut = next((word[:end] for end in (4, 3, 2) if metrics.horizontalAdvance(word[:end]) <= room_px), "")
    return cut
