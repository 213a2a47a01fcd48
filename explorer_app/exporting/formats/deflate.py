"""Deflate in the zlib format at a level that keeps up with a renderer."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ISAL_LEVEL = 2
_ZLIB_LEVEL = 1


def deflate_fast(data: NDArray[Any]) -> bytes:
    """Return compressed bytes. Releases Python's lock."""
    return _compressor()(data)


@functools.cache
def _compressor() -> Callable[[NDArray[Any]], bytes]:
    """Return isa-l's compression, or zlib's at about a quarter of its speed where isa-l has no wheel."""
    try:
        from isal import isal_zlib  # here, since a window that saves nothing needs none of it
    except ImportError:
        return lambda data: zlib.compress(data.data, _ZLIB_LEVEL)
    return lambda data: bytes(isal_zlib.compress(data, _ISAL_LEVEL))
