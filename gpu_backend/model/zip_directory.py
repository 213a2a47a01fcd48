"""The table of contents of a zip file as torch writes it: stored entries, nothing packed, nothing encrypted.

Structures as in PKWARE's APPNOTE.TXT, 4.3. Only the table is read; the offset of an entry's data is computed and
checked.
"""

from __future__ import annotations

import struct

from gpu_backend.model.refusal import AGAIN, Refusal, shown
from gpu_backend.model.source import MODEL_FILE, Source
from gpu_backend.quick_dataclass import dataclass

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")

_MAX_ENTRIES = 20_000
_MAX_DIRECTORY_BYTES = 8 << 20
_MAX_COMMENT = 1 << 16
_UNKNOWN32 = 0xFFFFFFFF
_WHOLE = "a whole zip file"
_PROJECT = "session.json"
"""An entry of projects, which are zip files too."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One stored file: bytes [start, stop) of the zip."""

    name: str
    start: int
    stop: int


def read_zip_directory(source: Source) -> dict[str, Entry]:
    """List the entries of a zip by name.

    Raises
    ------
    Refusal
        If the zip is damaged, or an entry is compressed, encrypted, doubled or named outside the archive.
    """
    count, size, offset = _end_of_directory(source)
    if count > _MAX_ENTRIES or size > _MAX_DIRECTORY_BYTES:
        raise Refusal(f"at most {_MAX_ENTRIES} entries in a torch file", f"this one has {count}")
    if offset + size > source.size:
        raise Refusal(_WHOLE, "its table of contents lies outside it")
    table = source.read(offset, size)
    entries: dict[str, Entry] = {}
    at = 0
    for _ in range(count):
        if at + _ENTRY.size > len(table):
            raise Refusal(_WHOLE, "its table of contents is short")
        entry, at = _entry(source, table, at)
        if entry.name in entries:
            raise Refusal("entries of different names in a zip file", f"{shown(entry.name)} comes twice")
        entries[entry.name] = entry
    return entries


def _end_of_directory(source: Source) -> tuple[int, int, int]:
    start = max(0, source.size - _MAX_COMMENT - _END.size)
    tail = source.read(start, source.size - start)
    place = tail.rfind(b"PK\x05\x06")
    if place < 0 or place + _END.size > len(tail):
        raise Refusal(_WHOLE, "its table of contents is missing", AGAIN)
    _, _, _, _, count, size, offset, _ = _END.unpack_from(tail, place)
    locator_start = start + place - _END64_LOCATOR.size
    if locator_start >= 0:
        locator = source.read(locator_start, _END64_LOCATOR.size)
        if locator.startswith(b"PK\x06\x07"):
            end64 = source.read(_END64_LOCATOR.unpack(locator)[2], _END64.size)
            if len(end64) < _END64.size or not end64.startswith(b"PK\x06\x06"):
                raise Refusal(_WHOLE, "its table of contents is missing", AGAIN)
            count, size, offset = _END64.unpack(end64)[7:10]
    return count, size, offset


def _entry(source: Source, table: bytes, at: int) -> tuple[Entry, int]:
    fields = _ENTRY.unpack_from(table, at)
    signature, flags, method = fields[0], fields[3], fields[4]
    packed, size, name_length, extra_length, comment_length, offset = *fields[8:13], fields[16]
    start = at + _ENTRY.size
    name = table[start : start + name_length].decode("utf-8", "replace")
    extra = table[start + name_length : start + name_length + extra_length]
    if signature != b"PK\x01\x02":
        raise Refusal(_WHOLE, "its table of contents is damaged")
    if name == _PROJECT:
        raise Refusal(MODEL_FILE, "this is a project of Latent Loom (.loom)")
    if (method != 0 or flags & 1) and name.endswith(".npy"):
        raise Refusal(MODEL_FILE, "this is a NumPy archive (.npz)")
    if method != 0 or flags & 1:
        raise Refusal("entries stored as they are, as torch writes them", f"{shown(name)} is compressed or encrypted")
    if name.startswith("/") or "\\" in name or ".." in name.split("/") or ":" in name:
        raise Refusal("entries named inside the archive", f"one is named {shown(name)}")
    size, packed, offset = _wide(extra, [size, packed, offset])
    if size != packed:
        raise Refusal(_WHOLE, f"the sizes of {shown(name)} disagree")
    local = source.read(offset, _LOCAL.size)
    if len(local) < _LOCAL.size or not local.startswith(b"PK\x03\x04"):
        raise Refusal(_WHOLE, f"the data of {shown(name)} are missing")
    local_name, local_extra = _LOCAL.unpack(local)[9:11]
    data = offset + _LOCAL.size + local_name + local_extra
    if data + size > source.size:
        raise Refusal(_WHOLE, f"the data of {shown(name)} end early")
    return Entry(name, data, data + size), start + name_length + extra_length + comment_length


def _wide(extra: bytes, values: list[int]) -> list[int]:
    """Replace 32-bit overflow markers by the values of the zip64 extra field, in its fixed order."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = [value for (value,) in struct.iter_unpack("<Q", extra[at + 4 : at + 4 + length // 8 * 8])]
            return [wide.pop(0) if value == _UNKNOWN32 and wide else value for value in values]
        at += 4 + length
    return values
