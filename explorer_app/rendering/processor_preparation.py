"""Imports torch on a thread of its own, so that the first picture on the CPU need not wait for it. No Qt.

::

    preload        while the window is built: links torch's largest library, which holds up no other thread
    import_now     once the window is on the screen: imports torch, which shares Python's lock with the window
"""

from __future__ import annotations

import threading

from explorer_app.rendering.backend import BackendLike


class ProcessorPreparation:
    """One thread that ends by itself once torch is imported.

    Parameters
    ----------
    backend
        Loads and imports.
    """

    def __init__(self, backend: BackendLike) -> None:
        self._backend = backend
        self._may_import = threading.Event()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def preload(self) -> None:
        """Begin. Does nothing after the first time."""
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="importing torch", daemon=True)
            self._thread.start()

    def import_now(self) -> None:
        """Let the import begin, if `preload` was called."""
        self._may_import.set()

    def close(self) -> None:
        """Wait until what is under way has ended, and begin nothing else. May be called twice."""
        self._is_closed = True
        self._may_import.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        self._backend.preload()
        self._may_import.wait()
        if not self._is_closed:
            self._backend.import_processor()
