"""What the compiler writes of a kernel's parameters into its machine code: section ``.nv.info.<kernel>`` of the ELF."""

from __future__ import annotations

import struct

_HAS_SIZE = 0x04
_PARAMETER = 0x17
"""Attribute that names a parameter: index, ordinal, offset, and its size in the upper 14 bits of the last word."""


def parameter_sizes(cubin: bytes) -> tuple[int, ...]:
    """Return the bytes of every parameter, in order, of machine code with one kernel."""
    found: dict[int, int] = {}
    for name, content in _sections(cubin):
        at = 0
        while name.startswith(".nv.info.") and at < len(content):
            form, attribute, size = struct.unpack_from("<BBH", content, at)
            at += 4
            if form != _HAS_SIZE:
                continue
            if attribute == _PARAMETER:
                _, ordinal, _, packed = struct.unpack_from("<IHHI", content, at)
                found[ordinal] = packed >> 18
            at += size
    return tuple(found[ordinal] for ordinal in sorted(found))


def _sections(cubin: bytes) -> list[tuple[str, bytes]]:
    """Return name and content of an ELF file's sections."""
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", cubin, table + index * size) for index in range(count)]
    names = headers[names_index]
    listed = []
    for word, kind, _, _, offset, nbytes in headers:
        start = names[4] + word
        name = cubin[start : cubin.index(b"\0", start)].decode()
        listed.append((name, b"" if kind == 8 else cubin[offset : offset + nbytes]))
    return listed
