"""Processes that encode pictures, as the process that feeds them sees them.

Frames lie in memory that all of them share, and small messages go through a pipe a process: both ends are the same
program, so a message is a pickle behind its length. `explorer_app.exporting.encoder_process` is the other end.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import pickle
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from gpu_backend import Frame, LazyModule, RenderRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

CHUNKS_IN_FLIGHT = 2
"""Chunks that a process has: it encodes one while the next is copied."""

_MOST_NBYTES = 1 << 30
"""Of shared memory, unless a single chunk a process takes more."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from explorer_app.exporting.encoder_process import main; main(json.loads(sys.argv[2]))"
)
_CAN_FORK = sys.platform == "linux"
"""Elsewhere each process is started for itself: Windows has no fork, and libraries of macOS do not survive one."""

READY = b"ready"
"""What a process says first."""

_LENGTH = struct.Struct("<I")

Text = Callable[[int], str]
"""Index of a frame -> its recipe, as `document_to_text` gives it. It can be pickled."""

Answer = BaseException | None
"""What writing a part file raised."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the processes of an export need once.

    Attributes
    ----------
    memory
        Descriptor of the shared memory; on Windows its name.
    """

    form: PictureFormat
    size: Size | None
    text: Text
    memory: int | str
    nbytes: int


@dataclass(frozen=True, slots=True)
class Parcel:
    """A frame without its pixels.

    Attributes
    ----------
    aside
        The part file to write.
    arrays
        Place in the shared memory, shape and data type of the pixels, and of the floats if the format stores them.
    request
        None for formats that store bytes.
    """

    index: int
    aside: str
    arrays: tuple[tuple[int, tuple[int, ...], str], ...]
    has_alpha: bool
    request: RenderRequest | None


