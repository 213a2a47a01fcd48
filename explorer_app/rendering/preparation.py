"""Begins what the first picture needs while the window is imported, on threads that do not hold it up. No Qt.

::

    preload        while the window is imported and built: links torch's largest library, or starts the GPU's driver;
                   both release Python's lock. The dynamic loader has a lock too: an extension module or a plugin of Qt
                   that is loaded meanwhile waits up to 0.2 s for it
    import_now     once the window is on the screen: imports torch, which shares Python's lock with the window
"""

from __future__ import annotations

import threading

from explorer_app.rendering.backend import BackendLike
from explorer_app.rendering.device_choice import DeviceChoice

_DRIVER_S = 1.0
"""A driver that does not answer must not block the exit."""


class Preparation:
    """Two threads that end by themselves: one once torch is imported, the other once the GPU has started.

    Parameters
    ----------
    backend
        Loads, imports and starts.
    """

    def __init__(self, backend: BackendLike) -> None:
        self._backend = backend
        self._may_import = threading.Event()
        self._is_closed = False
        self._processor: threading.Thread | None = None
        self._gpu: threading.Thread | None = None

    def preload_processor(self) -> None:
        """Begin with torch. Does nothing after the first time."""
        if self._processor is None and not self._is_closed:
            self._processor = threading.Thread(target=self._import, name="importing torch", daemon=True)
            self._processor.start()

    def preload_gpu(self, choice: DeviceChoice) -> None:
        """Begin with the chosen GPU's driver, if there is one. Does nothing after the first time."""
        if self._gpu is None and not self._is_closed:
            run = self._backend.preload_gpu
            self._gpu = threading.Thread(target=run, args=(choice,), name="starting the GPU", daemon=True)
            self._gpu.start()

    def import_now(self) -> None:
        """Let the import begin, if `preload_processor` was called."""
        self._may_import.set()

    def close(self) -> None:
        """Wait until what is under way has ended, for a driver only a moment. May be called twice."""
        self._is_closed = True
        self._may_import.set()
        if self._processor is not None:
            self._processor.join()
        if self._gpu is not None:
            self._gpu.join(_DRIVER_S)

    def _import(self) -> None:
        self._backend.preload()
        self._may_import.wait()
        if not self._is_closed:
            self._backend.import_processor()
