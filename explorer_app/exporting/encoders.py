"""Encodes frames and writes their files: on threads, and in processes where many cores encode many frames."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

from explorer_app.exporting.encoder_crew import EncoderCrew, Seat, Text, nbytes_of
from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from explorer_app.exporting.output_file import output_error
from gpu_backend import FileGroup, Frame

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

_Waiting = tuple[int, str, Frame]
"""Index of a frame, the name of its file, and its pixels."""

_Sent = tuple[list[_Waiting], list[tuple[Path, Path]]]
"""Frames that a process has, and part file and target of each."""


def usual_patience(threads: int, frames: int) -> float | None:
    """Return how long threads encode alone: for ever where they are few, not at all for many frames."""
    if threads < LEAST_THREADS or getattr(sys, "frozen", False):
        return None
    return 0.0 if frames >= _MANY_A_THREAD * threads else PATIENCE_S


class Encoders:
    """Takes frames in any order. No method but `close` waits.

    Threads encode at first. An export that goes on gets a process a thread, to which the thread hands its frames once
    the process has started. A process that dies costs nothing: its thread encodes what it had. After the first failure
    to write no further frame is begun.

    Parameters
    ----------
    count
        Threads.
    form, size
        How frames are written; `size` None for the size that they come in.
    text
        Gives a frame's recipe.
    files
        Moves the part files into place.
    changed
        Called, on any thread, after frames were encoded.
    patience_s
        How long the threads work alone; None for ever.
    """

    def __init__(
        self,
        count: int,
        form: PictureFormat,
        size: Size | None,
        text: Text,
        files: FileGroup,
        changed: Callable[[], None],
        patience_s: float | None = PATIENCE_S,
    ) -> None:
        self._form, self._size = form, size
        self._text = text
        self._files = files
        self._changed = changed
        self._patience_s = patience_s
        lock = threading.Lock()
        self._condition = threading.Condition(lock)
        """For the threads that encode."""
        self._backlog_condition = threading.Condition(lock)
        """For the one that starts processes."""
        self._waiting: deque[_Waiting] = deque()
        self._running = 0
        self._sample: Frame | None = None
        """A frame, which says how much memory the processes need; kept until they start."""
        self._chunk = 1
        self._count = count
        self._is_closing = False
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
            return output_error(error, self._files.folder / Path(str(error.filename)).name)
        return error or self._failure

    @property
    def has_room(self) -> bool:
        """Whether fewer frames are waiting and running than the processes need to stay busy."""
        return len(self._waiting) + self._running < self._count * (1 + _CHUNKS_WAITING) * self._chunk

    def accept(self, index: int, name: str, frame: Frame) -> None:
        """Encode a frame and write it as a file of that name soon."""
        with self._condition:
            if not self._is_closing:
                if self._patience_s is not None:
                    self._chunk = max(1, min(_CHUNK, _CHUNK_NBYTES // nbytes_of(frame)))
                self._waiting.append((index, name, frame))
                self._condition.notify()
                if self._is_starting:
                    self._sample = self._sample or frame
                    if self._is_busy:
                        self._backlog_condition.notify()

    def close(self, *, discard: bool) -> None:
        """Finish, or `discard`, the frames that wait, and end threads and processes. May be called twice."""
        with self._condition:
            self._is_closing = True
            if discard:
                self._waiting.clear()
            self._condition.notify_all()
            self._backlog_condition.notify_all()
        for thread in self._threads:
            thread.join()
        self._crew.close()

    # -- on their own threads ---------------------------------------------------------------------------------------

    @property
    def _is_busy(self) -> bool:
        """Whether every thread has a frame; without patience, whether there was one.

        A backlog would tell too late: threads that encode hold Python's lock so often that the renderer waits for it.
        """
        return not self._patience_s or len(self._waiting) + self._running >= self._count

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
        self._crew.start(self._form, self._size, self._text, frame, self._chunk, lambda: self._is_closing)

    def _run(self, seat: Seat) -> None:
        """Encode, or hand chunks to the process and see to its answers, until there is nothing left to do."""
        sent: deque[_Sent] = deque()
        while True:
            can_wait = not sent
            frames = self._take(can_wait) if can_wait or len(sent) < seat.chunks else []
            if not frames and not sent:
                return
            done: list[_Waiting] = []
            try:
                if frames:
                    done = self._begin(seat, frames, sent)
                else:
                    done = sent[0][0]
                    self._collect(seat, *sent.popleft())
            except BaseException as error:  # reported through `error`
                self._failure = self._failure or error
                done = done or frames
            if done:
                with self._condition:
                    self._running -= len(done)
                self._changed()

    def _take(self, can_wait: bool) -> list[_Waiting]:
        """Return a share of the frames that wait; none at the end, or now unless the thread `can_wait` for some."""
        with self._condition:
            if can_wait:
                self._condition.wait_for(lambda: self._waiting or self._is_closing)
            share = -(-len(self._waiting) // self._count)
            taken = [self._waiting.popleft() for _ in range(min(share, self._chunk))]
            self._running += len(taken)
            return taken

    def _begin(self, seat: Seat, frames: list[_Waiting], sent: deque[_Sent]) -> list[_Waiting]:
        """Hand frames to the process, or encode them here; return the finished ones."""
        if self._failure is not None:
            return frames
        if not seat.can_take([frame for _, _, frame in frames]):
            self._encode_here(frames)
            return frames
        try:
            files = self._files.reserve([name for _, name, _ in frames])
        except OSError as error:
            raise output_error(error, self._files.folder / frames[0][1]) from error
        parcels = [(index, aside, frame) for (index, _, frame), (aside, _) in zip(frames, files, strict=True)]
        if seat.send(self._form, parcels):
            sent.append((frames, files))
            return []
        self._files.discard([aside for aside, _ in files])
        self._encode_here(frames)
        return frames

    def _collect(self, seat: Seat, frames: list[_Waiting], files: list[tuple[Path, Path]]) -> None:
        """Wait for the process, and let the files that it wrote be moved into place."""
        answers = seat.answers()
        if answers is None:  # it died
            self._files.discard([aside for aside, _ in files])
            if self._failure is None:
                self._encode_here(frames)
            return
        self._files.put([file for file, answer in zip(files, answers, strict=True) if answer is None])
        for (aside, target), answer in zip(files, answers, strict=True):
            if answer is not None:
                self._files.discard([aside])
                self._failure = self._failure or (
                    output_error(answer, target) if isinstance(answer, OSError) else answer
                )

    def _encode_here(self, frames: list[_Waiting]) -> None:
        from explorer_app.exporting.formats.codecs import encode_frame  # when the first picture is written

        for index, name, frame in frames:
            if self._files.error is not None:
                return
            data = encode_frame(frame, self._text(index), self._form, self._size)
            try:
                self._files.add(name, data)
            except OSError as error:
                raise output_error(error, self._files.folder / name) from error
