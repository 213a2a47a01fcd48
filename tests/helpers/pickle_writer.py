"""Writes pickles opcode by opcode: tests control every opcode and need no class to pickle."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Global:
    """A name to import."""

    module: str
    name: str


@dataclass(frozen=True)
class Call:
    """A call of a name, or with `is_new` a NEWOBJ; `state` is passed by BUILD."""

    target: Global | Call
    arguments: tuple[Any, ...]
    state: Any = None
    is_new: bool = False
    items: dict[str, Any] | None = None


@dataclass(frozen=True)
class PersistentId:
    """A reference to data elsewhere."""

    identity: tuple[Any, ...]


def dill_attribute(module: str, name: str) -> Call:
    """An attribute of a module, as dill 0.3.4 writes it."""
    return Call(Global("dill._dill", "_get_attr"), (Call(Global("dill._dill", "_import_module"), (module,)), name))


class PickleWriter:
    """Writes one value in protocol 2, 3, 4 or 5 with the opcodes that the standard pickler would use.

    Parameters
    ----------
    dill_module
        Writes NumPy's helpers as dill 0.3.4 does, as attributes of this module; empty for plain names.
    """

    def __init__(self, protocol: int, *, dill_module: str = "") -> None:
        self._protocol = protocol
        self._dill_module = dill_module
        self._out = bytearray()
        self._memo: dict[Any, int] = {}
        self._count = 0

    def dumps(self, value: Any) -> bytes:
        """The whole pickle of a value."""
        self._out = bytearray((0x80, self._protocol))
        self._memo, self._count = {}, 0
        self._save(value)
        return bytes(self._out + b".")

    def _put(self, key: Any = None) -> None:
        if key is not None:
            self._memo[key] = self._count
        if self._protocol >= 4:
            self._out += b"\x94"
        else:
            self._out += b"q" + bytes([self._count]) if self._count < 256 else b"r" + struct.pack("<I", self._count)
        self._count += 1

    def _get(self, key: Any) -> bool:
        index = self._memo.get(key)
        if index is None:
            return False
        self._out += b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)
        return True

    def _save(self, value: Any) -> None:
        if value is None:
            self._out += b"N"
        elif value is True or value is False:
            self._out += (b"\x88" if value else b"\x89") if self._protocol >= 2 else b""
        elif isinstance(value, int):
            self._integer(value)
        elif isinstance(value, float):
            self._out += b"G" + struct.pack(">d", value)
        elif isinstance(value, str):
            self._text(value)
        elif isinstance(value, bytes):
            self._bytes(value)
        elif isinstance(value, tuple):
            self._tuple(value)
        elif isinstance(value, list):
            self._out += b"]"
            self._put()
            self._out += b"("
            for item in value:
                self._save(item)
            self._out += b"e"
        elif isinstance(value, set):
            self._set(value)
        elif isinstance(value, dict):
            self._out += b"}"
            self._put()
            self._items(value)
        elif isinstance(value, Global):
            self._global(value)
        elif isinstance(value, Call):
            self._call(value)
        elif isinstance(value, PersistentId):
            self._save(value.identity)
            self._out += b"Q"
        else:
            raise TypeError(type(value))

    def _integer(self, value: int) -> None:
        if 0 <= value < 256:
            self._out += b"K" + bytes([value])
        elif 0 <= value < 65536:
            self._out += b"M" + struct.pack("<H", value)
        elif -(2**31) <= value < 2**31:
            self._out += b"J" + struct.pack("<i", value)
        else:
            content = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self._out += b"\x8a" + bytes([len(content)]) + content

    def _text(self, value: str) -> None:
        if self._get(value):
            return
        content = value.encode("utf-8", "surrogatepass")
        short = self._protocol >= 4 and len(content) < 256
        self._out += b"\x8c" + bytes([len(content)]) if short else b"X" + struct.pack("<I", len(content))
        self._out += content
        self._put(value)

    def _bytes(self, value: bytes) -> None:
        if self._protocol < 3:
            self._save(Call(Global("_codecs", "encode"), (value.decode("latin-1"), "latin1")))
            return
        self._out += b"C" + bytes([len(value)]) if len(value) < 256 else b"B" + struct.pack("<I", len(value))
        self._out += value
        self._put()

    def _tuple(self, value: tuple[Any, ...]) -> None:
        if not value:
            self._out += b")"
            return
        if len(value) > 3:
            self._out += b"("
        for item in value:
            self._save(item)
        self._out += {1: b"\x85", 2: b"\x86", 3: b"\x87"}.get(len(value), b"t")
        self._put()

    def _set(self, value: set[Any]) -> None:
        if self._protocol >= 4:
            self._out += b"\x8f"
            self._put()
            self._out += b"("
            for item in sorted(value):
                self._save(item)
            self._out += b"\x90"
        else:
            module = "builtins" if self._protocol == 3 else "__builtin__"
            self._save(Call(Global(module, "set"), (sorted(value),)))

    def _items(self, items: dict[Any, Any]) -> None:
        if items:
            self._out += b"("
            for key, item in items.items():
                self._save(key)
                self._save(item)
            self._out += b"u"

    def _global(self, value: Global) -> None:
        if self._get(value):
            return
        if self._dill_module and value.name in ("scalar", "_reconstruct"):
            self._call(dill_attribute(self._dill_module, value.name))
            self._memo[value] = self._count - 1
            return
        if self._protocol >= 4:
            self._save(value.module)
            self._save(value.name)
            self._out += b"\x93"
        else:
            self._out += b"c" + f"{value.module}\n{value.name}\n".encode()
        self._put(value)

    def _call(self, value: Call) -> None:
        self._save(value.target)
        self._save(value.arguments)
        self._out += b"\x81" if value.is_new else b"R"
        self._put()
        if value.items:
            self._items(value.items)
        if value.state is not None:
            self._save(value.state)
            self._out += b"b"
