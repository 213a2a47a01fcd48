"""Tensors by name, independent of the file format: shapes immediately, numbers once the network is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from gpu_backend.model.records import TensorRecord
from gpu_backend.model.shapes import Shapes
from gpu_backend.model.source import Source
from gpu_backend.model.tensors import Loaded, check_wrapped, load_tensors, small_values
from gpu_backend.model.watch import Watch

SMALL = 1024
"""Most numbers that are decoded before the network is known."""


class TensorTable(Protocol):
    """The tensors of a file."""

    @property
    def shapes(self) -> Shapes:
        """Name -> shape."""
        ...

    def small(self, name: str) -> list[float]:
        """Decode a tensor of at most `SMALL` numbers, in C order. Raises Refusal if it has more, or other ones."""
        ...

    def some(self, name: str) -> list[float]:
        """Decode up to `SMALL` numbers of a tensor, in file order."""
        ...

    def load(self, names: Iterable[str], watch: Watch) -> Loaded:
        """Decode tensors to float32, every number finite, and read the whole file for its SHA-256."""
        ...


class RecordTable:
    """Tensors of a pickle."""

    def __init__(self, source: Source, records: Mapping[str, TensorRecord]) -> None:
        self._source = source
        self._records = records
        self.shapes: Shapes = {name: record.shape for name, record in records.items()}
        check_wrapped(source, records.values())

    def small(self, name: str) -> list[float]:
        """Decode a small tensor."""
        return small_values(self._source, self._records[name], name, SMALL)

    def some(self, name: str) -> list[float]:
        """Decode the first numbers of a tensor, in file order."""
        record = self._records[name]
        count = min(record.extent, SMALL)
        return small_values(self._source, TensorRecord(record.storage, record.offset, (count,), (1,)), name, SMALL)

    def load(self, names: Iterable[str], watch: Watch) -> Loaded:
        """Decode tensors in one pass over the file."""
        return load_tensors(self._source, {name: self._records[name] for name in names}, watch)
