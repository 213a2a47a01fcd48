"""Encodes frames and writes their files: on threads, and in processes where many cores encode many frames."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from explorer_app.exporting.output_file import output_error
from gpu_backend import FileGroup, Frame, RenderRequest

LEAST_THREADS = 4
"""Fewer threads seldom wait for Python's lock."""

PATIENCE_S = 0.5
"""What a process takes to start; a shorter export has none."""

_BATCH_NBYTES = 4 << 20
_BATCH = 8
"""Frames, and bytes of them, that go to a process at a time."""

_BATCHES_WAITING = 2
_PIPE_NBYTES = 1 << 20
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from explorer_app.exporting.encoder_process import main; main()"
)

LENGTH = struct.Struct("<I")
READY = b"ready"
"""What a process says first."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A frame without its pixels.

    Attributes
    ----------
    aside
        The part file to write.
    text
        The picture's recipe.
    arrays
        Shape and data type of the pixels, and of the floats if the format stores them.
    request
        None for formats that store bytes.
    """

    aside: str
    text: str
    arrays: tuple[tuple[tuple[int, ...], str], ...]
    has_alpha: bool
    request: RenderRequest | None


@dataclass(frozen=True, slots=True)
class Header:
    """What comes before the pixels of some frames."""

    form: PictureFormat
    size: Size | None
    parcels: tuple[Parcel, ...]


Answer = BaseException | None
"""What writing a part file raised."""

Text = Callable[[int], str]
"""Index of a frame -> its recipe, as `document_to_text` gives it."""


def usual_patience(threads: int) -> float | None:
    """Return how long so many threads encode alone: for ever where they seldom wait for Python's lock."""
    return PATIENCE_S if threads >= LEAST_THREADS and not getattr(sys, "frozen", False) else None


