"""Processes that encode pictures and write their files, as the process that feeds them sees them.

Frames lie in memory that all of them share, and small messages go through a pipe a process: both ends are the same
program, so a message is a pickle behind its length. A chunk of frames is one message, and so is its answer, which comes
when the files are in place. `explorer_app.exporting.encoder_process` is the other end.
"""

from __future__ import annotations

import contextlib
import json
import math
import mmap
import os
import pickle
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from explorer_app.exporting.formats.picture_format import PictureFormat, Size
from gpu_backend import Frame, FrameTimings, LazyModule, RenderRequest, dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

CHUNKS_IN_FLIGHT = 3
"""Chunks that a process has: it flushes the files of one, encodes another, and finds the next one there."""

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

Waiting = tuple[int, str, Frame]
"""Index of a frame, the name of its file, and its pixels."""

_NO_REQUEST = RenderRequest("", ())


class Answer(NamedTuple):
    """What became of a chunk: how many of its files are in place, and what the first failure raised."""

    written: int
    error: BaseException | None


class Layout(NamedTuple):
    """What the frames of a chunk have in common: shapes of pixels (uint8) and of floats, where they are stored."""

    pixels: tuple[int, ...]
    image: tuple[int, ...] | None
    has_alpha: bool

    @classmethod
    def of(cls, frame: Frame, needs_values: bool) -> Layout:
        """Return the layout of a frame, whose floats count if the format `needs_values`."""
        image = frame.image.shape if needs_values and frame.image is not None else None
        return cls(frame.pixels.shape, image, frame.has_alpha)

    @property
    def nbytes(self) -> int:
        """Size of a frame in bytes."""
        return math.prod(self.pixels) + (0 if self.image is None else 4 * math.prod(self.image))


@dataclass(frozen=True, slots=True)
class Order:
    """What the processes of an export need once.

    Attributes
    ----------
    folder
        Where the files go.
    memory
        Descriptor of the shared memory; on Windows its name.
    """

    form: PictureFormat
    size: Size | None
    text: Text
    folder: Path
    memory: int | str
    nbytes: int


class Chunk(NamedTuple):
    """Frames in shared memory.

    Attributes
    ----------
    place, stride
        Where the first one lies, and how many bytes further the next one.
    names
        Index and file name of each.
    requests
        That of each for formats that store floats; otherwise empty.
    """

    place: int
    stride: int
    layout: Layout
    names: tuple[tuple[int, str], ...]
    requests: tuple[RenderRequest, ...]

    def frames(self, memory: NDArray[np.uint8]) -> list[Waiting]:
        """Return the frames, as arrays over the shared memory."""
        layout = self.layout
        pixels_nbytes = math.prod(layout.pixels)
        taken = []
        for number, (index, name) in enumerate(self.names):
            start = self.place + number * self.stride
            image = None
            if layout.image is not None:
                end = start + pixels_nbytes + 4 * math.prod(layout.image)
                image = memory[start + pixels_nbytes : end].view(np.float32).reshape(layout.image)
            frame = Frame(
                self.requests[number] if self.requests else _NO_REQUEST,
                memory[start : start + pixels_nbytes].reshape(layout.pixels),
                FrameTimings(0.0, 0.0, 0.0),
                has_alpha=layout.has_alpha,
                image=image,
            )
            taken.append((index, name, frame))
        return taken


