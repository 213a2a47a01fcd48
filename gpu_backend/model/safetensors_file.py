"""Our own model files: safetensors, with every hyper-parameter in the header as JSON; and standalone tensors.

The metadata holds the settings as one JSON text under ``latent-loom-model``. One text, because the library writes
metadata in an order that changes from run to run, and the same model must always give the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from gpu_backend.errors import ModelFileError, not_written
from gpu_backend.model.assembly import assemble
from gpu_backend.model.checkpoint import find_tensors, ignored_beside, no_generator, own_names, recognise_layout
from gpu_backend.model.direction_file import KEY as DIRECTIONS_KEY
from gpu_backend.model.found import Found
from gpu_backend.model.model import Model
from gpu_backend.model.network_json import parse_json, settings_from_json, spec_to_json
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.safetensors_table import SafetensorsTable
from gpu_backend.model.shapes import GENERATOR, Shapes
from gpu_backend.model.source import FileSource, open_source
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.stylegan1_assembly import assemble_stylegan1
from gpu_backend.model.stylegan1_json import stylegan1_settings_from_json
from gpu_backend.model.stylegan3_assembly import assemble_stylegan3
from gpu_backend.model.stylegan3_json import stylegan3_settings_from_json
from gpu_backend.plain_text import printable
from gpu_backend.whole_file import write_whole

KEY = "latent-loom-model"
VERSION = 1
_MAX_NOTES = 20
_MAX_NOTE = 400


def find_safetensors(source: FileSource) -> Found:
    """Find the network in one of our files, or in a file of tensors under a known tool's names.

    Raises
    ------
    Unsupported
        If the file holds tensors of a network that is not run, or has a newer version of our header.
    Refusal
        If the header is damaged or too long, or contradicts the tensors.
    """
    table = SafetensorsTable(source)
    if DIRECTIONS_KEY in table.metadata:
        raise Unsupported("a network", "this file holds directions for one", "open the model that it lies beside")
    if KEY not in table.metadata:
        return _find_tensors_alone(table)
    said = parse_json(table.metadata[KEY])
    if said.get("version") != VERSION:
        raise Unsupported(f"version {VERSION} of our model files", "this one is of another version")
    network = _table(said.get("network"))
    spec = _assembled(table.shapes, network)
    if json.dumps(spec_to_json(spec), sort_keys=True) != json.dumps(network, sort_keys=True):
        raise Refusal("settings in the header that agree with the tensors", "they contradict each other")
    source_facts = _table(said.get("source", {}))
    return Found(
        spec=spec,
        load=partial(table.load, tuple(table.shapes)),
        container="safetensors",
        flavour=_note(source_facts.get("flavour")),
        warnings=_notes(source_facts.get("warnings", [])),
    )


def _assembled(shapes: Shapes, network: Mapping[str, object]) -> NetworkSpec:
    match network.get("family"):
        case "stylegan2":
            return assemble(shapes, settings_from_json(network))
        case "stylegan1":
            return assemble_stylegan1(shapes, stylegan1_settings_from_json(network))
        case "stylegan3" | "stylegan_xl" as family:
            return assemble_stylegan3(shapes, stylegan3_settings_from_json(network), family)
        case _:
            raise Unsupported(GENERATOR, "the header names another family")


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
        write_whole(path, safetensors.numpy.save(arrays, metadata), check=_read_back)
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name).replace("was not opened", "was not written", 1)) from refusal
    except (OSError, SafetensorError) as error:
        raise not_written(path, error) from error


def _read_back(path: Path) -> None:
    """Refuse a file that the reader would refuse; only the header is read."""
    with open_source(path) as source:
        find_safetensors(source)


def _find_tensors_alone(table: SafetensorsTable) -> Found:
    known = recognise_layout(table.shapes)
    if known is None:
        raise no_generator(table.shapes)
    layout, prefix = known
    table.rename(own_names(table.shapes, layout, prefix))
    return find_tensors(table, layout, container="safetensors", ignored=ignored_beside(prefix))


def _said(model: Model) -> dict[str, object]:
    facts = model.facts
    source = {
        "name": facts.name,
        "sha256": facts.model_id,
        "container": facts.container,
        "flavour": facts.flavour,
        "warnings": [printable(warning) for warning in model.file_warnings],
    }
    return {"version": VERSION, "network": spec_to_json(model.spec), "source": source}


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Refusal("a network's settings in the file's header", "a part of them is missing")
    return value


def _note(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NOTE or not value.isprintable():
        raise Refusal("short plain notes in the file's header", "found something else")
    return value


def _notes(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > _MAX_NOTES:
        raise Refusal("short plain notes in the file's header", "found something else")
    return tuple(_note(item) for item in value)