class Encoders:
    """Takes frames in any order. No method but `close` waits.

    Threads encode at first. An export that goes on gets a process a thread, to which the thread sends its frames once
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
        self._waiting: deque[tuple[int, str, Frame]] = deque()
        self._running = 0
        self._batch = 1
        self._count = count
        self._is_closing = False
        self._failure: BaseException | None = None
        self._processes = [_Process() for _ in range(count)]
        """Not started yet; never, without patience."""
        self._threads = [
            threading.Thread(target=self._run, args=(process,), name=f"export-encoder-{number}", daemon=True)
            for number, process in enumerate(self._processes)
        ]
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
        return len(self._waiting) + self._running < self._count * (1 + _BATCHES_WAITING) * self._batch

    def accept(self, index: int, name: str, frame: Frame) -> None:
        """Encode a frame and write it as a file of that name soon."""
        with self._condition:
            if not self._is_closing:
                if self._patience_s is not None:
                    self._batch = max(1, min(_BATCH, _BATCH_NBYTES // frame.pixels.nbytes))
                self._waiting.append((index, name, frame))
                self._condition.notify()
                if self._has_backlog:
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
        for process in self._processes:
            process.close()

    # -- on their own threads ---------------------------------------------------------------------------------------

    @property
    def _has_backlog(self) -> bool:
        return len(self._waiting) >= self._count

    def _start(self) -> None:
        """Start the processes if the threads do not keep up, also after a while."""
        with self._condition:
            self._backlog_condition.wait_for(lambda: self._has_backlog or self._is_closing)
            if self._backlog_condition.wait_for(lambda: self._is_closing, self._patience_s):
                return
            self._backlog_condition.wait_for(lambda: self._has_backlog or self._is_closing)
            if self._is_closing:
                return
        for process in self._processes:
            process.start()
        for process in self._processes:
            process.wait_until_ready(lambda: self._is_closing)

    def _run(self, process: _Process) -> None:
        while batch := self._take():
            try:
                if self._failure is None:
                    self._encode(process, batch)
            except BaseException as error:  # reported through `error`
                self._failure = self._failure or error
            finally:
                with self._condition:
                    self._running -= len(batch)
            self._changed()

    def _take(self) -> list[tuple[int, str, Frame]]:
        """Wait for frames and return a share of them; none at the end."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._is_closing)
            share = -(-len(self._waiting) // self._count)
            taken = [self._waiting.popleft() for _ in range(min(share, self._batch))]
            self._running += len(taken)
            return taken

    def _encode(self, process: _Process, batch: list[tuple[int, str, Frame]]) -> None:
        texts = [self._text(index) for index, _, _ in batch]
        if not process.is_ready:
            self._encode_here(batch, texts)
            return
        try:
            reserved = [self._files.reserve(name) for _, name, _ in batch]
        except OSError as error:
            raise output_error(error, self._files.folder / batch[0][1]) from error
        parcels = tuple(
            self._parcel(aside, text, frame)
            for (aside, _), text, (_, _, frame) in zip(reserved, texts, batch, strict=True)
        )
        answers = process.encoded(Header(self._form, self._size, parcels), [frame for _, _, frame in batch])
        if answers is None:  # it died
            for aside, _ in reserved:
                self._files.discard(aside)
            self._encode_here(batch, texts)
            return
        failure: BaseException | None = None
        for (aside, target), answer in zip(reserved, answers, strict=True):
            if answer is None:
                self._files.put(aside, target)
            else:
                self._files.discard(aside)
                failure = failure or (output_error(answer, target) if isinstance(answer, OSError) else answer)
        if failure is not None:
            raise failure

    def _encode_here(self, batch: list[tuple[int, str, Frame]], texts: list[str]) -> None:
        from explorer_app.exporting.formats.codecs import encode_frame  # when the first picture is written

        for text, (_, name, frame) in zip(texts, batch, strict=True):
            if self._files.error is not None:
                return
            data = encode_frame(frame, text, self._form, self._size)
            try:
                self._files.add(name, data)
            except OSError as error:
                raise output_error(error, self._files.folder / name) from error

    def _parcel(self, aside: Path, text: str, frame: Frame) -> Parcel:
        needs_values = self._form.facts.needs_values
        arrays: list[Any] = [frame.pixels]
        if needs_values and frame.image is not None:
            arrays.append(frame.image)
        facts = tuple((array.shape, array.dtype.str) for array in arrays)
        return Parcel(str(aside), text, facts, frame.has_alpha, frame.request if needs_values else None)


class _Process:
    """A process. One thread starts it; once `is_ready`, another sends frames."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None
        self.is_ready = False

    def start(self) -> None:
        """Start it; a system that refuses leaves it as it was."""
        with contextlib.suppress(OSError, ValueError):
            self._running = subprocess.Popen(
                [sys.executable, "-c", _START, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                pipesize=_PIPE_NBYTES if sys.platform == "linux" else -1,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )

    def wait_until_ready(self, is_closing: Callable[[], bool]) -> None:
        """Wait for its greeting, unless the export is about to end."""
        running = self._running
        if running is None or running.stdout is None:
            return
        if is_closing():
            self.close()
        elif running.stdout.read(len(READY)) == READY:
            self.is_ready = True

    def encoded(self, header: Header, frames: list[Frame]) -> tuple[Answer, ...] | None:
        """Send frames, wait, and return what became of each; None if there is no process, or it died."""
        running = self._running
        if not self.is_ready or running is None or running.stdin is None or running.stdout is None:
            return None
        data = pickle.dumps(header)
        try:
            _send(running.stdin, LENGTH.pack(len(data)) + data)
            for parcel, frame in zip(header.parcels, frames, strict=True):
                for array in (frame.pixels, frame.image)[: len(parcel.arrays)]:
                    _send(running.stdin, array)
            length = _received(running.stdout, LENGTH.size)
            answers: tuple[Answer, ...] = pickle.loads(_received(running.stdout, LENGTH.unpack(length)[0]))
        except (OSError, EOFError, pickle.UnpicklingError):
            self.close()
            return None
        return answers

    def close(self) -> None:
        """End it, also while it starts. May be called twice."""
        running, self._running = self._running, None
        if running is None:
            return
        if not self.is_ready:
            running.kill()
        self.is_ready = False
        for pipe in (running.stdin, running.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        running.wait()


def _received(pipe: IO[bytes], nbytes: int) -> bytes:
    """Read so many bytes; raise EOFError if the other end is gone."""
    data = b""
    while len(data) < nbytes:
        more = pipe.read(nbytes - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _send(pipe: IO[bytes], data: Any) -> None:
    """Write bytes, or the bytes of a contiguous array, whole."""
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[pipe.write(rest) or 0 :]
