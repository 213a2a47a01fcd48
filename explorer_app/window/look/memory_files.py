"""Files in memory that Qt opens like any other, under paths that begin with ``:/``.

A style sheet loads pictures only from files. Those on the disk would stay in the temporary folder whenever the program
is killed. The tables are those that Qt's resource compiler writes, version 1, all numbers big-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from PySide6.QtCore import qRegisterResourceData

_VERSION = 1
_IS_FOLDER = 2
_ANY_COUNTRY, _ANY_LANGUAGE = 0, 1
"""As `QLocale` numbers them; the language is "C"."""
_registered: list[tuple[bytes, bytes, bytes]] = []
"""Tables that Qt reads from where they are, as long as the program runs."""


def register(folder: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """Make files known to Qt.

    Parameters
    ----------
    folder
        A name without slashes, used once.
    files
        Name -> content.

    Returns
    -------
    Name -> path.
    """
    names, contents = bytearray(), bytearray()
    tree = bytearray(struct.pack(">IHII", 0, _IS_FOLDER, 1, 1))  # the root: one child, which is entry 1
    tree += struct.pack(">IHII", _add_name(names, folder), _IS_FOLDER, len(files), 2)
    for name in sorted(files, key=_hash):  # Qt searches by hash
        tree += struct.pack(">IHHHI", _add_name(names, name), 0, _ANY_COUNTRY, _ANY_LANGUAGE, len(contents))
        contents += struct.pack(">I", len(files[name])) + files[name]
    tables = bytes(tree), bytes(names), bytes(contents)
    _registered.append(tables)
    qRegisterResourceData(_VERSION, *tables)
    return {name: f":/{folder}/{name}" for name in files}


def _add_name(names: bytearray, name: str) -> int:
    """Append a name, and return where it begins."""
    start = len(names)
    text = name.encode("utf-16-be")
    names += struct.pack(">HI", len(text) // 2, _hash(name)) + text
    return start


def _hash(name: str) -> int:
    """Return Qt's hash of the name of a resource."""
    found = 0
    for unit in struct.unpack(f">{len(name)}H", name.encode("utf-16-be")):
        found = (found << 4) + unit
        found ^= (found & 0xF0000000) >> 23
        found &= 0x0FFFFFFF
    return found
