"""A process that encodes pictures: frames come in by a pipe, part files are written, and a line a frame goes back.

Threads that encode small pictures wait for Python's lock most of the time: 256 x 256 PNG came to 760 a second with
fifteen threads on sixteen cores. Processes have a lock each. `explorer_app.exporting.encoders` starts and feeds them.

Both ends are the same program, so messages are pickles: the length of a header as four bytes, the header, then the
pixels of each frame as they lie in memory.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from explorer_app.exporting.encoders import LENGTH, READY, Answer, Header, Parcel
from explorer_app.exporting.formats.codecs import encode_frame
from gpu_backend import Frame, FrameTimings, RenderRequest, write_part

_NO_REQUEST = RenderRequest("", ())


def main() -> None:
    """Encode until the pipe is closed. Its other end decides on Ctrl-C and on errors."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    buffers: dict[int, bytearray] = {}
    outgoing.write(READY)
    outgoing.flush()
    while (header := _header(incoming)) is not None:
        answers: list[Answer] = []
        for parcel, arrays in _received(incoming, header.parcels, buffers):
            answers.append(_written(header, parcel, arrays))
        data = pickle.dumps(tuple(answers))
        outgoing.write(LENGTH.pack(len(data)) + data)
        outgoing.flush()


def _header(incoming: IO[bytes]) -> Header | None:
    length = incoming.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    header: Header = pickle.loads(incoming.read(LENGTH.unpack(length)[0]))
    return header


def _received(
    incoming: IO[bytes], parcels: Sequence[Parcel], buffers: dict[int, bytearray]
) -> Iterator[tuple[Parcel, tuple[np.ndarray[Any, Any], ...]]]:
    """Read frame after frame into buffers that stay, so that no picture needs new pages of memory."""
    for parcel in parcels:
        arrays = []
        for place, (shape, kind) in enumerate(parcel.arrays):
            nbytes = int(np.prod(shape)) * np.dtype(kind).itemsize
            if len(buffers.get(place, b"")) != nbytes:
                buffers[place] = bytearray(nbytes)
            _fill(incoming, memoryview(buffers[place]))
            arrays.append(np.frombuffer(buffers[place], kind).reshape(shape))
        yield parcel, tuple(arrays)


def _fill(incoming: IO[bytes], buffer: memoryview) -> None:
    done = 0
    while done < len(buffer):
        count = incoming.readinto(buffer[done:])  # type: ignore[attr-defined]
        if not count:
            sys.exit(0)  # the other end was killed in the middle of a frame
        done += count


def _written(header: Header, parcel: Parcel, arrays: tuple[np.ndarray[Any, Any], ...]) -> Answer:
    frame = Frame(
        parcel.request or _NO_REQUEST,
        arrays[0],
        FrameTimings(0.0, 0.0, 0.0),
        has_alpha=parcel.has_alpha,
        image=arrays[1] if len(arrays) > 1 else None,
    )
    try:
        write_part(Path(parcel.aside), encode_frame(frame, parcel.text, header.form, header.size))
    except OSError as error:
        return OSError(error.errno, os.strerror(error.errno or 0), parcel.aside)
    except Exception as error:
        return error
    return None
