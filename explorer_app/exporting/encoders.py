"""Encodes frames and writes their files: on threads, and in processes where many cores encode many frames."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from explorer_app.exporting.encoder_crew import Chunk, EncoderCrew, EncoderProcess, Text, Waiting, nbytes_of
from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from explorer_app.exporting.output_file import output_error
from gpu_backend import Disk, FileGroup, Frame, remove_leftovers

LEAST_THREADS = 4
"""Fewer threads seldom wait for Python's lock."""

PATIENCE_S = 0.5
"""What processes take to start; a shorter export has none."""

_MANY_A_THREAD = 32
"""Frames a thread from which on an export takes longer than the start, so that there is nothing to wait for."""

_CHUNK_NBYTES = 4 << 20
_CHUNK = 16
"""Frames, and bytes of them, that go to a process at a time."""

_CHUNKS_WAITING = 2

_GATHERING_S = 0.01
"""Frames that come further apart than this do not wait for a chunk to become full."""


def usual_patience(threads: int, frames: int) -> float | None:
    """Return how long threads encode alone: for ever where they are few, not at all for many frames."""
    if threads < LEAST_THREADS or getattr(sys, "frozen", False):
        return None
    return 0.0 if frames >= _MANY_A_THREAD * threads else PATIENCE_S


class Encoders:
    """Takes frames in any order and writes them as files of one folder. No method but `close` waits.

    Threads encode at first. An export that goes on gets a process a thread, to which the thread hands chunks of frames
    once the process has started; from then on this process copies pixels and counts. A process that dies costs nothing:
    its thread encodes what it had. After the first failure to write no further frame is begun.

    Parameters
    ----------
    count
        Threads.
    form, size
        How frames are written; `size` None for the size that they come in.
    text
        Gives a frame's recipe.
    folder
        Where the files go; made when the first one is written.
    changed
        Called, on any thread, after frames were encoded or came into place.
    patience_s
        How long the threads work alone; None for ever.
    disk
        The file operations of the threads.
    clock
        Seconds, as of `time.monotonic`.
    """

    def __init__(
        self,
        count: int,
        form: PictureFormat,
        size: Size | None,
        text: Text,
        folder: Path,
        changed: Callable[[], None],
        patience_s: float | None = PATIENCE_S,
        *,
        disk: Disk | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._form, self._size = form, size
        self._text = text
        self._folder = folder
        self._changed = changed
        self._patience_s = patience_s
        self._clock = clock
        self._files = FileGroup(folder, disk, changed)
        """Of frames that are encoded here."""
        lock = threading.Lock()
        self._condition = threading.Condition(lock)
        """For the threads that encode."""
        self._backlog_condition = threading.Condition(lock)
        """For the one that starts processes."""
        self._gathering: list[Waiting] = []
        """A chunk that is not full."""
        self._chunks: deque[list[Waiting]] = deque()
        self._pending = 0
        """Frames that were accepted and are not encoded."""
        self._written = 0
        """Files that processes wrote."""
        self._accepted_s = clock()
        self._sample: Frame | None = None
        """A frame, which says how much memory the processes need; kept until they start."""
        self._chunk = 1
        """Frames of a chunk; 1 while the threads encode."""
        self._count = count
        self._is_closing = False
        self._has_lost_process = False
        self._failure: BaseException | None = None
        self._crew = EncoderCrew(count)
        """Not started yet; never, without patience."""
        self._threads = [
            threading.Thread(target=self._run, args=(seat,), name=f"export-encoder-{number}", daemon=True)
            for number, seat in enumerate(self._crew.seats)
        ]
        self._is_starting = patience_s is not None
        """Whether there are no processes yet, but may be."""
        if patience_s is not None:
            self._threads.append(threading.Thread(target=self._start, name="export-encoders-start", daemon=True))
        for thread in self._threads:
            thread.start()

    @property
    def error(self) -> BaseException | None:
        """What the first frame to fail raised, or why files could not be moved into place."""
        error = self._files.error
        if isinstance(error, OSError):
            return output_error(error, self._folder / Path(str(error.filename)).name)
        return error or self._failure

    @property
    def written(self) -> int:
        """Number of files that are in place."""
        return self._written + self._files.written

    @property
    def has_room(self) -> bool:
        """Whether encoders and disk keep up: fewer frames are pending than the processes need to stay busy."""
        return self._pending < self._count * (1 + _CHUNKS_WAITING) * self._chunk and self._files.has_room

    def accept(self, index: int, name: str, frame: Frame) -> None:
        """Encode a frame and write it as a file of that name soon."""
        now_s = self._clock()
        with self._condition:
            if self._is_closing:
                return
            is_slow = now_s - self._accepted_s > _GATHERING_S
            self._accepted_s = now_s
            self._pending += 1
            self._gathering.append((index, name, frame))
            if is_slow or len(self._gathering) >= self._chunk:
                self._enqueue()
            if self._is_starting:
                self._sample = self._sample or frame
                if self._is_busy:
                    self._backlog_condition.notify()

    def close(self, *, discard: bool) -> None:
        """Finish, or `discard`, the frames that wait, and end threads and processes. May be called twice."""
        with self._condition:
            self._is_closing = True
            if discard:
                self._gathering.clear()
                self._chunks.clear()
            self._enqueue()
            self._condition.notify_all()
            self._backlog_condition.notify_all()
        for thread in self._threads:
            thread.join()
        self._crew.close()
        self._files.close()
        if self._has_lost_process:
            self._has_lost_process = False
            remove_leftovers(self._folder, lambda name: True)

    def _enqueue(self) -> None:
        """Let a thread have the frames that were gathered. The lock is held."""
        if self._gathering:
            self._chunks.append(self._gathering)
            self._gathering = []
            self._condition.notify()

    # -- on their own threads ---------------------------------------------------------------------------------------

    @property
    def _is_busy(self) -> bool:
        """Whether every thread has a frame; without patience, whether there was one.

        A backlog would tell too late: threads that encode hold Python's lock so often that the renderer waits for it.
        """
        return not self._patience_s or self._pending >= self._count

    def _start(self) -> None:
        """Start the processes if the threads are busy, also after a while."""

        def can_start() -> bool:
            return self._is_closing or (self._sample is not None and self._is_busy)

        with self._condition:
            self._backlog_condition.wait_for(can_start)
            if self._backlog_condition.wait_for(lambda: self._is_closing, self._patience_s):
                return
            self._backlog_condition.wait_for(can_start)
            frame, self._sample, self._is_starting = self._sample, None, False
            if self._is_closing or frame is None:
                return
        chunk = max(1, min(_CHUNK, _CHUNK_NBYTES // nbytes_of(frame)))
        self._crew.start(self._form, self._size, self._text, self._folder, frame, chunk, lambda: self._is_closing)
        if any(seat.is_ready for seat in self._crew.seats):
            self._chunk = chunk

    def _run(self, seat: EncoderProcess) -> None:
        """Encode, or hand chunks to the process and see to its answers, until there is nothing left to do."""
        sent: deque[Chunk] = deque()
        while True:
            can_wait = not sent
            frames = self._take(can_wait) if can_wait or len(sent) < seat.chunks else []
            if not frames and not sent:
                return
            done = 0
            try:
                if not frames:
                    done = len(sent[0].names)
                    self._collect(seat, sent.popleft())
                elif self._failure is None and (chunk := seat.send(self._form, frames)) is not None:
                    sent.append(chunk)
                else:
                    done = len(frames)
                    self._encode_here(frames)
            except BaseException as error:  # reported through `error`
                self._failure = self._failure or error
                done = done or len(frames)
            frames = []  # a waiting thread holds no pixels
            if done:
                with self._condition:
                    self._pending -= done
                self._changed()

    def _take(self, can_wait: bool) -> list[Waiting]:
        """Return a chunk that waits; nothing at the end, or now unless the thread `can_wait` for one."""
        with self._condition:
            if can_wait:
                self._condition.wait_for(lambda: self._chunks or self._is_closing)
            return self._chunks.popleft() if self._chunks else []

    def _collect(self, seat: EncoderProcess, chunk: Chunk) -> None:
        """Wait until the process has written a chunk, and count its files."""
        answer = seat.answer()
        if answer is None:  # it died
            self._has_lost_process = True
            self._encode_here(seat.lost(chunk))
            return
        with self._condition:
            self._written += answer.written
        if isinstance(answer.error, OSError):
            raise output_error(answer.error, self._folder / Path(str(answer.error.filename)).name) from answer.error
        if answer.error is not None:
            raise answer.error

    def _encode_here(self, frames: list[Waiting]) -> None:
        from explorer_app.exporting.formats.codecs import encode_frame  # when the first picture is written

        for index, name, frame in frames:
            if self._failure is not None or self._files.error is not None:
                return
            data = encode_frame(frame, self._text(index), self._form, self._size)
            try:
                self._files.add(name, data)
            except OSError as error:
                raise output_error(error, self._folder / name) from error
