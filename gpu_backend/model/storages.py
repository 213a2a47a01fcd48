"""Torch storages: the stream of five pickles and raw data that older torch wrote, alone and inside other pickles.

Layout, all little-endian: the magic integer; 1001; facts of the writing system; the object, whose persistent ids name
storages; the keys of the storages; then for each key its number of elements (int64) and its data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from gpu_backend.model.budget import Budget
from gpu_backend.model.names import NameTable
from gpu_backend.model.numpy_values import sizes
from gpu_backend.model.pickle_machine import PickleMachine
from gpu_backend.model.records import Name, StorageRecord, TensorRecord
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.source import Source
from gpu_backend.model.watch import Watch

TORCH_MAGIC = 0x1950A86A20F9469CFC6C
_TORCH_PROTOCOL = 1001
_MAX_DIMENSIONS = 8

STORAGE_DTYPES = {
    "FloatStorage": ("f4", 4),
    "HalfStorage": ("f2", 2),
    "DoubleStorage": ("f8", 8),
    "BFloat16Storage": ("bf16", 2),
    "LongStorage": ("i8", 8),
    "IntStorage": ("i4", 4),
    "ShortStorage": ("i2", 2),
    "CharStorage": ("i1", 1),
    "ByteStorage": ("u1", 1),
    "BoolStorage": ("b1", 1),
}
"""Torch's storage classes: element type and bytes an element."""

STORAGE_ITEM_BYTES = dict(STORAGE_DTYPES.values())

STORAGE_NAMES: dict[tuple[str, str], None] = {("torch", name): None for name in STORAGE_DTYPES}
"""The names that a storage stream may use."""


def storage_from_id(identity: object, fields: int) -> tuple[str, StorageRecord]:
    """Check a persistent id, ('storage', class, key, location, elements[, None]), and make a record of it.

    Returns
    -------
    key, record
        The record's place is still open. The location (``"cpu"``, ``"cuda:0"``) does not matter here.
    """
    if not isinstance(identity, tuple) or len(identity) != fields or (fields == 6 and identity[5] is not None):
        raise Refusal("tensor data described the way torch does", "found another description")
    word, kind, key, location, numel = identity[:5]
    if word != "storage" or not isinstance(kind, Name) or kind.module != "torch" or kind.name not in STORAGE_DTYPES:
        raise Refusal("tensor data described the way torch does", "found another description")
    if not isinstance(key, str) or not isinstance(location, str):
        raise Refusal("tensor data described the way torch does", "found another description")
    if not isinstance(numel, int) or isinstance(numel, bool) or not 0 <= numel < 1 << 48:
        raise Refusal("tensor data of a sensible size", "found another size")
    return key, StorageRecord(STORAGE_DTYPES[kind.name][0], numel)


def place_storage(source: Source, record: StorageRecord, start: int, stop: int) -> int:
    """Fill a record from the element count and data at `start`; return where they end."""
    (numel,) = struct.unpack("<q", source.read(start, 8).ljust(8, b"\xff"))
    end = start + 8 + record.numel * STORAGE_ITEM_BYTES[record.dtype]
    if numel != record.numel or end > stop:
        raise Refusal(f"tensor data of {record.numel} elements", f"there are {max(0, stop - start - 8)} bytes")
    record.start = start + 8
    return end


def open_stream(machine: PickleMachine) -> None:
    """Read the three pickles at the head of a stream."""
    if machine.load() != TORCH_MAGIC or machine.load() != _TORCH_PROTOCOL:
        raise Refusal("torch tensor data", "found something else")
    system = machine.load()
    if not isinstance(system, dict) or system.get("little_endian") is not True:
        raise Refusal("torch tensor data from a little-endian machine", "found other data")


def read_storage_stream(
    source: Source, start: int, stop: int, *, budget: Budget, watch: Watch, requested: set[str]
) -> StorageRecord:
    """Read the stream of one storage at bytes [start, stop) of the source, which it must fill exactly.

    Only torch's storage classes may be named in it.

    Raises
    ------
    Refusal
        If it is anything else, or the data are more or fewer than announced.
    """
    budget.take_storages()
    keys: list[str] = []

    def find_persistent(identity: object) -> StorageRecord:
        key, record = storage_from_id(identity, 6)
        keys.append(key)
        return record

    machine = PickleMachine(
        source,
        start,
        stop,
        find_name=NameTable(STORAGE_NAMES, requested).find,
        find_persistent=find_persistent,
        budget=budget,
        watch=watch,
        window=512,
    )
    open_stream(machine)
    record = machine.load()
    if not isinstance(record, StorageRecord):
        raise Refusal("one tensor storage", "found something else")
    if machine.load() != keys:
        raise Refusal("one tensor storage", "the list of storages names another")
    if place_storage(source, record, machine.position, stop) != stop:
        raise Refusal("tensor data that end where they should", "more bytes follow")
    return record


def rebuild_tensor(arguments: tuple[object, ...]) -> TensorRecord:
    """Stand in for torch's rebuilding of a tensor from (storage, offset, size, strides, ...).

    Raises
    ------
    Refusal
        If the tensor reaches outside its storage, or has more elements than it.
    """
    if not 6 <= len(arguments) <= 7:
        raise Refusal("a tensor of six or seven parts", f"found {len(arguments)}")
    storage, offset = arguments[0], arguments[1]
    if not isinstance(storage, StorageRecord):
        raise Refusal("a tensor over a tensor storage", "found something else")
    shape, strides = sizes(arguments[2], _MAX_DIMENSIONS), sizes(arguments[3], _MAX_DIMENSIONS)
    (offset,) = sizes((offset,), 1)
    if len(shape) != len(strides):
        raise Refusal("as many strides as sizes in a tensor", f"found {len(strides)} for {len(shape)}")
    record = TensorRecord(storage, offset, shape, strides)
    count = 1
    for size in shape:
        count *= size
    if offset + record.extent > storage.numel or count > storage.numel:
        raise Refusal(
            "tensors that lie inside their data",
            f"one of shape {shape}, strides {strides} and offset {offset} lies over {storage.numel} elements",
        )
    return record


def rebuild_parameter(parts: int) -> Callable[[tuple[object, ...]], TensorRecord]:
    """Stand in for torch's wrapping of a tensor into a parameter, a call of `parts` arguments."""

    def make(arguments: tuple[object, ...]) -> TensorRecord:
        if len(arguments) != parts or not isinstance(arguments[0], TensorRecord):
            raise Refusal(
                "a parameter made of a tensor", f"found {shown(type(arguments[0] if arguments else None).__name__)}"
            )
        return arguments[0]

    return make
