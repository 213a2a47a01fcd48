"""A process that encodes pictures: it reads frames from shared memory, writes part files, and answers by a pipe.

Threads that encode small pictures wait for Python's lock most of the time; processes have a lock each.
`explorer_app.exporting.encoder_crew` starts and feeds them.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np

from explorer_app.exporting.encoder_crew import (
    Answer,
    Order,
    Parcel,
    SharedMemory,
    greeting,
    received_message,
    send_message,
)
from explorer_app.exporting.formats.codecs import encode_frame
from gpu_backend import Frame, FrameTimings, RenderRequest, write_part

_NO_REQUEST = RenderRequest("", ())


def main(pairs: Sequence[tuple[int, int]]) -> None:
    """Encode until the pipes are closed. Their other end decides on Ctrl-C and on errors.

    Parameters
    ----------
    pairs
        Descriptors to read from and to write to: this process becomes a process a pair. None for stdin and stdout.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order: Order = received_message(sys.stdin.buffer)
    memory = SharedMemory(order.nbytes, order.memory).map
    if not pairs:
        _serve(order, memory, sys.stdin.buffer, sys.stdout.buffer)
        return
    for number, (incoming, outgoing) in enumerate(pairs):
        if os.fork() == 0:
            # An end that is open twice would hide the death of its process.
            try:
                for others in pairs[number + 1 :]:
                    _close(others)
                _serve(order, memory, os.fdopen(incoming, "rb", 0), os.fdopen(outgoing, "wb", 0))
            finally:
                os._exit(0)
        _close((incoming, outgoing))
    for _ in pairs:
        os.wait()


def _close(pair: Sequence[int]) -> None:
    for descriptor in pair:
        os.close(descriptor)


def _serve(order: Order, memory: mmap.mmap, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    try:
        outgoing.write(greeting(os.getpid()))
        outgoing.flush()
        while True:
            parcels: tuple[Parcel, ...] = received_message(incoming)
            send_message(outgoing, tuple(_written(order, memory, parcel) for parcel in parcels))
            outgoing.flush()
    except (EOFError, OSError):
        return  # the other end has closed its pipes, or was killed


def _written(order: Order, memory: mmap.mmap, parcel: Parcel) -> Answer:
    arrays = [np.frombuffer(memory, kind, int(np.prod(shape)), at).reshape(shape) for at, shape, kind in parcel.arrays]
    frame = Frame(
        parcel.request or _NO_REQUEST,
        arrays[0],
        FrameTimings(0.0, 0.0, 0.0),
        has_alpha=parcel.has_alpha,
        image=arrays[1] if len(arrays) > 1 else None,
    )
    try:
        write_part(Path(parcel.aside), encode_frame(frame, order.text(parcel.index), order.form, order.size))
    except OSError as error:
        return OSError(error.errno, os.strerror(error.errno or 0), parcel.aside)
    except Exception as error:
        return error
    return None
