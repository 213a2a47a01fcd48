"""Threads that make what a task steps: opening a network imports torch, for which the render thread cannot wait."""

from __future__ import annotations

import threading
from collections.abc import Callable

_END_S = 10.0
"""Importing torch must not block the exit for longer."""


class MakerThreads:
    """Runs functions on daemon threads, which `close` waits for.

    Parameters
    ----------
    name
        Of the threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._threads: list[threading.Thread] = []

    def start(self, make: Callable[[], None]) -> None:
        """Run a function that handles its errors itself."""
        thread = threading.Thread(target=make, name=self._name, daemon=True)
        self._threads = [*(other for other in self._threads if other.is_alive()), thread]
        thread.start()

    def close(self) -> None:
        """Wait for the threads, for ten seconds each at most."""
        for thread in self._threads:
            thread.join(_END_S)
