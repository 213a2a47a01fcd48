"""torch, imported beside everything else: what takes long is done without holding Python's lock where that can be."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import os
import sys
from pathlib import Path

_LIBRARY = "libtorch_cpu.so"
"""The largest of torch's libraries: linking it takes a quarter of a second. It needs no Python."""


def preload_library() -> None:
    """Load torch's largest library into the process without importing torch; nothing happens where it is not found.

    A call by ctypes lets other threads run Python meanwhile, which an import that links a library does not.
    """
    if sys.platform != "linux" or "torch" in sys.modules:
        return
    with contextlib.suppress(ImportError, OSError, ValueError, AttributeError):
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.origin is None:
            return
        path = Path(spec.origin).parent / "lib" / _LIBRARY
        dlopen = ctypes.CDLL(None).dlopen
        dlopen.restype, dlopen.argtypes = ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_int)
        dlopen(os.fsencode(path), os.RTLD_NOW | os.RTLD_LOCAL)


def import_torch() -> None:
    """Import torch and what renders with it; whoever makes a renderer is told if that fails."""
    with contextlib.suppress(ImportError):
        importlib.import_module("torch")
        importlib.import_module("gpu_backend.cpu.executor")
