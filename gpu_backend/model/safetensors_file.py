"""Our own model files: safetensors, with every hyper-parameter in the header as JSON texts."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import tempfile
from pathlib import Path
from typing import Literal

import numpy as np

from gpu_backend.errors import LoomError, ModelFileError
from gpu_backend.model.assembly import GENERATOR, assemble
from gpu_backend.model.found import Found
from gpu_backend.model.model import Model
from gpu_backend.model.network_json import settings_from_json, spec_to_json
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.safetensors_header import parse_json, read_header
from gpu_backend.model.source import Source

FORMAT = "latent-loom-model"
VERSION = "1"
_TYPES = {"float32": ("F32", "<f4"), "float16": ("F16", "<f2")}
_MAX_NOTES = 20
_MAX_NOTE = 400


def find_safetensors(source: Source) -> Found:
    """Find the network in one of our files.

    Raises
    ------
    Unsupported
        If the file holds tensors without our header, or a newer version of it.
    Refusal
        If the header is damaged or contradicts the tensors.
    """
    header = read_header(source)
    if header.metadata.get("format") != FORMAT:
        raise Unsupported(
            "a safetensors file written by Latent Loom",
            "this one holds tensors without a network's settings",
            "convert the original .pkl with 'latentloom convert'",
        )
    if header.metadata.get("version") != VERSION:
        raise Unsupported(f"version {VERSION} of our model files", "this one is of another version")
    network = parse_json(header.metadata.get("network", ""))
    if network.get("family") != "stylegan2":
        raise Unsupported(GENERATOR, "the header names another family")
    spec = assemble({name: record.shape for name, record in header.tensors.items()}, settings_from_json(network))
    if json.dumps(spec_to_json(spec), sort_keys=True) != json.dumps(network, sort_keys=True):
        raise Refusal("settings in the header that agree with the tensors", "they contradict each other")
    source_facts = parse_json(header.metadata.get("source", "{}"))
    return Found(
        spec=spec,
        tensors=header.tensors,
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
    code, layout = _TYPES[dtype]
    entries: dict[str, object] = {"__metadata__": _metadata(model)}
    at = 0
    for name, array in model.weights.items():
        if dtype == "float16" and np.abs(array).max(initial=0) > np.finfo(np.float16).max:
            raise ModelFileError(
                f"{path.name} was not written: expected weights up to 65504, which half precision holds, "
                f"but {name} has larger ones; write float32 instead."
            )
        nbytes = array.size * np.dtype(layout).itemsize
        entries[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": [at, at + nbytes]}
        at += nbytes
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    try:
        _write(path, struct.pack("<Q", len(header)) + header, model, layout)
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        raise LoomError(
            f"{path.name} was not written: expected a place to write to, but the system says {reason}."
        ) from error


def _write(path: Path, head: bytes, model: Model, layout: str) -> None:
    handle, aside = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(head)
            for array in model.weights.values():
                file.write(np.ascontiguousarray(array, dtype=layout).data.cast("B") if array.size else b"")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):
            Path(aside).chmod(0o644)
        Path(aside).replace(path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def _metadata(model: Model) -> dict[str, str]:
    facts = model.facts
    source = {
        "name": facts.name,
        "sha256": facts.model_id,
        "container": facts.container,
        "flavour": facts.flavour,
        "warnings": list(facts.warnings),
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "network": json.dumps(spec_to_json(model.spec), sort_keys=True),
        "source": json.dumps(source, sort_keys=True),
    }


def _note(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NOTE or not value.isprintable():
        raise Refusal("short plain notes in the file's header", "something else came")
    return value


def _notes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NOTES:
        raise Refusal("short plain notes in the file's header", "something else came")
    return tuple(_note(item) for item in value)
