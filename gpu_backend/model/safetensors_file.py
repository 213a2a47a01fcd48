"""Our own model files: safetensors, with every hyper-parameter in the header as JSON.

The container is the safetensors library's business, in both directions. Ours is what it does not bound or say: how
long a header may be, that the file stays the same between the two times it is read (the tensors, the SHA-256), and
the settings, which stand as one JSON text under ``latent-loom-model`` in the metadata. One text, because the library
writes metadata in an order that changes from run to run, and the same model must always give the same bytes.

The library is asked to read and not to map: a mapped file that shrinks would end the program with a signal.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gpu_backend.errors import LoomError, ModelFileError
from gpu_backend.model.assembly import assemble
from gpu_backend.model.direction_file import KEY as DIRECTIONS_KEY
from gpu_backend.model.found import Found
from gpu_backend.model.model import Model
from gpu_backend.model.network_json import parse_json, settings_from_json, spec_to_json
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.source import FileSource, read_through
from gpu_backend.model.tensors import Loaded, as_weight
from gpu_backend.model.watch import Watch
from gpu_backend.whole_file import write_whole

KEY = "latent-loom-model"
VERSION = 1
MAX_HEADER_BYTES = 1 << 20
_FLOATS = ("F16", "F32", "F64")
_MAX_NOTES = 20
_MAX_NOTE = 400


def looks_like_safetensors(head: bytes, size: int) -> bool:
    """Tell by the first nine bytes: a length that fits, then an opening brace."""
    return len(head) >= 9 and head[8:9] == b"{" and 2 <= _header_bytes(head) <= size - 8


def find_safetensors(source: FileSource) -> Found:
    """Find the network in one of our files.

    Raises
    ------
    Unsupported
        If the file holds tensors without our header, or a newer version of it.
    Refusal
        If the header is damaged or too long, or contradicts the tensors.
    """
    length = _header_bytes(source.read(0, 8))
    if length > MAX_HEADER_BYTES:
        raise Refusal("a safetensors header of at most 1 MiB", f"one of {length} bytes is announced")
    with _opened(source) as file:
        metadata: dict[str, str] = file.metadata() or {}
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it cannot be iterated
        shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
        types = {name: str(part.get_dtype()) for name, part in slices.items()}
    if DIRECTIONS_KEY in metadata:
        raise Unsupported("a network", "this file holds directions for one", "open the model that it lies beside")
    if KEY not in metadata:
        raise Unsupported(
            "a safetensors file written by Latent Loom",
            "this one holds tensors without a network's settings",
            "convert the original .pkl with 'latentloom convert'",
        )
    said = parse_json(metadata[KEY])
    if said.get("version") != VERSION:
        raise Unsupported(f"version {VERSION} of our model files", "this one is of another version")
    network = _table(said.get("network"))
    if network.get("family") != "stylegan2":
        raise Unsupported(GENERATOR, "the header names another family")
    spec = assemble(shapes, settings_from_json(network))
    if json.dumps(spec_to_json(spec), sort_keys=True) != json.dumps(network, sort_keys=True):
        raise Refusal("settings in the header that agree with the tensors", "they contradict each other")
    for name, dtype in types.items():
        if dtype not in _FLOATS:
            raise Refusal(f"floating-point numbers in {name}", f"it holds numbers of type {dtype}")
    source_facts = _table(said.get("source", {}))
    return Found(
        spec=spec,
        load=partial(_load, source, shapes),
        container="safetensors",
        flavour=_note(source_facts.get("flavour")),
        warnings=_notes(source_facts.get("warnings", [])),
    )


def write_safetensors(
    model: Model, path: str | os.PathLike[str], dtype: Literal["float32", "float16"] = "float32"
) -> None:
    """Write a model as one file, aside first and then moved into place.

    Parameters
    ----------
    dtype
        ``"float32"`` reads back bit for bit; ``"float16"`` halves the file and rounds the weights.

    Raises
    ------
    ModelFileError
        If a weight does not fit into half precision.
    LoomError
        If the file cannot be written; nothing is left behind.
    """
    path = Path(path)
    arrays: dict[str, NDArray[Any]] = {}
    for name, array in model.weights.items():
        if dtype == "float16" and np.abs(array).max(initial=0) > np.finfo(np.float16).max:
            raise ModelFileError(
                f"{path.name} was not written: expected weights up to 65504, which half precision holds, "
                f"but {name} has larger ones; write float32 instead."
            )
        arrays[name] = np.ascontiguousarray(array, dtype).reshape(array.shape)
    metadata = {KEY: json.dumps(_said(model), sort_keys=True)}
    try:
        write_whole(path, lambda aside: safetensors.numpy.save_file(arrays, aside, metadata))
    except (OSError, SafetensorError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).replace("\n", " ").rstrip(".")
        raise LoomError(
            f"{path.name} was not written: expected a place to write to, but the system says {reason}."
        ) from error


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
        raise Refusal("a whole safetensors file", f"the library that reads it says {shown(reason)}") from error


def _load(source: FileSource, shapes: Mapping[str, tuple[int, ...]], watch: Watch) -> Loaded:
    """Read the file for its SHA-256, then its tensors one by one; each is half of the progress."""
    middle = source.size // 2
    digest = read_through(source, [], watch.part(0, middle, source.size))
    tensors = watch.part(middle, source.size, source.size)
    weights: dict[str, NDArray[np.float32]] = {}
    with _opened(source) as file:
        for name in shapes:
            weights[name] = as_weight(name, file.get_tensor(name))
            tensors.advance(len(weights), len(shapes))
    source.check_unchanged()
    return Loaded(weights, digest)


def _said(model: Model) -> dict[str, object]:
    facts = model.facts
    source = {
        "name": facts.name,
        "sha256": facts.model_id,
        "container": facts.container,
        "flavour": facts.flavour,
        "warnings": list(facts.warnings),
    }
    return {"version": VERSION, "network": spec_to_json(model.spec), "source": source}


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refusal("a network's settings in the file's header", "a part of them is missing")
    return value


def _note(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NOTE or not value.isprintable():
        raise Refusal("short plain notes in the file's header", "something else came")
    return value


def _notes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NOTES:
        raise Refusal("short plain notes in the file's header", "something else came")
    return tuple(_note(item) for item in value)
