"""The NVIDIA driver without the packages that speak to it: whether it is installed, and starting it ahead of time.

Importing NVIDIA's packages takes 0.1 s and holds the GIL, which ctypes releases during a call.
"""

from __future__ import annotations

import ctypes
import functools
import re
import sys

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


_GPU = re.compile(r"(?:auto|cuda)(?::([0-9]{1,3}))?")


@functools.cache
def driver_is_installed() -> bool:
    """Return whether the driver's library can be loaded; loads it if so. Starts nothing."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True


def preload_driver(device: str = "auto") -> bool:
    """Start the driver and create the process's context on a GPU, which whatever renders there finds later.

    A driver may take long or never answer: call it on a thread that nothing waits for.

    Parameters
    ----------
    device
        ``"auto"`` and ``"cuda"`` for the first GPU, ``"cuda:1"``; nothing is started for others.

    Returns
    -------
    Whether the context is there. A failure is reported when a renderer is made.
    """
    match = _GPU.fullmatch(device)
    if match is None or not driver_is_installed():
        return False
    try:
        library = ctypes.CDLL(_LIBRARY)
        number, context = ctypes.c_int(), ctypes.c_void_p()
        return not (
            library.cuInit(0)
            or library.cuDeviceGet(ctypes.byref(number), int(match[1] or 0))
            or library.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
        )
    except (OSError, AttributeError):
        return False
