"""Ctrl-C while modules are imported, when nothing has begun that would have to be ended.

Raising KeyboardInterrupt there does not do: an import may swallow it, and Qt's bindings abort the process.

At its start this module imports only what the interpreter has loaded already, so that Ctrl-C is answered from the first
statement of the program on. Earlier, while the interpreter itself starts, Python prints its own traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds
import os

TYPE_CHECKING = False  # `typing` takes milliseconds
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

EXIT_STOPPED = 130


def leave(number: int, frame: FrameType | None) -> None:
    """Say that the program was stopped and end the process; a handler of SIGINT."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(EXIT_STOPPED)


def leave_at_once() -> Any:
    """Let a Ctrl-C end the process from now on; return the former handler for `go_on`. For the main thread."""
    return _signal.signal(_signal.SIGINT, leave)


def go_on(former: Any) -> None:
    """Answer Ctrl-C with a former handler again."""
    _signal.signal(_signal.SIGINT, former)


class LeavingAtOnce:
    """End the process on a Ctrl-C within a ``with`` block; on other threads than the main one, change nothing."""

    _former: Any = None

    def __enter__(self) -> LeavingAtOnce:
        import threading

        if threading.current_thread() is threading.main_thread():
            self._former = leave_at_once()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._former is not None:
            go_on(self._former)
