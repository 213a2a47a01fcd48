"""Inert stand-ins: what a pickle becomes here instead of objects.

None of them can be called, none runs anything when it is made, and those that a pickle may hand a state to keep it in
one slot, so that a file can set no attribute.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import Source
from gpu_backend.model.watch import Watch
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [start, stop) of the source, not read yet: a byte string of the pickle."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A long text of the pickle, UTF-8 at [start, stop) of the source, not read yet: mostly program source."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Latin1:
    """A byte string that protocol 2 stores as text, each byte a character; the text was not read yet."""

    text: TextSpan


ByteString = Span | Latin1 | bytes

_CHUNK = 1 << 20
_MOST_WRAPPED = 128 << 20
"""Longest text that is unwrapped, in bytes: a convolution of 1024 to 1024 channels takes half of it."""


def content_of(source: Source, value: object, watch: Watch) -> bytes:
    """Read a byte string of a pickle."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, Span):
        return source.read(value.start, value.stop - value.start)
    if isinstance(value, Latin1):
        if value.text.stop - value.text.start > _MOST_WRAPPED:
            raise Refusal("bytes wrapped in at most 128 MiB of text", "there are more")
        return _unwrapped(source, value.text, watch)
    raise Refusal("a byte string", "found something else")


def _unwrapped(source: Source, text: TextSpan, watch: Watch) -> bytes:
    """Undo the wrapping piece by piece: it is slow, and the user may want to stop it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    content = bytearray()
    try:
        for start in range(text.start, text.stop, _CHUNK):
            watch.check()
            stop = min(start + _CHUNK, text.stop)
            content += decoder.decode(source.read(start, stop - start), final=stop == text.stop).encode("latin-1")
    except UnicodeError:
        raise Refusal("bytes wrapped in Latin-1 text", "the text has other characters") from None
    return bytes(content)


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A name that the pickle imports. `make` takes the arguments of a call and gives a record; None forbids calls."""

    module: str
    name: str
    make: Callable[[tuple[object, ...]], object] | None = None

    def __str__(self) -> str:
        return f"{self.module} {self.name}"


class Table(dict[object, object]):
    """A dict that was an OrderedDict or an EasyDict; a state handed to it is dropped."""

    __slots__ = ()


@dataclass(slots=True, eq=False)
class Foreign:
    """An object of a known foreign library, kept only so that files holding one can be read around it."""

    name: Name
    state: object = None


@dataclass(frozen=True, slots=True, eq=False)
class Persistent:
    """A network module: its class's name and its attributes. Its source text is not kept."""

    class_name: str
    version: int
    state: dict[object, object]


@dataclass(slots=True, eq=False)
class TensorFlowNetwork:
    """A network of the TensorFlow releases; `state` is what it was pickled with."""

    state: object = None


@dataclass(slots=True, eq=False)
class Namespace:
    """Command-line options that some training tools store; never looked into."""

    state: object = None


@dataclass(slots=True, eq=False)
class StorageRecord:
    """A torch storage, not decoded.

    `numel` elements of `dtype` at byte `start` of the source, or of `held` where the pickle wraps the bytes in text.
    `start` -1 means that the place is not known yet (older torch files put the data behind the objects).
    """

    dtype: str
    numel: int
    start: int = -1
    held: Latin1 | bytes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """A torch tensor whose geometry has been checked against its storage. Offset and strides count elements."""

    storage: StorageRecord
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def extent(self) -> int:
        """Elements of the storage from the tensor's first to its last, both included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
