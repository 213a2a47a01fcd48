"""A sequence on its way to files: hands out requests, takes frames, and goes on where an earlier run was stopped.

Whoever renders drives it::

    job = SequenceJob(settings)
    while (request := job.next_request()) is not None:
        job.deliver(renderer.render(request))
    job.close(cancelled=False)

Files that are there already and carry the recipe that is expected are not asked for again. Since a file comes into
place whole or not at all, a run that was killed at any moment loses at most the frames that were under way.
"""

from __future__ import annotations

import os
from collections import deque

from explorer_app.exporting.errors import ExportError, PictureError, TakenError
from explorer_app.exporting.manifest import State, find_manifest, manifest_bytes
from explorer_app.exporting.output_file import write_output
from explorer_app.exporting.picture import KEYWORD, encode_picture
from explorer_app.exporting.picture_document import document_to_text
from explorer_app.exporting.png_scan import scan_png
from explorer_app.exporting.sequence import SequenceSettings, plan_sequence
from explorer_app.exporting.writers import WriterPool
from gpu_backend import PICTURE_LIMITS, Disk, Frame, RenderRequest, remove_leftovers


class SequenceJob:
    """Writes a sequence. One thread at a time drives it; `total`, `done` and `found` may be read from any.

    Parameters
    ----------
    settings
        What to write. The folder is looked at when the first request is asked for, not here.
    disk
        The file operations; a test lets them fail.
    threads
        Writers beside the caller.

    Raises
    ------
    ExportError, RequestError
        If the settings make no sequence (`plan_sequence`).
    """

    def __init__(self, settings: SequenceSettings, *, disk: Disk | None = None, threads: int = 2) -> None:
        self._sequence = plan_sequence(settings)
        self._disk = disk or Disk()
        self._writers = WriterPool(threads)
        self._next = 0
        self._awaited: deque[tuple[int, RenderRequest]] = deque()
        self._found = 0
        self._written: set[int] = set()
        self._manifest: bytes | None = None
        self._is_open = False
        self._is_announced = False
        self._is_closed = False

    @property
    def settings(self) -> SequenceSettings:
        """What is being written."""
        return self._sequence.settings

    @property
    def total(self) -> int:
        """Number of frames of the whole sequence."""
        return len(self._sequence)

    @property
    def found(self) -> int:
        """Frames that an earlier run left, as far as the folder has been looked through."""
        return self._found

    @property
    def done(self) -> int:
        """Frames whose files are there: found or written."""
        return self._found + len(self._written)

    def next_request(self) -> RenderRequest | None:
        """Return the next picture to render, None when all frames are there or asked for.

        Raises
        ------
        ExportError
            If a different sequence or a foreign file is in the way, or writing has failed.
        """
        if self._is_closed:
            return None
        self._open()
        while self._next < self.total:
            index = self._next
            self._next += 1
            if self._is_there(index):
                self._found += 1
                continue
            self._announce()
            request = self._sequence.request(index)
            self._awaited.append((index, request))
            return request
        return None

    def deliver(self, frame: Frame) -> None:
        """Take a rendered frame; it is encoded and written on another thread.

        Waits while too many frames are waiting already, so that memory does not grow.

        Raises
        ------
        ExportError
            If the frame was not asked for, or an earlier one could not be written.
        """
        if self._is_closed:
            return  # it was under way when the person cancelled
        index = self._expected_index(frame)
        self._writers.submit(lambda: self._write(index, frame))

    def close(self, cancelled: bool) -> None:
        """Finish writing, end the threads and say in the manifest how it ended. May be called twice.

        After a failure the manifest is left as it is: "unfinished", so that the same export goes on.

        Raises
        ------
        ExportError
            If a frame or the manifest could not be written and `deliver` has not said so.
        """
        if self._is_closed:
            return
        self._is_closed = True
        self._writers.close()
        if self._writers.has_failed:
            return
        if self._is_open and (cancelled or self.done == self.total):
            self._write_manifest("complete" if self.done == self.total else "cancelled")

    def _expected_index(self, frame: Frame) -> int:
        """Return which frame of the sequence this is, and no longer wait for it."""
        for place, (index, request) in enumerate(self._awaited):
            if request == frame.request and not (frame.is_draft and request.resolution is None):
                del self._awaited[place]
                return index
        raise ExportError("The exporter got a picture that it had not asked for; start the export again.")

    def _open(self) -> None:
        """Look at the folder: clear away leftovers, refuse to touch what is not ours."""
        if self._is_open:
            return
        sequence = self._sequence
        remove_leftovers(self.settings.folder, sequence.owns, self._disk)
        manifest = find_manifest(sequence)
        if manifest is not None and manifest.is_of(sequence):
            self._manifest = manifest.data
        elif self.settings.overwrite:
            if manifest is not None:
                self._remove_surplus(manifest.frames_total)
        elif manifest is not None:
            raise TakenError(f"The folder {self.settings.folder} holds a different sequence named {self.settings.name}")
        else:
            self._refuse_foreign_frames()
        self._is_open = True

    def _refuse_foreign_frames(self) -> None:
        """Without a manifest of ours, a file under a frame's name that is not that frame belongs to somebody."""
        for name in self._names():
            index = self._sequence.frame_index(name)
            if index is not None and index < self.total and not self._is_there(index):
                raise TakenError(f"The folder {self.settings.folder} holds a {name} that is not part of this sequence")

    def _remove_surplus(self, frames_total: int) -> None:
        """Take away the frames of a longer sequence that this one replaces, which would seem to continue it."""
        for name in self._names():
            index = self._sequence.frame_index(name)
            if index is not None and self.total <= index < frames_total:
                try:
                    self._disk.remove(self.settings.folder / name)
                except OSError as error:
                    raise ExportError(
                        f"{name} of the sequence to be replaced could not be removed from {self.settings.folder}; "
                        "choose another folder.",
                        details=str(error),
                    ) from error

    def _names(self) -> list[str]:
        try:
            return sorted(os.listdir(self.settings.folder))
        except OSError:
            return []

    def _is_there(self, index: int) -> bool:
        """Tell whether a frame's file is whole and carries the recipe that it should."""
        try:
            scan = scan_png(self._sequence.path(index), KEYWORD, PICTURE_LIMITS.nbytes)
        except PictureError:
            return False
        return scan.is_whole and scan.text == document_to_text(self._sequence.document(index))

    def _announce(self) -> None:
        """Write the plan before the first frame, so that whatever is found later is known to be ours."""
        if not self._is_announced:
            self._write_manifest("unfinished")
            self._is_announced = True

    def _write_manifest(self, state: State) -> None:
        data = manifest_bytes(self._sequence, state, None if state == "unfinished" else self.done)
        if data != self._manifest:
            write_output(self._sequence.manifest_path, data, self._disk)
            self._manifest = data

    def _write(self, index: int, frame: Frame) -> None:
        write_output(self._sequence.path(index), encode_picture(frame, self._sequence.document(index)), self._disk)
        self._written.add(index)
