"""The header of a safetensors file, checked before anything in it is believed.

A file is: u64 length of the header, little-endian; the header, JSON, ``{"name": {"dtype", "shape",
"data_offsets"}, ..., "__metadata__": {text: text}}``; the data, which the tensors must fill without gap or overlap.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import NoReturn

from gpu_backend.model.records import TensorRecord
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.source import Source
from gpu_backend.model.tensors import dense

MAX_HEADER_BYTES = 1 << 20
_MAX_TENSORS = 20_000
_MAX_DIMENSIONS = 8
_WHOLE = "a whole safetensors file"

_DTYPES = {
    "F16": ("f2", 2),
    "F32": ("f4", 4),
    "F64": ("f8", 8),
    "BF16": ("bf16", 2),
    "I64": ("i8", 8),
    "I32": ("i4", 4),
    "I16": ("i2", 2),
    "I8": ("i1", 1),
    "U8": ("u1", 1),
    "BOOL": ("b1", 1),
}


@dataclass(frozen=True, slots=True)
class Header:
    """Tensors by name, and the texts that came with them."""

    tensors: dict[str, TensorRecord]
    metadata: dict[str, str]


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Tell by the first nine bytes: a length that fits, then an opening brace."""
    return len(head) >= 9 and head[8:9] == b"{" and 2 <= struct.unpack("<Q", head[:8])[0] <= size - 8


def read_header(source: Source) -> Header:
    """Read and check the header.

    Raises
    ------
    Refusal
        If it is damaged or too long, or the tensors do not fill the data exactly.
    """
    (length,) = struct.unpack("<Q", source.read(0, 8).ljust(8, b"\xff"))
    if length > MAX_HEADER_BYTES or length > source.size - 8:
        raise Refusal("a safetensors header of at most 1 MiB", f"one of {length} bytes is announced")
    fields = parse_json(source.read(8, length))
    metadata = fields.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise Refusal("texts in the header's metadata", "something else came")
    if len(fields) > _MAX_TENSORS:
        raise Refusal(f"at most {_MAX_TENSORS} tensors in a model file", f"this one has {len(fields)}")
    start = 8 + length
    tensors: dict[str, TensorRecord] = {}
    places: list[tuple[int, int]] = []
    for name, entry in fields.items():
        tensors[name], place = _tensor(name, entry, start)
        places.append(place)
    at = 0
    for first, last in sorted(places):
        if first != at:
            raise Refusal(_WHOLE, "its tensors overlap or leave gaps")
        at = last
    if at != source.size - start:
        raise Refusal(_WHOLE, f"{source.size - start} bytes of data came where {at} are announced")
    return Header(tensors, metadata)


def parse_json(text: bytes | str) -> dict[str, object]:
    """Read a JSON object strictly: no doubled keys, no NaN, no nesting beyond reason.

    Raises
    ------
    Refusal
        If it is anything else.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Refusal("JSON in the file's header", "something else came") from None
    if not isinstance(value, dict):
        raise Refusal("a JSON object in the file's header", "another value came")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("doubled key")
    return table


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _tensor(name: str, entry: object, start: int) -> tuple[TensorRecord, tuple[int, int]]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise Refusal(f"type, shape and place of {shown(name)} in the header", "something else came")
    shape, place = _naturals(name, entry["shape"]), _naturals(name, entry["data_offsets"])
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in _DTYPES:
        raise Refusal(f"numbers of a known type in {shown(name)}", "another type is announced")
    code, item_bytes = _DTYPES[entry["dtype"]]
    if len(shape) > _MAX_DIMENSIONS or len(place) != 2:
        raise Refusal(f"type, shape and place of {shown(name)} in the header", "something else came")
    if place[1] - place[0] != math.prod(shape) * item_bytes:
        raise Refusal(
            f"{math.prod(shape) * item_bytes} bytes for {shown(name)}", f"{place[1] - place[0]} are announced"
        )
    return dense(code, shape, start + place[0]), (place[0], place[1])


def _naturals(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MAX_DIMENSIONS:
        raise Refusal(f"whole numbers in the shape of {shown(name)}", "something else came")
    if any(not isinstance(item, int) or isinstance(item, bool) or not 0 <= item < 1 << 48 for item in value):
        raise Refusal(f"whole numbers in the shape of {shown(name)}", "something else came")
    return tuple(value)
