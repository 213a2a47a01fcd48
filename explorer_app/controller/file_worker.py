"""One thread that reads and writes small files, so that a slow disk never blocks the GUI thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer_app.messages import MessageLog

Result = TypeVar("Result")


class FileWorker(QObject):
    """Runs tasks in turn and shows their results."""

    _fetched = Signal()

    def __init__(self, messages: MessageLog, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._messages = messages
        self._results: deque[Callable[[], object]] = deque()
        self._fetched.connect(self._hand_out, Qt.ConnectionType.QueuedConnection)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="files")
        self._is_closed = False

    def submit(
        self,
        task: Callable[[], object],
        *,
        done: str = "",
        failed: str = "",
        file: Path | None = None,
        about: Path | None = None,
    ) -> None:
        """Run a task soon.

        Parameters
        ----------
        done
            Message on success; none if empty.
        failed
            First words of the message if the system refuses: "walk.loom could not be saved". Empty leaves them to the
            error.
        file
            The file that was written, which the message offers to open.
        about
            The file that is read or written; success closes earlier errors about it. `file` if None.
        """
        if not self._is_closed:
            self._executor.submit(self._run, task, done, failed, file, about or file)

    def fetch(
        self,
        task: Callable[[], Result],
        take: Callable[[Result], object],
        *,
        failed: str = "",
        about: Path | None = None,
    ) -> None:
        """Run a task soon; `take` gets its result on the GUI thread, never before this returns.

        An error is shown after `failed` and about `about` as in `submit`, and `take` is not called; nor is it after
        `close`.
        """

        def run() -> None:
            result = task()
            self._results.append(lambda: take(result))
            self._fetched.emit()

        self.submit(run, failed=failed, about=about)

    def close(self) -> None:
        """Finish what was submitted and end the thread. May be called twice."""
        self._is_closed = True
        self._executor.shutdown(wait=True)

    @Slot()
    def _hand_out(self) -> None:
        while self._results and not self._is_closed:
            self._results.popleft()()

    def _run(self, task: Callable[[], object], done: str, failed: str, file: Path | None, about: Path | None) -> None:
        try:
            task()
        except Exception as error:
            if failed and isinstance(error, OSError):
                self._messages.error(
                    f"{failed} ({error.strerror or error}); choose another place.", str(error), about=about
                )
            else:
                self._messages.exception(error, about=about)
        else:
            if about is not None:
                self._messages.note_success(about)
            if done:
                self._messages.info(done, file=file)