class SharedMemory:
    """Memory that child processes can map; it has no name in a file system, so nothing is left of it.

    Parameters
    ----------
    source
        The descriptor or the name of memory to map; None for new memory.
    """

    def __init__(self, nbytes: int, source: int | str | None = None) -> None:
        self.source: int | str
        if sys.platform == "win32":
            self.source = source or f"latentloom-{os.getpid()}-{os.urandom(8).hex()}"
            self.map = mmap.mmap(-1, nbytes, tagname=str(self.source))
        else:
            if source is None:
                source = _unnamed_file()
                os.ftruncate(source, nbytes)
            assert isinstance(source, int)
            self.source = source
            self.map = mmap.mmap(source, nbytes)

    def release(self) -> None:
        """Close the descriptor. The memory lives as long as an array uses it."""
        if isinstance(self.source, int):
            os.close(self.source)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("latentloom-frames", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class Seat:
    """A process and its part of the shared memory. The crew starts it; once `is_ready`, one thread feeds it.

    Parameters
    ----------
    memory
        (bytes) uint8: this process's part.
    place
        Where that begins in the shared memory.
    """

    def __init__(self) -> None:
        self.is_ready = False
        self.pid = 0
        self.chunk_frames = 0
        self._memory: NDArray[np.uint8] | None = None
        self._place = self._frame_nbytes = 0
        self._chunks = 0
        self._sent = 0
        self._pipes: tuple[IO[bytes], IO[bytes]] | None = None
        """To the process, and from it."""

    @property
    def chunks(self) -> int:
        """How many chunks may be in flight."""
        return self._chunks

    def take_memory(self, memory: NDArray[np.uint8], place: int, chunks: int, chunk_frames: int) -> None:
        """Get a part of the shared memory, for so many chunks of frames."""
        self._memory, self._place = memory, place
        self._chunks, self.chunk_frames = chunks, chunk_frames
        self._frame_nbytes = len(memory) // (chunks * chunk_frames)

    def take_pipes(self, outgoing: IO[bytes], incoming: IO[bytes]) -> None:
        """Get the pipes to and from the process, which may not have begun yet."""
        self._pipes = outgoing, incoming

    def greet(self) -> None:
        """Wait for the greeting of the process; without one it is never ready."""
        assert self._pipes is not None
        with contextlib.suppress(OSError, EOFError):
            greeting = _received(self._pipes[1], len(READY) + _LENGTH.size)
            self.pid = _LENGTH.unpack(greeting[len(READY) :])[0]
            self.is_ready = greeting.startswith(READY)

    def can_take(self, frames: Sequence[Frame]) -> bool:
        """Return whether there is a process, and the frames fit into a chunk of its memory."""
        return (
            self.is_ready
            and len(frames) <= self.chunk_frames
            and all(nbytes_of(frame) <= self._frame_nbytes for frame in frames)
        )

    def send(self, form: PictureFormat, frames: Sequence[tuple[int, Path, Frame]]) -> bool:
        """Copy frames into the shared memory, and ask for their part files; False if the process is gone."""
        assert self._memory is not None
        assert self._pipes is not None
        needs_values = form.facts.needs_values
        first = (self._sent % self._chunks) * self.chunk_frames
        parcels = []
        for number, (index, aside, frame) in enumerate(frames, first):
            at = number * self._frame_nbytes
            arrays = []
            for array in (frame.pixels, frame.image) if needs_values and frame.image is not None else (frame.pixels,):
                end = at + array.nbytes
                self._memory[at:end] = array.reshape(-1).view(np.uint8)
                arrays.append((self._place + at, array.shape, array.dtype.str))
                at = end
            parcels.append(
                Parcel(index, str(aside), tuple(arrays), frame.has_alpha, frame.request if needs_values else None)
            )
        try:
            send_message(self._pipes[0], tuple(parcels))
        except OSError:
            self.close()
            return False
        self._sent += 1
        return True

    def answers(self) -> tuple[Answer, ...] | None:
        """Wait, and return what became of the oldest chunk in flight; None if the process is gone."""
        if self._pipes is None:
            return None
        try:
            answers: tuple[Answer, ...] | None = received_message(self._pipes[1])
        except (OSError, EOFError, pickle.UnpicklingError):
            answers = None
        if answers is None:
            self.close()
        return answers

    def close(self) -> None:
        """Let the process end after what it has. May be called twice."""
        self.is_ready = False
        pipes, self._pipes = self._pipes, None
        for pipe in pipes or ():
            with contextlib.suppress(OSError):
                pipe.close()


class EncoderCrew:
    """Processes that encode, each with a seat. Nothing is started before `start`."""

    def __init__(self, count: int) -> None:
        self.seats = [Seat() for _ in range(count)]
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def is_started(self) -> bool:
        """Whether processes were started."""
        return bool(self._running)

    def start(
        self,
        form: PictureFormat,
        size: Size | None,
        text: Text,
        frame: Frame,
        chunk_frames: int,
        is_closing: Callable[[], bool],
    ) -> None:
        """Start the processes and wait until they are ready. A system that refuses leaves the seats empty.

        Parameters
        ----------
        frame
            A later frame; larger ones do not fit.
        chunk_frames
            Frames that go to a process at a time.
        is_closing
            Whether the export is about to end; then nothing more is started.
        """
        # On whole pages, for the arrays of the processes.
        frame_nbytes = -(-nbytes_of(frame) // mmap.PAGESIZE) * mmap.PAGESIZE
        seat_nbytes = frame_nbytes * chunk_frames
        chunks = CHUNKS_IN_FLIGHT if seat_nbytes * CHUNKS_IN_FLIGHT * len(self.seats) <= _MOST_NBYTES else 1
        seat_nbytes *= chunks
        try:
            memory = SharedMemory(seat_nbytes * len(self.seats))
        except (OSError, ValueError):
            return
        array = np.frombuffer(memory.map, np.uint8)
        for number, seat in enumerate(self.seats):
            place = number * seat_nbytes
            seat.take_memory(array[place : place + seat_nbytes], place, chunks, chunk_frames)
        order = pickle.dumps(Order(form, size, text, memory.source, seat_nbytes * len(self.seats)))
        try:
            if _CAN_FORK:
                self._fork(order, memory)
            else:
                self._start_each(order, memory)
        except (OSError, ValueError):
            self.close()
            return
        finally:
            memory.release()
        for seat in self.seats:
            if not is_closing():
                seat.greet()

    def close(self) -> None:
        """End the processes: ready ones by the end of their pipes. May be called twice."""
        is_ready = any(seat.is_ready for seat in self.seats)
        for seat in self.seats:
            seat.close()
        running, self._running = self._running, []
        for process in running:
            if not is_ready:
                process.kill()
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
            process.wait()

    def _fork(self, order: bytes, memory: SharedMemory) -> None:
        """Start one process, which imports what encoding needs and becomes as many as there are seats."""
        theirs: list[tuple[int, int]] = []
        try:
            for seat in self.seats:
                in_read, in_write = os.pipe()
                out_read, out_write = os.pipe()
                theirs.append((in_read, out_write))
                seat.take_pipes(os.fdopen(in_write, "wb", 0), os.fdopen(out_read, "rb", 0))
            self._popen(order, memory, theirs)
        finally:
            for pair in theirs:
                for descriptor in pair:
                    os.close(descriptor)

    def _start_each(self, order: bytes, memory: SharedMemory) -> None:
        for seat in self.seats:
            process = self._popen(order, memory, [])
            assert process.stdin is not None
            assert process.stdout is not None
            seat.take_pipes(process.stdin, process.stdout)

    def _popen(self, order: bytes, memory: SharedMemory, pairs: list[tuple[int, int]]) -> subprocess.Popen[bytes]:
        passed = [descriptor for pair in pairs for descriptor in pair]
        if isinstance(memory.source, int):
            passed.append(memory.source)
        process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), json.dumps(pairs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if pairs else subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            pass_fds=passed,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._running.append(process)
        assert process.stdin is not None
        _send(process.stdin, _LENGTH.pack(len(order)) + order)
        return process


def nbytes_of(frame: Frame) -> int:
    """Return the size of a frame's pixels and floats in bytes."""
    return int(frame.pixels.nbytes) + (0 if frame.image is None else int(frame.image.nbytes))


def send_message(pipe: IO[bytes], message: Any) -> None:
    """Write a message whole."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    _send(pipe, _LENGTH.pack(len(data)) + data)


def received_message(pipe: IO[bytes]) -> Any:
    """Read a message; raise EOFError if the other end is gone."""
    return pickle.loads(_received(pipe, _LENGTH.unpack(_received(pipe, _LENGTH.size))[0]))


def greeting(pid: int) -> bytes:
    """Return what a process says first."""
    return READY + _LENGTH.pack(pid)


def _received(pipe: IO[bytes], nbytes: int) -> bytes:
    """Read so many bytes; raise EOFError if the other end is gone."""
    data = b""
    while len(data) < nbytes:
        more = pipe.read(nbytes - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _send(pipe: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[pipe.write(rest) or 0 :]
