"""The grid in place of the picture: its bar, its cells, and the line below that describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QSpacerItem, QVBoxLayout, QWidget

from explorer_app.controller import Editing, Engine, VariationGrid
from explorer_app.session.row_groups import range_name, range_text
from explorer_app.session.variations import MIDDLE, Cell
from explorer_app.window.canvas.picture_stage import CAPTION_PX, EDGE_PX, PictureStage
from explorer_app.window.grids.cells_view import CellLook, CellsView
from explorer_app.window.grids.grid_bar import GridBar
from explorer_app.window.look import fonts, theme

if TYPE_CHECKING:
    from gpu_backend import Directions

_LOW_PX = 240
"""A grid that is lower has a bar of one line, and narrow gaps."""

_LOWEST_PX = 150
"""A grid that is lower has no line below the cells."""

_TOO_FEW = "Keep at least two pictures (S) to mix them here: half of them as rows, half as columns."


class VariationView(QWidget):
    """Covers the canvas while the grid is on and a model is open.

    Signals
    -------
    save_requested()
        The button that saves the sheet.
    """

    save_requested = Signal()

    def __init__(self, stage: PictureStage, grid: VariationGrid, engine: Engine, editing: Editing) -> None:
        super().__init__(stage)
        self.setObjectName("variation-view")
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_NoMousePropagation)
        self._stage = stage
        self._grid = grid
        self._engine = engine
        self._editing = editing
        self.bar = GridBar(self)
        self.cells = CellsView(self)
        self._rows = QVBoxLayout(self)
        self._rows.addWidget(self.bar)
        self._rows.addWidget(self.cells, 1)
        self._caption_room = QSpacerItem(0, 0, QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
        self._rows.addItem(self._caption_room)
        self._place()
        self.hide()
        stage.resized.connect(self._place)
        self.bar.changed.connect(lambda changes: grid.change(**changes))
        self.bar.roll_requested.connect(grid.roll)
        self.bar.breed_requested.connect(grid.breed)
        self.bar.close_requested.connect(self.leave)
        self.bar.save_requested.connect(self.save_requested)
        self.cells.adopted.connect(grid.continue_from)
        self.cells.kept.connect(grid.toggle_kept)
        self.cells.locked.connect(grid.toggle_locked)
        self.cells.picked.connect(grid.toggle_picked)
        self.cells.rolled.connect(self._roll)
        self.cells.bred.connect(grid.breed)
        self.cells.left.connect(self.leave)
        self.cells.side_changed.connect(grid.set_cell_px)
        grid.changed.connect(self._show)
        grid.pictures_changed.connect(self._show_cells)
        engine.model_changed.connect(self._show_model)
        self._show_model()
        self._show()

    def show_grid(self, on: bool) -> None:
        """Show the grid, or the picture again."""
        self._grid.set_on(on)

    @Slot()
    def leave(self) -> None:
        """Show the picture again."""
        self._grid.set_on(False)

    @Slot()
    def _roll(self) -> None:
        if self._grid.settings.kind in ("random", "children"):
            self._grid.roll()

    @Slot()
    def _place(self) -> None:
        self.setGeometry(self._stage.rect())
        is_low = self.height() < theme.px(_LOW_PX)
        self.bar.set_is_low(is_low)
        edge, gap = theme.px(EDGE_PX), theme.px(4 if is_low else 10)
        self._rows.setContentsMargins(edge, gap, edge, 0)
        self._fit_caption()
        self._rows.setSpacing(gap)
        if self.isVisible():
            self.raise_()  # above what the canvas places again, such as the badge of a layer

    @Slot()
    def _show_model(self) -> None:
        model = self._engine.model
        self.bar.show_model(model.facts, cast("Directions | None", model.directions), self._editing.session)
        self._show()

    @Slot()
    def _show(self) -> None:
        """Show what the grid is now, or hide while it is off."""
        grid = self._grid
        is_shown = grid.is_on and self._engine.model.facts is not None
        if is_shown:
            self.bar.show_settings(grid.settings)
            self.bar.show_picked(len(grid.picked))
            self.cells.can_vary = grid.settings.kind != "mix"
            self._show_cells()
        if is_shown and self.isHidden():
            self._place()
            self.show()
            self.raise_()
            self._stage.setFocusProxy(self.cells)  # Tab and F6 would lead to the canvas behind the grid
            self.cells.setFocus()
        elif not is_shown and not self.isHidden():
            had_focus = self.isAncestorOf(self.focusWidget()) if self.focusWidget() is not None else False
            self._stage.setFocusProxy(None)  # type: ignore[arg-type]
            self.hide()
            if had_focus:
                self._stage.setFocus()

    @Slot()
    def _show_cells(self) -> None:
        grid = self._grid
        if not grid.is_on or self._engine.model.facts is None:
            return
        kind = grid.settings.kind
        looks = {cell: self._look(cell) for cell in grid.cells}
        rows, columns = grid.shape
        first = (0, 0) if kind == "mix" else (-(rows // 2), -(columns // 2))
        empty = grid.error or (_TOO_FEW if kind == "mix" else "")
        self.cells.show_cells(looks, grid.shape, first, empty)
        self.bar.show_can_save(bool(looks))
        self._fit_caption()
        self.update(self._caption_rect().toAlignedRect())

    def _look(self, cell: Cell) -> CellLook:
        grid = self._grid
        shown, kind = grid.cells[cell], grid.settings.kind
        is_mix = kind == "mix"
        is_edge = is_mix and 0 in cell
        is_current = cell == MIDDLE and kind in ("random", "axes") and not grid.is_locked(cell)
        if is_edge:
            name = grid.sides.columns[cell[1] - 1].label if cell[0] == 0 else grid.sides.rows[cell[0] - 1].label
        elif is_mix:
            name = f"{grid.sides.rows[cell[0] - 1].label} over {grid.sides.columns[cell[1] - 1].label}"
        else:
            name = "The picture now" if is_current else f"Row {cell[0]:+d}, column {cell[1]:+d}"
        return CellLook(
            name,
            shown.frame,
            shown.is_stale,
            is_current=is_current,
            is_kept=grid.kept_number(cell) is not None,
            is_locked=not is_mix and grid.is_locked(cell),
            is_picked=cell in grid.picked,
            is_parent=grid.is_parent(cell),
            is_edge=is_edge,
        )

    # -- painting ---------------------------------------------------------------------------------------------------

    def _fit_caption(self) -> None:
        """Make room for the line below the cells, also while the canvas has no caption."""
        room = theme.px(CAPTION_PX - 4) if self._has_caption() else 0
        if room != self._caption_room.sizeHint().height():
            self._caption_room.changeSize(0, room, QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Fixed)
            self._rows.invalidate()

    def _has_caption(self) -> bool:
        return self.height() >= theme.px(_LOWEST_PX) or bool(self._grid.error)

    def _caption_rect(self) -> QRectF:
        return self._stage.caption_rect()

    def caption(self) -> tuple[str, ...]:
        """Return the wordings of the line below the cells, the longest first."""
        grid = self._grid
        if grid.error:
            return (grid.error,)
        settings, (rows, columns) = grid.settings, grid.shape
        missing = sum(cell.is_stale for cell in grid.cells.values())
        facts = self._engine.model.facts
        resolutions = () if facts is None else facts.row_resolutions
        chosen = settings.rows_of(resolutions)
        name = range_name(chosen, resolutions)
        held = f"{name} rows" if name else range_text(chosen, resolutions)
        what = {
            "random": f"{rows} × {columns} around the picture, {held}",
            "axes": f"{rows} × {columns} along two directions",
            "children": f"{rows} × {columns} children",
            "mix": f"{max(0, rows - 1)} × {max(0, columns - 1)} mixes, {held} from the left",
        }[settings.kind]
        if missing:
            what = f"{what} · {missing} to come"
        how = "click continues, Shift-click keeps"
        more = "" if settings.kind == "mix" else ", Ctrl-click picks parents"
        return (f"{what} · {how}{more}, Escape leaves", f"{what} · {how}", what)

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the well and the line below the cells."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(tokens.ground))
        well = QPainterPath()
        well.addRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), theme.DOCK_RADIUS, theme.DOCK_RADIUS)
        painter.fillPath(well, QColor(tokens.well))
        if not self._has_caption():
            painter.end()
            return
        line = self._caption_rect()
        painter.setFont(fonts.caption())
        metrics = painter.fontMetrics()
        wordings = self.caption()
        text = next((words for words in wordings if metrics.horizontalAdvance(words) <= line.width()), wordings[-1])
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(line.width()))
        painter.setPen(QColor(tokens.bad_text if self._grid.error else tokens.dim))
        painter.drawText(line, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.end()
