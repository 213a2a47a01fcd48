"""Tensor records become float32 arrays, in the one pass over the file that also makes its SHA-256."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.records import Latin1, TensorRecord, content_of
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import ReadRange, Source, read_through
from gpu_backend.model.storages import STORAGE_ITEM_BYTES
from gpu_backend.model.watch import Watch
from gpu_backend.quick_dataclass import dataclass

_FLOATS: dict[str, np.dtype[Any]] = {"f2": np.dtype("<f2"), "f4": np.dtype("<f4"), "f8": np.dtype("<f8")}
_SLACK = 1024
"""Elements that a strided tensor may span beyond twice its own."""
_WRAPPED_SLACK = 16 << 20
"""Bytes of text that may be unwrapped beyond twice the file: small tensors that several modules share."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Arrays by name, and the SHA-256 of the file they came from."""

    weights: dict[str, NDArray[np.float32]]
    digest: str


def check_wrapped(source: Source, records: Iterable[TensorRecord]) -> None:
    """Refuse tensors that share text to be unwrapped, which is slow work and is done once for each tensor."""
    total = 0
    for record in records:
        if isinstance(record.storage.held, Latin1):
            total += record.storage.held.text.stop - record.storage.held.text.start
    if total > 2 * source.size + _WRAPPED_SLACK:
        raise Refusal("tensors with their own data", f"{total} bytes of text for them in a file of {source.size}")


def load_tensors(source: Source, records: Mapping[str, TensorRecord], watch: Watch) -> Loaded:
    """Read a file once and decode the requested tensors.

    Raises
    ------
    Refusal
        If a tensor does not hold floating-point numbers, holds NaN or infinity, or the tensors would take more memory
        than the file explains.
    CancelledError
        If the user cancelled.
    """
    _check_sizes(source, records)
    check_wrapped(source, records.values())
    raw: dict[str, NDArray[Any]] = {}
    wanted: list[ReadRange] = []
    for name, record in records.items():
        dtype = _FLOATS[record.storage.dtype]
        if record.storage.held is None:
            raw[name] = np.empty(record.extent, dtype)
            start = record.storage.start + record.offset * dtype.itemsize
            wanted.append(ReadRange(start, raw[name].data.cast("B")))
        else:
            raw[name] = _held(source, record, watch)
    digest = read_through(source, [piece for piece in wanted if len(piece.target)], watch)
    wanted.clear()  # its views would keep every raw array alive
    weights: dict[str, NDArray[np.float32]] = {}
    for name, record in records.items():
        watch.check()
        weights[name] = as_weight(name, _laid_out(raw.pop(name), record))
    return Loaded(weights, digest)


def small_values(source: Source, record: TensorRecord, name: str, most: int = 1024) -> list[float]:
    """Decode one small tensor now, in C order."""
    if record.storage.dtype not in _FLOATS or not 0 < math.prod(record.shape) <= most:
        raise Refusal(f"at most {most} floating-point numbers in {name}", f"its shape is {record.shape}")
    _check_sizes(source, {name: record})
    dtype = _FLOATS[record.storage.dtype]
    if record.storage.held is None:
        start = record.storage.start + record.offset * dtype.itemsize
        raw: NDArray[Any] = np.frombuffer(source.read(start, record.extent * dtype.itemsize), dtype)
    else:
        raw = _held(source, record, Watch())
    with np.errstate(over="ignore"):
        return [float(value) for value in _laid_out(raw, record).astype(np.float32).ravel()]


def _check_sizes(source: Source, records: Mapping[str, TensorRecord]) -> None:
    total = 0
    for name, record in records.items():
        if record.storage.dtype not in _FLOATS:
            raise Refusal(f"floating-point numbers in {name}", f"it holds numbers of type {record.storage.dtype}")
        count = math.prod(record.shape)
        if record.extent > 2 * count + _SLACK:
            raise Refusal(f"{name} to lie together in the file", f"it is spread over {record.extent} numbers")
        total += count * STORAGE_ITEM_BYTES[record.storage.dtype]
    if total > source.size + _SLACK:
        raise Refusal("tensors with their own data", f"{total} bytes of them in a file of {source.size}")


def _held(source: Source, record: TensorRecord, watch: Watch) -> NDArray[Any]:
    content = content_of(source, record.storage.held, watch)
    dtype = _FLOATS[record.storage.dtype]
    start = record.storage.start + record.offset * dtype.itemsize
    content = content[start : start + record.extent * dtype.itemsize]
    if len(content) != record.extent * dtype.itemsize:
        raise Refusal(f"{record.extent} numbers in a tensor", f"found {len(content) // dtype.itemsize}")
    return np.frombuffer(content, dtype).copy()


def as_weight(name: str, array: NDArray[Any]) -> NDArray[np.float32]:
    """Return a tensor in the renderer's form: contiguous float32, every number finite.

    Raises
    ------
    Refusal
        If it holds NaN, infinity, or what float32 cannot hold.
    """
    with np.errstate(over="ignore"):
        weight = np.ascontiguousarray(array, np.float32).reshape(array.shape)
    if not np.isfinite(weight).all():
        raise Refusal(f"finite numbers in {name}", "it holds NaN or infinity")
    return weight


def _laid_out(raw: NDArray[Any], record: TensorRecord) -> NDArray[Any]:
    """Lay the tensor's sizes and strides over its elements; the geometry was checked when the record was made."""
    strides = tuple(stride * raw.itemsize for stride in record.strides)
    return np.lib.stride_tricks.as_strided(raw, record.shape, strides)
