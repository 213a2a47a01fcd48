"""Sheets of a grid's cells, rendered in full while nothing else is to do, and written as one picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from pathlib import Path

from explorer_app.controller.file_worker import FileWorker
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.variations import Cell
from gpu_backend import Frame, RenderRequest, dataclass

_CELL_PX = 512
"""Largest side of a cell."""


@dataclass(frozen=True, slots=True)
class SheetKey:
    """The key under which the render thread makes a picture of a sheet."""

    number: int
    cell: Cell


@dataclass(slots=True)
class _Sheet:
    """A sheet that is being made: where it goes, which cells it lacks, and its pictures by row and column."""

    path: Path
    model_name: str
    first: Cell
    missing: set[Cell]
    frames: dict[tuple[int, int], Frame] = field(default_factory=dict)


class GridSheets:
    """Makes sheets; a message reports the end of each."""

    def __init__(self, renders: RenderThread, worker: FileWorker, messages: MessageLog) -> None:
        self._renders = renders
        self._worker = worker
        self._messages = messages
        self._sheets: dict[int, _Sheet] = {}
        self._count = 0

    def save(self, path: Path, requests: Mapping[Cell, RenderRequest], model_name: str) -> None:
        """Write a picture of these cells; nothing without any."""
        if not requests:
            return
        self._count += 1
        first = min(row for row, _ in requests), min(column for _, column in requests)
        self._sheets[self._count] = _Sheet(path, model_name, first, set(requests))
        for cell, request in requests.items():
            self._renders.request_thumbnail(SheetKey(self._count, cell), partial(_same, request), side_px=_CELL_PX)

    def take_cell(self, key: SheetKey, frame: Frame) -> None:
        """Add a picture to its sheet, and write the sheet once it is complete."""
        sheet = self._sheets.get(key.number)
        if sheet is None:
            return
        sheet.missing.discard(key.cell)
        sheet.frames[key.cell[0] - sheet.first[0], key.cell[1] - sheet.first[1]] = frame
        if not sheet.missing:
            del self._sheets[key.number]
            side_px = max(frame.width, frame.height)
            from explorer_app.exporting.sheet import write_grid_sheet  # Pillow is not imported at a start

            self._worker.submit(
                lambda: write_grid_sheet(sheet.path, sheet.frames, side_px=side_px, model_name=sheet.model_name),
                done=f"{sheet.path.name} is saved.",
                failed=f"{sheet.path.name} could not be saved",
                file=sheet.path,
            )

    def take_failed(self, key: SheetKey, error: BaseException) -> None:
        """Say why a sheet cannot be made."""
        if self._sheets.pop(key.number, None) is not None:
            self._messages.exception(error)

    def forget(self) -> None:
        """Give up what is under way: another model is open."""
        for sheet in self._sheets.values():
            self._messages.warning(f"{sheet.path.name} was not saved, because another model was opened.")
        self._sheets.clear()


def _same(request: RenderRequest) -> RenderRequest:
    return request
