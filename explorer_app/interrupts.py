"""Ctrl-C and SIGTERM while modules are imported, when nothing has begun that would have to be ended.

Raising KeyboardInterrupt there does not do: an import may swallow it, and Qt's bindings abort the process.

At its start this module imports only what the interpreter has loaded already, so that a signal is answered from the
first statement of the program on. Earlier, while the interpreter itself starts, Python prints its own traceback.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds
import os

TYPE_CHECKING = False  # `typing` takes milliseconds
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

STOP_SIGNALS: tuple[int, ...] = (_signal.SIGINT, _signal.SIGTERM)


def stop_status(number: int) -> int:
    """Return the exit status of a program that a signal stopped, as shells report it: 130 or 143."""
    return 128 + number


EXIT_STOPPED = stop_status(_signal.SIGINT)


def leave(number: int, frame: FrameType | None) -> None:
    """Say that the program was stopped and end the process; a handler of signals."""
    try:
        os.write(2, b"Stopped.\n")
    finally:
        os._exit(stop_status(number))


def handle_stops(handler: Any) -> dict[int, Any]:
    """Handle the stop signals; return the former handlers for `restore`. For the main thread.

    A signal that the parent process had ignored stays ignored: a shell starts its background jobs so.
    """
    former = {number: _signal.getsignal(number) for number in STOP_SIGNALS}
    heard = {number: handled for number, handled in former.items() if handled != _signal.SIG_IGN}
    for number in heard:
        _signal.signal(number, handler)
    return heard


def restore(former: dict[int, Any]) -> None:
    """Handle signals again as before `handle_stops`."""
    for number, handler in former.items():
        _signal.signal(number, handler)


class ImmediateExit:
    """End the process on a stop signal within a ``with`` block; on other threads than the main one, change nothing."""

    _former: dict[int, Any] | None = None

    def __enter__(self) -> ImmediateExit:
        import threading

        if threading.current_thread() is threading.main_thread():
            self._former = handle_stops(leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._former is not None:
            restore(self._former)
