"""Pickle containers: a plain pickle, a legacy torch file, or a torch zip, read into records.

Each reader adds the requested names to the given set, so that they are known even if the file is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpu_backend.model.budget import Budget
from gpu_backend.model.names import NameTable
from gpu_backend.model.network_names import NetworkNames
from gpu_backend.model.pickle_machine import PickleMachine
from gpu_backend.model.records import StorageRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.source import MODEL_FILE, Source
from gpu_backend.model.storages import (
    STORAGE_ITEM_BYTES,
    STORAGE_NAMES,
    open_stream,
    place_storage,
    storage_from_id,
)
from gpu_backend.model.watch import Watch
from gpu_backend.model.zip_directory import Entry, read_zip_directory

PLAIN = "pickle"
"""The container that tools differ in most: their readers have names for it."""


@dataclass(slots=True)
class Pickled:
    """What a pickle file holds. `requested` are the names it asks to import, ``"module name"``."""

    value: object
    container: str
    requested: set[str] = field(default_factory=set)


class _Reading:
    """What the three kinds of files share: one budget, one list of names."""

    def __init__(self, source: Source, watch: Watch, requested: set[str]) -> None:
        self.source = source
        self.requested = requested
        self._watch = watch
        self._budget = Budget()
        self._names = NetworkNames(source, budget=self._budget, watch=watch, requested=requested)

    def machine(
        self, start: int, stop: int, find_persistent: Callable[[object], object] | None = None
    ) -> PickleMachine:
        known = {**self._names.known(), **(STORAGE_NAMES if find_persistent is not None else {})}
        return PickleMachine(
            self.source,
            start,
            stop,
            find_name=NameTable(known, self.requested, admits_foreign=True).find,
            find_persistent=find_persistent,
            budget=self._budget,
            watch=self._watch,
        )

    def read(self, value: object, container: str) -> Pickled:
        """Return what was read, of a file that is read to its end."""
        self._names.finish()
        return Pickled(value, container, self.requested)

    def storages(self, fields: int, place: Callable[[str, StorageRecord], None]) -> Callable[[object], StorageRecord]:
        """Make a persistent-id reader that places each storage once, by its key."""
        by_key: dict[str, StorageRecord] = {}

        def find(identity: object) -> StorageRecord:
            key, record = storage_from_id(identity, fields)
            known = by_key.get(key)
            if known is None:
                self._budget.take_storages()
                place(key, record)
                by_key[key] = record
                return record
            if (known.dtype, known.numel) != (record.dtype, record.numel):
                raise Refusal("one description for each tensor storage", f"storage {shown(key)} has two")
            return known

        return find


def read_plain_pickle(source: Source, watch: Watch, requested: set[str]) -> Pickled:
    """Read a file that is one pickle, with tensor data inside it: what NVIDIA's tools write, with torch or without."""
    reading = _Reading(source, watch, requested)
    machine = reading.machine(0, source.size)
    value = machine.load()
    return reading.read(value, PLAIN)


def read_torch_stream(source: Source, watch: Watch, requested: set[str]) -> Pickled:
    """Read an older torch file: three short pickles, the object, the storage keys, then the data in that order."""
    reading = _Reading(source, watch, requested)
    by_key: dict[str, StorageRecord] = {}
    machine = reading.machine(0, source.size, reading.storages(6, by_key.__setitem__))
    open_stream(machine)
    value = machine.load()
    keys = machine.load()
    if not isinstance(keys, list) or len(keys) != len(by_key) or any(not isinstance(key, str) for key in keys):
        raise Refusal("a list of all tensor storages", "found another list")
    at = machine.position
    for key in keys:
        if key not in by_key or by_key[key].start >= 0:
            raise Refusal("a list of all tensor storages", "found another list")
        at = place_storage(source, by_key[key], at, source.size)
    return reading.read(value, "torch file (older form)")


def read_torch_zip(source: Source, watch: Watch, requested: set[str]) -> Pickled:
    """Read a torch zip file: data.pkl, and each storage as a separate entry."""
    entries = read_zip_directory(source)
    pickles = [name for name in entries if name == "data.pkl" or name.endswith("/data.pkl")]
    if any(name.rpartition("/")[2] == "constants.pkl" or "/code/" in name for name in entries):
        raise Unsupported(MODEL_FILE, "this is a TorchScript program, which is not run")
    if not pickles:
        what = (
            "a NumPy archive (.npz)" if any(name.endswith(".npy") for name in entries) else "a zip file of other things"
        )
        raise Refusal(MODEL_FILE, f"this is {what}")
    if len(pickles) > 1:
        raise Refusal("one data.pkl in a torch file", f"there are {len(pickles)}")
    root = pickles[0][: -len("data.pkl")]
    order = entries.get(f"{root}byteorder")
    if order is not None and source.read(order.start, min(order.stop - order.start, 16)) != b"little":
        raise Refusal("torch tensor data from a little-endian machine", "found other data")

    def place(key: str, record: StorageRecord) -> None:
        entry = entries.get(f"{root}data/{key}")
        if entry is None:
            raise Refusal("data for every tensor of a torch file", f"storage {shown(key)} is missing")
        expected = record.numel * STORAGE_ITEM_BYTES[record.dtype]
        if entry.stop - entry.start != expected:
            raise Refusal(f"{expected} bytes in storage {shown(key)}", f"there are {entry.stop - entry.start}")
        record.start = entry.start

    reading = _Reading(source, watch, requested)
    main: Entry = entries[pickles[0]]
    value = reading.machine(main.start, main.stop, reading.storages(5, place)).load()
    return reading.read(value, "torch file (zip)")
