"""A folder of picture files, each with its recipe: the frames of a sequence, numbered from 0."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.exporting.errors import ExportError, PictureError, TakenError
from explorer_app.exporting.formats.picture_format import PICTURE_ENDINGS, PictureFormat, Size
from explorer_app.exporting.picture_document import document_to_text
from explorer_app.exporting.sequence import frame_name
from explorer_app.exporting.sinks.frame_sink import Claim, FramePlan, PlannedText
from gpu_backend import PICTURE_LIMITS, Disk, Frame, remove_leftovers

if TYPE_CHECKING:
    from explorer_app.exporting.encoders import Encoders


class PictureFolder:
    """Implements `FrameSink`: ``<folder>/<name>_00000.png`` and so on in PNG, each written aside and moved into place.

    A file that is whole and carries the recipe of its frame counts as stored, so frames may be missing anywhere.

    Parameters
    ----------
    form, size
        How frames are written; None for PNG, and for the size that they come in.
    disk
        The file operations.
    threads
        How many pictures are encoded and written at a time.
    file_names
        What the files are called, without ending; empty numbers them. Files in the way of these are replaced.
    """

    is_joining = False

    def __init__(
        self,
        folder: Path,
        name: str,
        form: PictureFormat | None = None,
        size: Size | None = None,
        *,
        disk: Disk | None = None,
        threads: int = 2,
        file_names: Sequence[str] = (),
    ) -> None:
        self._file_names = tuple(f"{item}{(form or PictureFormat()).ending}" for item in file_names)
        self._folder = folder
        self._name = name
        self._form = form or PictureFormat()
        self._size = size
        self._disk = disk or Disk()
        self._thread_count = threads
        self._plan: FramePlan | None = None
        self._encoders: Encoders | None = None
        self._found: set[str] = set()
        """Files of frames that were in the folder when it was opened."""

    @property
    def written(self) -> int:
        """Number of files that were written."""
        return 0 if self._encoders is None else self._encoders.written

    @property
    def error(self) -> BaseException | None:
        """What the first file to fail raised."""
        return None if self._encoders is None else self._encoders.error

    @property
    def is_ready(self) -> bool:
        """Whether the writers have room for another frame."""
        return self._encoders is not None and self._encoders.has_room

    def unit_path(self, unit: int) -> Path:
        """Return where a frame goes."""
        return self._folder / self._file_name(unit)

    def _file_name(self, index: int) -> str:
        if self._file_names:
            return self._file_names[index]
        return frame_name(self._name, self._form, index)

    def frame_index(self, file_name: str) -> int | None:
        """Return the number in a frame's file name, None for other names; it may be past a sequence's end."""
        if self._file_names:
            return self._indices.get(file_name)
        return _index_in(file_name, self._name, (self._form.ending,))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self._file_names)}

    def open(self, plan: FramePlan, claim: Claim, changed: Callable[[], None]) -> None:
        """Look through the folder and start the writers."""
        remove_leftovers(self._folder, lambda name: self.frame_index(name) is not None, self._disk)
        self._plan = plan
        if self._file_names:
            pass  # a picture replaces another of its name, and no other
        elif claim.replaced_total:
            remove_replaced_frames(self._folder, self._name, claim.replaced_total, self._disk, self._is_written_over)
        elif not claim.is_ours:
            self._refuse_foreign_frames(len(plan))
        self._found = {name for name, _ in self._frames()}
        # Another disk is a test's: it counts in this process alone.
        missing = len(plan) - len(self._found)
        # Now, not at a start, which makes no pictures: its shared memory and processes come with C libraries.
        from explorer_app.exporting.encoders import Encoders, usual_patience

        patience_s = usual_patience(self._thread_count, missing) if type(self._disk) is Disk else None
        self._encoders = Encoders(
            self._thread_count,
            self._form,
            self._size,
            PlannedText(plan),
            self._folder,
            changed,
            patience_s,
            disk=self._disk,
        )

    def resumable_from(self, index: int, should_stop: Callable[[], bool]) -> int | None:
        """Return the first frame from `index` on without a whole file that carries its recipe."""
        assert self._plan is not None
        for place in range(index, len(self._plan)):
            if should_stop():
                return None
            if self._file_name(place) not in self._found or not self.is_stored(place, self._plan):
                return place
        return None

    def accept(self, index: int, frame: Frame) -> None:
        """Leave a frame to the writers."""
        assert self._encoders is not None
        self._encoders.accept(index, self._file_name(index), frame)

    def close(self, *, discard: bool) -> None:
        """Finish or discard what waits, and end the writers."""
        if self._encoders is not None:
            self._encoders.close(discard=discard)

    def check_whole(self) -> None:
        """Raise ExportError if a frame's file is gone."""
        assert self._plan is not None
        there = {index for _, index in self._frames()}
        lost = next((index for index in range(len(self._plan)) if index not in there), None)
        if lost is not None:
            raise ExportError(
                f"{self._file_name(lost)} in {self._folder} was deleted while the others were written; "
                "start the same export again."
            )

    def _refuse_foreign_frames(self, total: int) -> None:
        """Raise TakenError if a file under a frame's name is not that frame."""
        assert self._plan is not None
        for name, index in self._frames():
            if index < total and not self.is_stored(index, self._plan):
                raise TakenError(f"The folder {self._folder} holds a {name} that is not part of this sequence")

    def _is_written_over(self, file: str, index: int) -> bool:
        assert self._plan is not None
        return index < len(self._plan) and file == self._file_name(index)

    def _frames(self) -> list[tuple[str, int]]:
        """Return name and number of the files that are called like frames."""
        if not self._file_names:
            return _frames_in(self._folder, self._name, (self._form.ending,))
        try:
            files = os.listdir(self._folder)
        except OSError:
            return []
        return [(file, self._indices[file]) for file in files if file in self._indices]

    def is_stored(self, unit: int, plan: FramePlan) -> bool:
        """Return whether a frame's file is whole and carries its recipe."""
        from explorer_app.exporting.formats.codecs import scan_picture  # when the first folder is looked through

        try:
            scan = scan_picture(self.unit_path(unit), PICTURE_LIMITS.nbytes)
        except PictureError:
            return False
        return scan.is_whole and scan.text == document_to_text(plan.document(unit))


