"""Imports of torch, which is optional for GPU rendering; a missing torch gives a readable error."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpu_backend.errors import DeviceError

_ADVICE = "install it with: pip install 'torch>=2.11,<2.14' (with pipx: pipx inject latentloom torch)"

_ROOM_NBYTES = 256 << 20
"""What importing torch takes beside its libraries: data that they relocate, threads, Python's modules."""

_STATM = Path("/proc/self/statm")


class TorchError(DeviceError):
    """torch is not installed, or its libraries cannot be loaded."""


@contextmanager
def torch_needed(what: str) -> Iterator[None]:
    """Import modules that use torch within this block.

    Parameters
    ----------
    what
        Feature that needs torch, as the subject of a sentence.

    Raises
    ------
    TorchError
        If torch is not installed or cannot be loaded.
    MemoryError
        If there is too little memory for its libraries.
    """
    _check_room()
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name != "torch" and "torch" not in str(error):
            raise
        if isinstance(error, ModuleNotFoundError) and error.name == "torch":
            raise TorchError(_missing(what), str(error)) from None
        raise _unloadable(what, error) from error
    except OSError as error:  # raised by Windows for a library that cannot be loaded
        raise _unloadable(what, error) from error


def torch_problem(what: str) -> str:
    """Return a sentence if torch is not installed, without importing it; empty if it is."""
    return "" if importlib.util.find_spec("torch") is not None else _missing(what)


def _check_room() -> None:
    """Raise MemoryError if an address-space limit leaves no room for torch: its libraries would abort the process."""
    if sys.platform == "win32" or "torch" in sys.modules:
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    found = None if limit == resource.RLIM_INFINITY else importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return
    try:
        used = int(_STATM.read_text("ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return
    libraries = sum(file.stat().st_size for file in Path(found.origin).parent.glob("lib/*.so*"))
    if used + libraries + _ROOM_NBYTES > limit:
        raise MemoryError(f"torch needs {(libraries + _ROOM_NBYTES) >> 20} MB of address space")


def _missing(what: str) -> str:
    return f"{what} needs torch, which is not installed; {_ADVICE}."


def _unloadable(what: str, error: ImportError | OSError) -> Exception:
    text = str(error)
    if "failed to map segment" in text or "annot allocate memory" in text:
        return MemoryError(text)
    first = text.splitlines()[0] if text else type(error).__name__
    return TorchError(f"{what} needs torch, which is installed but cannot be loaded ({first}); install it again.", text)
