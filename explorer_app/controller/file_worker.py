"""One thread that reads and writes small files, so that a slow disk never holds up the window."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from explorer_app.messages import MessageLog
from gpu_backend import LoomError


class FileWorker:
    """Runs tasks one after the other and tells how they went."""

    def __init__(self, messages: MessageLog) -> None:
        self._messages = messages
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="files")
        self._is_closed = False

    def submit(self, task: Callable[[], object], *, done: str = "", failed: str = "") -> None:
        """Run a task soon.

        Parameters
        ----------
        done
            What to tell when it is done; nothing if empty.
        failed
            What did not work if the system refuses: "walk.loom could not be saved".
        """
        if not self._is_closed:
            self._executor.submit(self._run, task, done, failed)

    def close(self) -> None:
        """Finish what was submitted and end the thread. May be called twice."""
        self._is_closed = True
        self._executor.shutdown(wait=True)

    def _run(self, task: Callable[[], object], done: str, failed: str) -> None:
        try:
            task()
        except OSError as error:
            self._messages.error(f"{failed} ({error.strerror or error}); choose another place.", str(error))
        except LoomError as error:
            self._messages.error(error.sentence, error.details)
        except Exception as error:
            self._messages.exception(error)
        else:
            if done:
                self._messages.info(done)
