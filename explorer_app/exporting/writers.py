"""Writers: a few threads that encode and write, so that rendering does not wait for zlib and the disk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_WAITING_PER_THREAD = 2


class WriterPool:
    """Runs tasks on a few threads, in any order, holding a bounded number at a time.

    After the first failure no further task runs. The failure is raised by the next `submit`, or by `close` if none
    came in between.

    Parameters
    ----------
    threads
        How many. Pillow lets go of Python's lock while it compresses, so that they truly run beside each other.
    """

    def __init__(self, threads: int = 2) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="export-writer")
        self._places = threading.BoundedSemaphore(threads * (1 + _WAITING_PER_THREAD))
        self._failure: BaseException | None = None
        self._is_told = False

    @property
    def has_failed(self) -> bool:
        """A task has raised."""
        return self._failure is not None

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task soon; waits while as many as allowed are waiting already.

        Raises
        ------
        LoomError
            What an earlier task raised.
        """
        self._places.acquire()
        if self._failure is not None:
            self._places.release()
            self._is_told = True
            raise self._failure
        self._executor.submit(self._run, task)

    def close(self) -> None:
        """Wait for what was submitted and end the threads. May be called twice.

        Raises
        ------
        LoomError
            What a task raised, if nobody has been told yet.
        """
        self._executor.shutdown(wait=True)
        if self._failure is not None and not self._is_told:
            self._is_told = True
            raise self._failure

    def _run(self, task: Callable[[], None]) -> None:
        try:
            if self._failure is None:
                task()
        except BaseException as error:
            self._failure = self._failure or error
        finally:
            self._places.release()
