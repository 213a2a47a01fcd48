"""A process that encodes pictures: it reads frames from shared memory, writes their files, and answers by a pipe.

Threads that encode small pictures wait for Python's lock most of the time; processes have a lock each. A second thread
flushes the files of a chunk and moves them into place while the next chunk is encoded.
`explorer_app.exporting.encoder_crew` starts and feeds them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from explorer_app.exporting.encoder_crew import (
    Answer,
    Chunk,
    Order,
    SharedMemory,
    greeting,
    received_message,
    send_message,
)
from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.codecs import encode_frame
from gpu_backend import FileGroup, write_part


def main(pairs: Sequence[tuple[int, int]]) -> None:
    """Encode until the pipes are closed. Their other end decides on Ctrl-C and on errors.

    Parameters
    ----------
    pairs
        Descriptors to read from and to write to: this process becomes a process a pair. None for stdin and stdout.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    order: Order = received_message(sys.stdin.buffer)
    memory = np.frombuffer(SharedMemory(order.nbytes, order.memory).map, np.uint8)
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


def _serve(order: Order, memory: NDArray[np.uint8], incoming: IO[bytes], outgoing: IO[bytes]) -> None:
    chunk_files = _ChunkFiles(order, outgoing)
    try:
        outgoing.write(greeting(os.getpid()))
        outgoing.flush()
        while True:
            chunk: Chunk = received_message(incoming)
            chunk_files.write(chunk, memory)
    except (EOFError, OSError):
        pass  # the other end has closed its pipes, or was killed
    finally:
        chunk_files.close()


class _ChunkFiles:
    """Writes the files of chunks, and answers for each chunk in turn when its files are in place."""

    def __init__(self, order: Order, outgoing: IO[bytes]) -> None:
        self._order = order
        self._outgoing = outgoing
        self._lock = threading.Lock()
        self._unanswered: deque[Answer] = deque()
        """Of each chunk the number of part files that were written, and what others raised."""
        self._answered = 0
        """Files in place that were answered for."""
        self._files = FileGroup(order.folder, stored=self._answer)

    def write(self, chunk: Chunk, memory: NDArray[np.uint8]) -> None:
        """Write the part files of a chunk, to be moved into place together."""
        order = self._order
        failure: BaseException | None = None
        written = []
        try:
            reserved = self._files.reserve([name for _, name in chunk.names])
        except OSError as error:
            reserved, failure = [], _error_of(error, order.folder / chunk.names[0][1])
        for (index, _, frame), (aside, target) in zip(chunk.frames(memory), reserved, strict=False):
            try:
                write_part(aside, encode_frame(frame, order.text(index), order.form, order.size))
            except Exception as error:
                self._files.discard([aside])
                if isinstance(error, OSError):
                    error.filename = str(target)
                failure = failure or _error_of(error, target)
            else:
                written.append((aside, target))
        with self._lock:
            self._unanswered.append(Answer(len(written), failure))
        if written:
            self._files.put(written)
        self._answer()

    def close(self) -> None:
        """Move what was written into place, and answer for it."""
        self._files.close()

    def _answer(self) -> None:
        """Answer for the chunks that are settled. Called on both threads."""
        with self._lock:
            error = self._files.error
            while self._unanswered:
                chunk = self._unanswered[0]
                done = self._files.written - self._answered
                if done < chunk.written and error is None:
                    return
                done = min(done, chunk.written)
                self._answered += done
                self._unanswered.popleft()
                failure = chunk.error or (None if error is None else _error_of(error, self._files.folder))
                with contextlib.suppress(OSError):  # the other end is gone
                    send_message(self._outgoing, Answer(done, failure))
                    self._outgoing.flush()


def _error_of(error: BaseException, path: os.PathLike[str]) -> BaseException:
    """Return an error that can be sent, and that names the file that was to be written."""
    if isinstance(error, OSError):
        return OSError(error.errno, os.strerror(error.errno or 0), error.filename or os.fspath(path))
    try:
        pickle.dumps(error)
    except Exception:
        return ExportError(f"A picture could not be encoded ({error}); choose another format.")
    return error