def remove_replaced_frames(
    folder: Path,
    name: str,
    total: int,
    disk: Disk,
    stays: Callable[[str, int], bool] = lambda file, index: False,
) -> None:
    """Delete the pictures of a sequence that is replaced, in any format: files that carry a recipe.

    Parameters
    ----------
    total
        Number of its frames.
    stays
        Returns whether a frame is kept, given its file name and index: the new sequence writes over it.

    Raises
    ------
    ExportError
        If the system refuses.
    """
    from explorer_app.exporting.formats.codecs import scan_picture  # when the first folder is looked through

    for file, index in _frames_in(folder, name, PICTURE_ENDINGS):
        if index < total and not stays(file, index):
            with contextlib.suppress(PictureError):
                if scan_picture(folder / file, PICTURE_LIMITS.nbytes).text is not None:
                    _remove_frame(folder / file, disk)


def _remove_frame(path: Path, disk: Disk) -> None:
    try:
        disk.remove(path)
    except OSError as error:
        raise ExportError(
            f"{path.name} of the sequence to be replaced could not be removed from {path.parent}; "
            "choose another folder.",
            details=str(error),
        ) from error


def _frames_in(folder: Path, name: str, endings: Sequence[str]) -> list[tuple[str, int]]:
    """Return name and number of the files in a folder that are called like frames of a sequence."""
    try:
        files = sorted(os.listdir(folder))
    except OSError:
        return []
    return [(file, index) for file in files if (index := _index_in(file, name, endings)) is not None]


def _index_in(file_name: str, name: str, endings: Sequence[str]) -> int | None:
    match = re.fullmatch(re.escape(name) + r"_([0-9]{5})(\.[a-z]+)", file_name)
    return int(match[1]) if match is not None and match[2] in endings else None
