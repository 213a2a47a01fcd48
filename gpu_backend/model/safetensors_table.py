"""The tensors of a safetensors file. The container is the safetensors library's business.

Ours is what it does not bound or say: how long a header may be, and that the file stays the same between the two times
it is read, for the tensors and for the SHA-256. The library reads the file instead of mapping it: a mapped file that
shrinks would end the program with a signal.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gpu_backend.model.refusal import AGAIN, Refusal, shown
from gpu_backend.model.shapes import Shapes
from gpu_backend.model.source import FileSource, read_through
from gpu_backend.model.tensor_table import SMALL
from gpu_backend.model.tensors import Loaded, as_weight
from gpu_backend.model.watch import Watch

MAX_HEADER_BYTES = 1 << 20
_FLOATS = ("F16", "F32", "F64")


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Decided by the first nine bytes: the length of a header, then an opening brace.

    The file may end inside a header of a usual length: it is not whole then, but no other kind of file.
    """
    return len(head) >= 9 and head[8:9] == b"{" and 2 <= _header_bytes(head) <= max(size - 8, MAX_HEADER_BYTES)


class SafetensorsTable:
    """Names, shapes and metadata of a file; the numbers are read on demand.

    Attributes
    ----------
    shapes
        Name -> shape.
    metadata
        What the header says besides.

    Raises
    ------
    Refusal
        If the header is damaged or too long.
    """

    def __init__(self, source: FileSource) -> None:
        length = _header_bytes(source.read(0, 8))
        if length > MAX_HEADER_BYTES:
            raise Refusal("a safetensors header of at most 1 MiB", f"one of {length} bytes is announced")
        if length > source.size - 8:
            raise Refusal("a whole safetensors file", "it ends inside its header", AGAIN)
        self._source = source
        with _opened(source) as file:
            self.metadata: dict[str, str] = file.metadata() or {}
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it cannot be iterated
            self.shapes: Shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
            self._types = {name: str(part.get_dtype()) for name, part in slices.items()}
        self._names = {name: name for name in self.shapes}

    def rename(self, names: Mapping[str, str]) -> None:
        """Keep some of the tensors, under other names: the new name -> that in the file."""
        self.shapes = {own: self.shapes[name] for own, name in names.items()}
        self._types = {own: self._types[name] for own, name in names.items()}
        self._names = dict(names)

    def small(self, name: str) -> list[float]:
        """Decode a small tensor."""
        count = math.prod(self.shapes[name])
        if not 0 < count <= SMALL:
            raise Refusal(f"at most {SMALL} floating-point numbers in {name}", f"its shape is {self.shapes[name]}")
        return self._numbers(name, slice(None))

    def some(self, name: str) -> list[float]:
        """Decode the first numbers of a tensor."""
        return self._numbers(name, slice(0, 1))[:SMALL] if self.shapes[name] else self.small(name)

    def load(self, names: Iterable[str], watch: Watch) -> Loaded:
        """Read the file for its SHA-256 unless that is known, then the tensors; each is half of the progress."""
        wanted = list(names)
        self._check_types(wanted)
        source = self._source
        middle = 0 if source.known_digest else source.size // 2
        digest = source.known_digest or read_through(source, [], watch.part(0, middle, source.size))
        tensors = watch.part(middle, source.size, source.size)
        weights: dict[str, NDArray[np.float32]] = {}
        with _opened(source) as file:
            for name in wanted:
                weights[name] = as_weight(name, file.get_tensor(self._names[name]))
                tensors.advance(len(weights), len(wanted))
        source.check_unchanged()
        return Loaded(weights, digest)

    def _numbers(self, name: str, first: slice) -> list[float]:
        self._check_types([name])
        with _opened(self._source) as file:
            part = file.get_slice(self._names[name])
            array: NDArray[Any] = part[first] if self.shapes[name] else file.get_tensor(self._names[name])
        with np.errstate(over="ignore"):
            return [float(value) for value in array.astype(np.float32).ravel()]

    def _check_types(self, names: Iterable[str]) -> None:
        for name in names:
            if self._types[name] not in _FLOATS:
                raise Refusal(f"floating-point numbers in {name}", f"it holds numbers of type {self._types[name]}")


def _header_bytes(head: bytes) -> int:
    """Length of the JSON header, which the first eight bytes announce."""
    return int(struct.unpack("<Q", head[:8].ljust(8, b"\xff"))[0])


@contextlib.contextmanager
def _opened(source: FileSource) -> Iterator[safe_open]:
    """Let the library open the file; what it finds wrong becomes a refusal."""
    try:
        with safe_open(source.path, framework="np", backend="pread") as file:
            yield file
    except SafetensorError as error:
        reason = str(error).removeprefix("Error while deserializing header: ")
        raise Refusal("a whole safetensors file", f"the library that reads it says {shown(reason)}", AGAIN) from error