class SharedMemory:
    """Memory that child processes can map; it has no name in a file system, so nothing is left of it.

    Parameters
    ----------
    source
        The descriptor, which `release` closes, or the name of memory to map; None for new memory.

    Raises
    ------
    OSError, ValueError
        If the system refuses; nothing is left then.
    """

    def __init__(self, nbytes: int, source: int | str | None = None) -> None:
        self.source: int | str
        if sys.platform == "win32":
            self.source = source or f"latentloom-{os.getpid()}-{os.urandom(8).hex()}"
            self.map = mmap.mmap(-1, nbytes, tagname=str(self.source))
        else:
            self.source = _unnamed_file() if source is None else source
            assert isinstance(self.source, int)
            try:
                if source is None:
                    os.ftruncate(self.source, nbytes)
                self.map = mmap.mmap(self.source, nbytes)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Close the descriptor. The memory lives as long as an array uses it."""
        if isinstance(self.source, int):
            os.close(self.source)


def _unnamed_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("latentloom-frames", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class EncoderProcess:
    """A process and its part of the shared memory. The crew starts it; once `is_ready`, one thread feeds it."""

    def __init__(self) -> None:
        self.is_ready = False
        self.pid = 0
        self.chunk_frames = 0
        self._memory: NDArray[np.uint8] | None = None
        """(bytes): the whole shared memory."""
        self._place = self._frame_nbytes = 0
        self._chunks = 0
        self._sent = 0
        self._pipes: tuple[IO[bytes], IO[bytes]] | None = None
        """To the process, and from it."""

    @property
    def chunks(self) -> int:
        """How many chunks may be in flight."""
        return self._chunks

    def take_memory(
        self, memory: NDArray[np.uint8], place: int, chunks: int, chunk_frames: int, frame_nbytes: int
    ) -> None:
        """Take a part of the shared memory, from `place` on, for `chunks` chunks of frames of a fixed size."""
        self._memory, self._place = memory, place
        self._chunks, self.chunk_frames, self._frame_nbytes = chunks, chunk_frames, frame_nbytes

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

    def send(self, form: PictureFormat, frames: Sequence[Waiting]) -> Chunk | None:
        """Copy frames into the shared memory and ask for their files; None if they do not fit or the process is gone.

        The frames may be dropped then: `lost` returns the copies.
        """
        needs_values = form.facts.needs_values
        layout = Layout.of(frames[0][2], needs_values)
        if not self.is_ready or len(frames) > self.chunk_frames or layout.nbytes > self._frame_nbytes:
            return None
        assert self._memory is not None
        assert self._pipes is not None
        place = self._place + self._sent % self._chunks * self.chunk_frames * self._frame_nbytes
        at = place
        for _, _, frame in frames:
            if Layout.of(frame, needs_values) != layout:
                return None
            end = at + frame.pixels.nbytes
            self._memory[at:end] = frame.pixels.reshape(-1)
            if layout.image is not None and frame.image is not None:
                self._memory[end : end + frame.image.nbytes] = frame.image.reshape(-1).view(np.uint8)
            at += self._frame_nbytes
        chunk = Chunk(
            place,
            self._frame_nbytes,
            layout,
            tuple((index, name) for index, name, _ in frames),
            tuple(frame.request for _, _, frame in frames) if needs_values else (),
        )
        try:
            send_message(self._pipes[0], chunk)
        except OSError:
            self.close()
            return None
        self._sent += 1
        return chunk

    def answer(self) -> Answer | None:
        """Wait, and return what became of the oldest chunk in flight; None if the process is gone."""
        if self._pipes is None:
            return None
        try:
            answer: Answer | None = received_message(self._pipes[1])
        except (OSError, EOFError, pickle.UnpicklingError):
            answer = None
        if answer is None:
            self.close()
        return answer

    def lost(self, chunk: Chunk) -> list[Waiting]:
        """Return the frames of a chunk whose process is gone."""
        assert self._memory is not None
        return chunk.frames(self._memory)

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
        self.seats = [EncoderProcess() for _ in range(count)]
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
        folder: Path,
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
        chunks = max(1, min(CHUNKS_IN_FLIGHT, _MOST_NBYTES // (seat_nbytes * len(self.seats))))
        seat_nbytes *= chunks
        try:
            memory = SharedMemory(seat_nbytes * len(self.seats))
        except (OSError, ValueError):
            return
        array = np.frombuffer(memory.map, np.uint8)
        for number, seat in enumerate(self.seats):
            seat.take_memory(array, number * seat_nbytes, chunks, chunk_frames, frame_nbytes)
        order = pickle.dumps(Order(form, size, text, folder, memory.source, seat_nbytes * len(self.seats)))
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
    """Return the first message of a process."""
    return READY + _LENGTH.pack(pid)


def _received(pipe: IO[bytes], nbytes: int) -> bytes:
    """Read exactly `nbytes` bytes; raise EOFError if the other end is closed."""
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
