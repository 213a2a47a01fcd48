"""Stand-ins for the known names in network files.

(module, name) pairs as NVIDIA's writers, StyleGAN-XL's and torch's own produce them, over the torch and NumPy versions
that public files were written with.
"""

from __future__ import annotations

import re

from gpu_backend.model.budget import Budget
from gpu_backend.model.dill_names import DillNames
from gpu_backend.model.names import Known
from gpu_backend.model.numpy_values import ArrayRecord, DType, scalar
from gpu_backend.model.pickle_values import plain_key
from gpu_backend.model.records import (
    Latin1,
    Name,
    Namespace,
    Persistent,
    Span,
    StorageRecord,
    Table,
    TensorFlowNetwork,
    TextSpan,
    content_of,
)
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.source import BytesSource, Source
from gpu_backend.model.storages import read_storage_stream, rebuild_parameter, rebuild_tensor
from gpu_backend.model.watch import Watch

_META_KEYS = {"type", "version", "module_src", "class_name", "state"}
_MAX_ATTRIBUTES = 500
_CLASS_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)


class NetworkNames:
    """Makes the records for the calls in a network file."""

    def __init__(self, source: Source, *, budget: Budget, watch: Watch, requested: set[str]) -> None:
        self._source = source
        self._budget = budget
        self._watch = watch
        self._requested = requested
        self._used: set[int] = set()
        own = self._own()
        self._dill = DillNames(own, requested)
        self._known: Known = {**own, **self._dill.known()}

    def known(self) -> Known:
        """Return (module, name) -> function that makes a call's record."""
        return self._known

    def finish(self) -> None:
        """Refuse a file that ends between two dependent calls."""
        self._dill.finish()

    def _own(self) -> Known:
        return {
            ("torch_utils.persistence", "_reconstruct_persistent_obj"): self._persistent,
            ("collections", "OrderedDict"): _empty_table,
            ("dnnlib.util", "EasyDict"): _empty_table,
            ("torch._utils", "_rebuild_parameter"): rebuild_parameter(3),
            ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter(4),
            ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
            ("torch.storage", "_load_from_bytes"): self._storage,
            ("numpy.core.multiarray", "scalar"): self._scalar,
            ("numpy._core.multiarray", "scalar"): self._scalar,
            ("numpy.core.multiarray", "_reconstruct"): _empty_array,
            ("numpy._core.multiarray", "_reconstruct"): _empty_array,
            ("numpy.core.numeric", "_frombuffer"): ArrayRecord.from_buffer,
            ("numpy._core.numeric", "_frombuffer"): ArrayRecord.from_buffer,
            ("numpy", "dtype"): DType.make,
            ("numpy", "ndarray"): None,
            ("builtins", "set"): self._set,
            ("__builtin__", "set"): self._set,
            ("__builtin__", "bytes"): _empty_bytes,
            ("_codecs", "encode"): self._encoded,
            ("dnnlib.tflib.network", "Network"): _tensorflow_network,
            ("argparse", "Namespace"): _namespace,
        }

    def _persistent(self, arguments: tuple[object, ...]) -> Persistent:
        meta = arguments[0] if len(arguments) == 1 else None
        if (
            not isinstance(meta, dict)
            or len(meta) != len(_META_KEYS)
            or set(meta) != _META_KEYS
            or meta["type"] != "class"
        ):
            raise Refusal("network modules described the way NVIDIA's tools do", "found another description")
        class_name, version, state = meta["class_name"], meta["version"], meta["state"]
        if not isinstance(class_name, str) or not _CLASS_NAME.fullmatch(class_name):
            raise Refusal("network modules of a named class", "found one without a proper class name")
        if not isinstance(version, int) or not isinstance(state, dict):
            raise Refusal("network modules described the way NVIDIA's tools do", "found another description")
        if not isinstance(meta["module_src"], str | TextSpan):
            raise Refusal("network modules described the way NVIDIA's tools do", "found another description")
        if len(state) > _MAX_ATTRIBUTES or not all(isinstance(key, str) for key in state):
            raise Refusal(f"network modules of at most {_MAX_ATTRIBUTES} named attributes", "found one of others")
        return Persistent(class_name, version, state)

    def _storage(self, arguments: tuple[object, ...]) -> StorageRecord:
        content = arguments[0] if len(arguments) == 1 else None
        if isinstance(content, Span):
            if content.start in self._used:
                raise Refusal("tensors with their own data", "two share the same bytes")
            self._used.add(content.start)
            return self._stream(self._source, content.start, content.stop)
        if not isinstance(content, Latin1 | bytes):
            raise Refusal("tensor data in a byte string", "found something else")
        place = content.text.start if isinstance(content, Latin1) else -1
        if place in self._used:
            raise Refusal("tensors with their own data", "two share the same bytes")
        if place >= 0:
            self._used.add(place)
        held = content_of(self._source, content, self._watch)
        record = self._stream(BytesSource(held), 0, len(held))
        record.held = content
        return record

    def _stream(self, source: Source, start: int, stop: int) -> StorageRecord:
        return read_storage_stream(
            source, start, stop, budget=self._budget, watch=self._watch, requested=self._requested
        )

    def _scalar(self, arguments: tuple[object, ...]) -> object:
        if len(arguments) != 2 or (isinstance(arguments[1], Span) and arguments[1].stop - arguments[1].start > 8):
            raise Refusal("a NumPy scalar of a plain number", "found something else")
        if not isinstance(arguments[1], Span | bytes):
            raise Refusal("a NumPy scalar of a plain number", "found something else")
        return scalar(arguments[0], content_of(self._source, arguments[1], self._watch))

    def _set(self, arguments: tuple[object, ...]) -> set[object]:
        items = arguments[0] if len(arguments) == 1 else None
        if not isinstance(items, list):
            raise Refusal("a set made of a list", "found something else")
        self._budget.take_operations(len(items))
        return {plain_key(item) for item in items}

    def _encoded(self, arguments: tuple[object, ...]) -> Latin1 | bytes:
        if len(arguments) != 2 or arguments[1] not in ("latin1", "latin-1"):
            raise Refusal("bytes wrapped in Latin-1 text", "found something else")
        text = arguments[0]
        if isinstance(text, TextSpan):
            return Latin1(text)
        if not isinstance(text, str):
            raise Refusal("bytes wrapped in Latin-1 text", "found something else")
        self._budget.take_text(len(text))
        try:
            return text.encode("latin-1")
        except UnicodeError:
            raise Refusal("bytes wrapped in Latin-1 text", "the text has other characters") from None


def _empty_table(arguments: tuple[object, ...]) -> Table:
    if arguments:
        raise Refusal("dicts that are made empty and then filled", "found one with contents")
    return Table()


def _empty_array(arguments: tuple[object, ...]) -> ArrayRecord:
    if not arguments or not isinstance(arguments[0], Name) or str(arguments[0]) != "numpy ndarray":
        raise Refusal("plain NumPy arrays", "found another kind")
    return ArrayRecord()


def _empty_bytes(arguments: tuple[object, ...]) -> bytes:
    if arguments:
        raise Refusal("bytes in a byte string", "found others")
    return b""  # protocol 2's encoding of the empty byte string


def _tensorflow_network(arguments: tuple[object, ...]) -> TensorFlowNetwork:
    if arguments:
        raise Refusal("a TensorFlow network made empty and then filled", "found one with contents")
    return TensorFlowNetwork()


def _namespace(arguments: tuple[object, ...]) -> Namespace:
    if arguments:
        raise Refusal("options made empty and then filled", "found one with contents")
    return Namespace()
