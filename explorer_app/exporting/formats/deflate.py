"""Deflate in the zlib format at a level that keeps up with a renderer, and the checksum of PNG chunks."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ISAL_LEVEL = 3
"""Levels 1 and 2 are not deterministic on x86: igzip_icf_body_h1_gr_bt.asm hashes the address of its state in place of
the input once, after the first byte, so that matches depend on where the thread's stack lies. Level 3 is as fast."""

_ZLIB_LEVEL = 1


def deflate_fast(data: NDArray[Any]) -> bytes:
    """Return compressed bytes; equal input gives equal bytes. Releases Python's lock."""
    return _compressor()(data)


def checksum(data: bytes, before: int = 0) -> int:
    """Return the CRC-32 of bytes that follow others, whose CRC-32 is `before`."""
    return _checksum()(data, before)


@functools.cache
def _checksum() -> Callable[[bytes, int], int]:
    """Return isa-l's CRC-32, or zlib's at a quarter of its speed."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    crc32: Callable[[bytes, int], int] = isal_zlib.crc32
    return crc32


@functools.cache
def _compressor() -> Callable[[NDArray[Any]], bytes]:
    """Return isa-l's compression, or zlib's at about a quarter of its speed where isa-l has no wheel."""
    try:
        from isal import isal_zlib  # here, since a window that saves nothing needs none of it
    except ImportError:
        return lambda data: zlib.compress(data.data, _ZLIB_LEVEL)
    return lambda data: bytes(isal_zlib.compress(data, _ISAL_LEVEL))
