"""A live grid of variations: what its cells are, their pictures, and what a user does with them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QObject, Signal, Slot

from explorer_app.controller.drafts import MIN_DRAFT_PX
from explorer_app.controller.editing import Editing
from explorer_app.controller.engine import Engine
from explorer_app.controller.file_worker import FileWorker
from explorer_app.controller.grid_sheets import GridSheets
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import GridFailed, GridRendered
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.rendering.tasks.grid import GridOrder
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import TakeLatent
from explorer_app.session.history import KeptSession
from explorer_app.session.resolve import resolve
from explorer_app.session.row_groups import row_groups
from explorer_app.session.session import Session, as_still
from explorer_app.session.variations import (
    LEAST_SIDE,
    MIDDLE,
    MOST_SIDE,
    Cell,
    GridAxis,
    along_axes,
    children,
    crossed,
    grid_cells,
    random_neighbours,
)
from gpu_backend import Frame, LoomError, ModelFacts, RenderRequest, RowRange, dataclass

GridKind = Literal["random", "axes", "children", "mix"]

MOST_MIXED = 8
"""Kept latents on each side of a mix grid."""

_SOURCE = "variations"

_LABEL_LETTERS = 40
"""Of each of the two names in the name of a mix."""

_LEAST_FINAL_PX = 256
"""Earlier exits of a network are pale and blurred, so a final picture is at least this large before it is shrunk."""


@dataclass(frozen=True, slots=True)
class GridSettings:
    """What a grid shows.

    Attributes
    ----------
    side
        Rows and columns of a grid of variations.
    seed
        Everything random follows from it.
    spread
        Share of the way to a random seed, 0..1; of children, how much they mutate; of axes, the part of a direction's
        usual range that the outermost cells are away.
    rows
        Rows of w that vary.
    mix_rows
        Rows of w that a mix grid takes from the latent of the row; None for the coarse ones.
    across, down
        Directions of the axes.
    """

    kind: GridKind = "random"
    side: int = 5
    seed: int = 1
    spread: float = 0.3
    rows: RowRange = RowRange()
    mix_rows: RowRange | None = None
    across: GridAxis = GridAxis("", 1.0)
    down: GridAxis = GridAxis("", 1.0)

    def rows_of(self, row_resolutions: Sequence[int]) -> RowRange:
        """Return the rows that the kind of grid acts on, of a network with these rows."""
        if self.kind != "mix":
            return self.rows
        groups = row_groups(row_resolutions)
        return self.mix_rows or (groups[0].rows if groups else RowRange())


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell: its session, the request for its full picture, and the newest frame, which may be an earlier one's."""

    session: Session
    request: RenderRequest
    frame: Frame | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the frame shows another session, or is missing."""
        return self.frame is None or replace(self.frame.request, resolution=None) != self.request


@dataclass(frozen=True, slots=True)
class MixSides:
    """The kept latents of a mix grid, with their names."""

    rows: tuple[KeptSession, ...] = ()
    columns: tuple[KeptSession, ...] = ()


@dataclass(slots=True)
class _Chosen:
    """What the user marked."""

    locked: dict[Cell, Session] = field(default_factory=dict)
    picked: dict[Cell, None] = field(default_factory=dict)
    """In the order in which they were picked."""
    parents: dict[Cell, Session] = field(default_factory=dict)


class VariationGrid(QObject):
    """Computes the cells of a grid while it is on, and requests their pictures.

    Cells follow the session: each change of it, and each frame while something moves, asks for new pictures, of which
    the newest win.
    """

    changed = Signal()
    """`is_on`, `settings`, `cells`, marks: other cells, or other sessions in them."""
    pictures_changed = Signal()
    """`cells` have newer pictures."""

    def __init__(
        self,
        renders: RenderThread,
        engine: Engine,
        editing: Editing,
        worker: FileWorker,
        messages: MessageLog,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._engine = engine
        self._editing = editing
        self._messages = messages
        self._is_on = False
        self._settings = GridSettings()
        self._chosen = _Chosen()
        self._sides: MixSides | None = None
        self._held_sides: MixSides | None = None
        """Sides of a mix grid of which a cell was kept: it stays among the cells, and joins no side meanwhile."""
        self._cells: dict[Cell, GridCell] = {}
        self._based_on: object = None
        """The sessions that the cells were computed from; None computes them again."""
        self._number = self._first_number = 0
        """Numbers of the newest order, and of the first one whose pictures belong into these cells."""
        self._cell_px = 128
        self._kept_here: dict[Session, int] = {}
        """Sessions of cells that were kept, and the numbers of their entries."""
        self.sheets = GridSheets(renders, worker, messages)
        """The sheets that are being made of the cells."""
        self._error = ""
        editing.session_changed.connect(self._follow)
        editing.history_changed.connect(self._kept_changed)
        engine.model_changed.connect(self._model_changed)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        """Whether the grid is shown."""
        return self._is_on

    @property
    def settings(self) -> GridSettings:
        """What the grid shows."""
        return self._settings

    @property
    def cells(self) -> Mapping[Cell, GridCell]:
        """All cells in reading order."""
        return self._cells

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        if self._settings.kind == "mix":
            sides = self.sides
            return len(sides.rows) + 1, len(sides.columns) + 1
        return self._settings.side, self._settings.side

    @property
    def sides(self) -> MixSides:
        """The latents of a mix grid: the chosen entries, or the newest kept ones, one half on each side."""
        if (sides := self._sides or self._held_sides) is not None:
            return sides
        kept = self._editing.kept.sessions[-2 * MOST_MIXED :]
        half = len(kept) // 2
        return MixSides(kept[:half], kept[half:])

    @property
    def picked(self) -> tuple[Cell, ...]:
        """Cells that are picked for breeding, in the order of picking."""
        return tuple(self._chosen.picked)

    @property
    def error(self) -> str:
        """Why there are no pictures; empty if nothing failed."""
        return self._error

    def is_locked(self, cell: Cell) -> bool:
        """Return whether a cell keeps its variation."""
        return cell in self._chosen.locked

    def is_parent(self, cell: Cell) -> bool:
        """Return whether a cell shows a parent of the others."""
        return self._settings.kind == "children" and cell in self._chosen.parents

    def kept_number(self, cell: Cell) -> int | None:
        """Return the number of the kept entry that is equal to a cell; None if it is not kept."""
        shown = self._cells.get(cell)
        return None if shown is None or not self._kept_here else self._kept_here.get(shown.session)

    # -- what the window requests -----------------------------------------------------------------------------------

    def set_on(self, on: bool) -> None:
        """Show or leave the grid; nothing is rendered for it while it is off."""
        if on == self._is_on:
            return
        self._is_on = on
        frames = self._engine.preview.frame_changed
        if on:
            frames.connect(self._follow)
            self._update()
        else:
            frames.disconnect(self._follow)
            self._held_sides = None
            self._stop()
        self.changed.emit()

    def set_cell_px(self, side_px: int) -> None:
        """Take the side of a cell on the screen, in device px, which decides at what resolution it is rendered."""
        if side_px != self._cell_px:
            self._cell_px = side_px
            self._update()

    def change(self, **changes: object) -> None:
        """Change settings by their names; a side is kept within 3..8, a spread within 0..1."""
        before = self._settings
        after = replace(before, **changes)  # type: ignore[arg-type]
        side = min(max(after.side, LEAST_SIDE), MOST_SIDE)
        after = replace(after, side=side, spread=min(max(after.spread, 0.0), 1.0))
        if after.kind == "axes" and not (after.across.direction and after.down.direction):
            after = self._with_axes(after)
        if after == before:
            return
        self._settings = after
        if after.kind != before.kind or after.side != before.side:
            cells = set(grid_cells(side, side))
            self._chosen.picked = {cell: None for cell in self._chosen.picked if cell in cells}
        if after.kind != before.kind:
            self._chosen.picked.clear()
            self._chosen.locked.clear()
            self._held_sides = None
            self._drop_pictures()
        self._update()
        self.changed.emit()

    def use_sides(self, rows: Sequence[KeptSession] | None, columns: Sequence[KeptSession] | None) -> None:
        """Choose the kept latents of a mix grid; None keeps a side."""
        now = self.sides
        self._sides = MixSides(
            now.rows if rows is None else tuple(rows)[:MOST_MIXED],
            now.columns if columns is None else tuple(columns)[:MOST_MIXED],
        )
        self._update()
        self.changed.emit()

    def roll(self) -> None:
        """Draw other variations; locked cells stay."""
        self._chosen.picked.clear()
        self.change(seed=self._settings.seed + 1)

    def continue_from(self, cell: Cell) -> None:
        """Continue from a cell: one step of undo, after which the grid shows its neighbours."""
        shown = self._cells.get(cell)
        if shown is None or (cell == MIDDLE and self._settings.kind in ("random", "axes")):
            return
        label = "Mix" if self._settings.kind == "mix" else "Variation"
        self._chosen.locked.pop(cell, None)
        self._chosen.picked.clear()
        self._editing.edit(TakeLatent(shown.session, label), True, _SOURCE)

    def toggle_kept(self, cell: Cell) -> None:
        """Keep a cell among the kept latents, or no longer."""
        shown, number = self._cells.get(cell), self.kept_number(cell)
        if number is not None:
            self._editing.kept.star(number, False)
        elif shown is not None:
            if self._settings.kind == "mix":
                self._held_sides = self.sides
            self._editing.kept.add((KeptSession(shown.session, self._name_of(cell), time.time()),))
            kept = next((item for item in self._editing.history.kept if item.session == shown.session), None)
            if kept is not None:
                self._kept_here[shown.session] = kept.number
                self.changed.emit()

    def _name_of(self, cell: Cell) -> str:
        """Return the name of a cell that is kept: of a mix, the names of its two latents."""
        if self._settings.kind != "mix":
            return f"Variation {self._settings.seed}.{list(self._cells).index(cell) + 1}"
        row, column = cell
        sides = (
            self.sides.rows[row - 1 : row] if row else (),
            self.sides.columns[column - 1 : column] if column else (),
        )
        return " over ".join(kept.label[:_LABEL_LETTERS].strip() for side in sides for kept in side)

    def toggle_locked(self, cell: Cell) -> None:
        """Lock a cell's variation against re-rolls, or unlock it."""
        if self._chosen.locked.pop(cell, None) is None and cell in self._cells:
            self._chosen.locked[cell] = self._cells[cell].session
        self._update()
        self.changed.emit()

    def toggle_picked(self, cell: Cell) -> None:
        """Pick a cell as a parent, or no longer."""
        if cell in self._chosen.picked:
            del self._chosen.picked[cell]
        elif cell in self._cells:
            self._chosen.picked[cell] = None
        self.changed.emit()

    def breed(self) -> None:
        """Show children of the picked cells, which stay in their places; with fewer than two nothing happens."""
        parents = {cell: self._cells[cell].session for cell in self._chosen.picked if cell in self._cells}
        if len(parents) < 2:
            return
        self._chosen.parents = parents
        self._chosen.picked.clear()
        self._chosen.locked.clear()
        self._settings = replace(self._settings, kind="children", seed=self._settings.seed + 1)
        self._update()
        self.changed.emit()

    def save_sheet(self, path: Path) -> None:
        """Write all cells, rendered in full, as one picture; a message reports the end."""
        requests = {cell: shown.request for cell, shown in self._cells.items()}
        self.sheets.save(path, requests, self._editing.session.model.name)

    # -- events of the render thread ----------------------------------------------------------------------------------

    def take_rendered(self, event: GridRendered) -> None:
        """Show pictures, including those of an earlier order: cells follow a gesture late rather than not at all."""
        if event.number < self._first_number:
            return
        for name, frame in event.cells:
            cell: Cell = name  # type: ignore[assignment]
            before = self._cells.get(cell)
            if before is not None:
                self._cells[cell] = replace(before, frame=frame)
        self._error = ""
        self.pictures_changed.emit()

    def take_failed(self, event: GridFailed) -> None:
        """Say once why there are no pictures."""
        if event.number == self._number and self._is_on:
            self._error = str(event.error)
            self._messages.exception(event.error)
            self.pictures_changed.emit()

    def close(self) -> None:
        """Request nothing more. May be called twice."""
        self._is_on = False
        self._stop()

    # -- inside -----------------------------------------------------------------------------------------------------

    @Slot()
    def _follow(self) -> None:
        """Follow the session; a frame that only finishes the picture changes nothing."""
        if self._is_on and self._based_on != (self._editing.session, self._editing.effective):
            self._update()

    @Slot()
    def _kept_changed(self) -> None:
        if self._kept_here:
            numbers = {entry.number for entry in self._editing.history.kept}
            self._kept_here = {session: number for session, number in self._kept_here.items() if number in numbers}
        if self._is_on:
            if self._settings.kind == "mix" and self._sides is None:
                self._update()
            self.changed.emit()

    @Slot()
    def _model_changed(self) -> None:
        """Drop everything that belongs to the former model."""
        self._chosen = _Chosen()
        self._sides = self._held_sides = None
        now = self._settings
        across, down = (self._named_axis(axis.direction) for axis in (now.across, now.down))
        settings = replace(now, across=across, down=down, rows=RowRange(), mix_rows=None)
        if now.kind == "axes":
            settings = self._with_axes(settings)
        is_lacking = now.kind == "children" or (now.kind == "axes" and not settings.down.direction)
        self._settings = replace(settings, kind="random") if is_lacking else settings
        self._drop_pictures()
        self.sheets.forget()
        self._renders.forget_grid()
        self._update()
        self.changed.emit()

    def _stop(self) -> None:
        self._renders.forget_grid()
        self._based_on = None

    def _drop_pictures(self) -> None:
        """Start over: pictures under way belong to other cells."""
        self._cells = {}
        self._first_number = self._number + 1

    def _named_axis(self, name: str) -> GridAxis:
        """Return the axis of a direction of the model; an empty one if the model lacks the direction.

        Without a model the name is kept for the first one.
        """
        directions = self._engine.model.directions
        if directions is None:
            return GridAxis(name if self._engine.model.facts is None else "", 1.0)
        if name not in directions.names:
            return GridAxis("", 1.0)
        place = directions.names.index(name)
        return GridAxis(name, directions.reach[place])

    def _with_axes(self, settings: GridSettings) -> GridSettings:
        """Return settings with the first two directions of the model as axes."""
        directions = self._engine.model.directions
        if directions is None:
            return settings
        first, second = (directions.names * 2)[:2] if directions.names else ("", "")
        across = settings.across if settings.across.direction else self._named_axis(first)
        down = settings.down if settings.down.direction else self._named_axis(second)
        return replace(settings, across=across, down=down)

    def _update(self) -> None:
        """Compute the cells, and request the pictures that are missing."""
        facts = self._engine.model.facts
        if not self._is_on or facts is None:
            return
        self._based_on = self._editing.session, self._editing.effective
        try:
            sessions = self._sessions(facts)
        except LoomError as error:
            self._cells, self._error = {}, str(error)
            self.pictures_changed.emit()
            return
        before, self._cells = self._cells, {}
        draft, best = self._resolutions(facts)
        drafts, finals = [], []
        for cell, session in sessions.items():
            request = replace(resolve(self._editing.effective_of(session)), tap=None)
            frame = before[cell].frame if cell in before else None
            shown = self._cells[cell] = GridCell(session, request, frame)
            if shown.is_stale:
                drafts.append((cell, replace(request, resolution=draft)))
            if draft != best and (frame is None or frame.request != replace(request, resolution=best)):
                finals.append((cell, replace(request, resolution=best)))
        if drafts or finals:
            self._number += 1
            self._renders.request_grid(GridOrder(self._number, tuple(drafts), tuple(finals), self._cell_px))
        self.pictures_changed.emit()

    def _sessions(self, facts: ModelFacts) -> dict[Cell, Session]:
        settings, session, num_ws = self._settings, self._editing.session, facts.num_ws
        if settings.kind == "mix":
            return self._mixed(facts)
        cells = grid_cells(settings.side, settings.side)
        if settings.kind == "axes":
            across, down = (
                replace(axis, reach=axis.reach * settings.spread) for axis in (settings.across, settings.down)
            )
            made = along_axes(session, cells, across, down)
        elif settings.kind == "children":
            parents = tuple(self._chosen.parents.values())
            groups = row_groups(facts.row_resolutions)
            made = children(parents, cells, settings.seed, settings.spread, groups, num_ws)
        else:
            made = random_neighbours(session, cells, settings.seed, settings.spread, settings.rows, num_ws)
        fixed = {**self._chosen.locked, **(self._chosen.parents if settings.kind == "children" else {})}
        return {cell: fixed.get(cell, variation) for cell, variation in zip(cells, made, strict=True)}

    def _mixed(self, facts: ModelFacts) -> dict[Cell, Session]:
        """Return the cells of a mix grid: row 0 and column 0 show the latents themselves, the corner nothing."""
        sides, session = self.sides, self._editing.session
        if not sides.rows or not sides.columns:
            return {}
        rows, columns = (
            [TakeLatent(adapt(kept.session, facts).session).apply(as_still(session)) for kept in side]
            for side in (sides.rows, sides.columns)
        )
        held = self._settings.rows_of(facts.row_resolutions)
        cells: dict[Cell, Session] = {(0, place + 1): column for place, column in enumerate(columns)}
        for down, row in enumerate(rows):
            cells[down + 1, 0] = row
            for right, column in enumerate(columns):
                cells[down + 1, right + 1] = crossed(column, row, held, facts.num_ws)
        return cells

    def _resolutions(self, facts: ModelFacts) -> tuple[int | None, int | None]:
        """Return the resolutions of drafts and of final pictures; None is full. On a GPU both are the same."""
        exits = sorted(side for side in facts.draft_resolutions if side >= MIN_DRAFT_PX)
        best = next((side for side in exits if side >= max(self._cell_px, _LEAST_FINAL_PX)), None)
        draft = exits[0] if exits else None
        return (best, best) if self._engine.devices.state.is_on_gpu else (draft, best)
