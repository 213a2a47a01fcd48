"""NumPy values inside pickles: dtypes of a closed list, scalars, and arrays whose geometry is checked and data left."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpu_backend.model.records import ByteString, Latin1, Span, StorageRecord, TensorRecord
from gpu_backend.model.refusal import Refusal

ITEM_BYTES = {
    "b1": 1,
    "i1": 1,
    "i2": 2,
    "i4": 4,
    "i8": 8,
    "u1": 1,
    "u2": 2,
    "u4": 4,
    "u8": 8,
    "f2": 2,
    "f4": 4,
    "f8": 8,
}
"""The dtypes that are read. Objects, texts and structures are not among them."""

_MAX_DIMENSIONS = 32


@dataclass(slots=True, eq=False)
class DType:
    """A NumPy dtype of the closed list: ``"f8"``."""

    code: str

    @classmethod
    def make(cls, arguments: tuple[object, ...]) -> DType:
        """Stand in for ``numpy.dtype(code, align, copy)``."""
        code = arguments[0] if arguments else None
        if not isinstance(code, str) or code.lstrip("<|=") not in ITEM_BYTES or len(code) > 3:
            raise Refusal("numbers and truth values in NumPy data", "found another NumPy dtype")
        return cls(code.lstrip("<|="))

    def set_state(self, state: object) -> None:
        """Take the second half of a pickled dtype, (3, byte order, None, None, None, -1, -1, 0)."""
        if not isinstance(state, tuple) or len(state) < 5 or state[1] not in ("<", "|", "=") or any(state[2:5]):
            raise Refusal("plain little-endian NumPy data", "found another NumPy dtype")


@dataclass(slots=True, eq=False)
class ArrayRecord:
    """A NumPy array: its geometry, and where its bytes are. Not decoded."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    is_fortran: bool = False
    content: ByteString = b""

    def set_state(self, state: object) -> None:
        """Take a pickled array's state, (1, shape, dtype, is_fortran, bytes)."""
        if not isinstance(state, tuple) or len(state) != 5:
            raise Refusal("a NumPy array of five parts", "found another state")
        self._fill(state[1], state[2], bool(state[3]), state[4])

    @classmethod
    def from_buffer(cls, arguments: tuple[object, ...]) -> ArrayRecord:
        """Stand in for NumPy's rebuilding of an array from (bytes, dtype, shape, order), as protocol 5 writes it."""
        if len(arguments) != 4:
            raise Refusal("a NumPy array of four parts", "found another number")
        record = cls()
        record._fill(arguments[2], arguments[1], arguments[3] == "F", arguments[0])
        return record

    def tensor(self) -> TensorRecord:
        """Return the same numbers as a tensor with its own storage."""
        sizes_inward = self.shape if self.is_fortran else self.shape[::-1]
        strides = [math.prod(sizes_inward[:place]) for place in range(len(sizes_inward))]
        start, held = (self.content.start, None) if isinstance(self.content, Span) else (0, self.content)
        storage = StorageRecord(self.dtype, math.prod(self.shape), start, held)
        return TensorRecord(storage, 0, self.shape, tuple(strides if self.is_fortran else strides[::-1]))

    def _fill(self, shape: object, dtype: object, is_fortran: bool, content: object) -> None:
        if not isinstance(dtype, DType) or not isinstance(content, Span | Latin1 | bytes):
            raise Refusal("a NumPy array of plain numbers", "found one of something else")
        self.shape = sizes(shape, _MAX_DIMENSIONS)
        self.dtype, self.is_fortran, self.content = dtype.code, is_fortran, content
        expected = math.prod(self.shape) * ITEM_BYTES[dtype.code]
        count = content.stop - content.start if isinstance(content, Span) else None
        count = len(content) if isinstance(content, bytes) else count
        if count is not None and count != expected:
            raise Refusal(f"{expected} bytes for a NumPy array of shape {self.shape}", f"found {count}")


def scalar(dtype: object, content: bytes) -> bool | int | float:
    """Decode a NumPy scalar to the Python number it equals."""
    if not isinstance(dtype, DType) or len(content) != ITEM_BYTES[dtype.code]:
        raise Refusal("a NumPy scalar of a plain number", "found something else")
    value: bool | int | float = np.frombuffer(content, dtype=f"<{dtype.code}")[0].item()
    return value


def sizes(value: object, most: int) -> tuple[int, ...]:
    """Check a shape: a tuple of at most `most` non-negative integers, whose product fits in 63 bits."""
    if not isinstance(value, tuple) or len(value) > most:
        raise Refusal(f"a shape of at most {most} sizes", "found something else")
    if any(not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 48 for size in value):
        raise Refusal("sizes that are whole numbers from 0 up", "found others")
    return value
