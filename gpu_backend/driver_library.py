"""Whether the NVIDIA driver is installed, answered without importing the packages that speak to it.

Importing them takes a tenth of a second, which a machine without the driver would spend for nothing.
"""

from __future__ import annotations

import ctypes
import functools
import sys

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@functools.cache
def driver_is_installed() -> bool:
    """Return whether the driver's library can be loaded; loads it if so. Starts nothing."""
    try:
        ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    return True
