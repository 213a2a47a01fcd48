"""The file of draft readouts beside a model: NAME.drafts.safetensors.

An early exit of the skip architecture gives the sum of its toRGB layers so far. Training does not make this sum similar
to the full picture; some networks show fog. But the features of that block contain most of the picture. A readout is a
1 x 1 convolution, fitted to predict the downscaled full picture from these features::

    draft[o] = sum_i weight[o, i] x[i] + bias[o]          x: output of the last convolution of the block

For the side S the file holds ``bS.weight`` (img_channels, channels) and ``bS.bias`` (img_channels,), float32, and one
JSON text in the metadata: ``{"version": 1, "model_id": SHA-256 of the model file}``. A file is read strictly and never
stops a model from being opened.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from gpu_backend.errors import ModelFileError
from gpu_backend.model.direction_file import header_text
from gpu_backend.model.network_json import parse_json
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.source import open_source
from gpu_backend.model.spec import NetworkSpec, StyleGAN2Spec
from gpu_backend.whole_file import write_whole

KEY = "latent-loom-drafts"
SUFFIX = ".drafts.safetensors"
VERSION = 1
MAX_FILE_BYTES = 1 << 20
_MAX_WEIGHT = 1e4

Readouts = Mapping[str, NDArray[np.float32]]
"""``drafts.bS.weight`` (img_channels, channels, 1, 1) and ``drafts.bS.bias`` (img_channels,) for each side S."""


def draft_path(model: str | os.PathLike[str]) -> Path:
    """Return the path of a model's readouts: ``hills.safetensors`` -> ``hills.drafts.safetensors``."""
    path = Path(model)
    return path.with_name(path.stem + SUFFIX)


def readout_channels(spec: NetworkSpec) -> dict[int, int]:
    """Return side -> number of input channels, for each side that may have a readout."""
    if not isinstance(spec, StyleGAN2Spec):
        return {}
    drafts = set(spec.draft_resolutions)
    return {layer.resolution: layer.in_channels for layer in spec.layers if layer.kind == "to_rgb"} if drafts else {}


def write_readouts(
    fitted: Mapping[int, tuple[NDArray[np.float32], NDArray[np.float32]]],
    path: str | os.PathLike[str],
    model_id: str,
    spec: NetworkSpec,
) -> None:
    """Write readouts, side -> (weight, bias).

    Raises
    ------
    ModelFileError
        If they do not suit the network.
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    tensors = {}
    for side, (weight, bias) in fitted.items():
        tensors[f"b{side}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"b{side}.bias"] = np.ascontiguousarray(bias, np.float32)
    text = json.dumps({"version": VERSION, "model_id": model_id}, sort_keys=True)
    content = safetensors.numpy.save(tensors, {KEY: text})
    try:
        _parsed(content, model_id, spec)
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name).replace("was not opened", "was not written", 1)) from refusal
    write_whole(path, content)


def read_readouts(path: str | os.PathLike[str], model_id: str, spec: NetworkSpec) -> Readouts:
    """Read the readouts of a model.

    Raises
    ------
    ModelFileError
        If the file is damaged, for another model, or of another format.
    """
    path = Path(path)
    try:
        with open_source(path) as source:
            if source.size > MAX_FILE_BYTES:
                raise Refusal(f"draft readouts of at most {MAX_FILE_BYTES >> 20} MiB", f"it has {source.size} bytes")
            content = source.read(0, source.size)
        return _parsed(content, model_id, spec)
    except Refusal as refusal:
        raise ModelFileError(refusal.sentence(path.name)) from refusal


def readout_sides(readouts: Readouts) -> frozenset[int]:
    """Return the sides that have a readout."""
    return frozenset(int(name.split(".")[1][1:]) for name in readouts)


def _parsed(content: bytes, model_id: str, spec: NetworkSpec) -> Readouts:
    said = parse_json(header_text(content, KEY, "a file of draft readouts"))
    try:
        tensors = safetensors.numpy.load(content)
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal("a whole safetensors file", f"the library that reads it says {shown(str(error))}") from error
    if said.get("version") != VERSION:
        raise Refusal(f"version {VERSION} of draft readouts", "this file is of another version")
    if said.get("model_id") != model_id:
        raise Refusal("draft readouts for this model", "they were fitted to another one", "fit them to this one")
    shapes: dict[str, tuple[int, ...]] = {}
    for side, channels in readout_channels(spec).items():
        shapes[f"b{side}.weight"] = (spec.img_channels, channels)
        shapes[f"b{side}.bias"] = (spec.img_channels,)
    found: dict[str, NDArray[np.float32]] = {}
    for name, array in tensors.items():
        if array.dtype != np.float32 or array.shape != shapes.get(name):
            raise Refusal("readouts of the shapes that this network has", f"{shown(name)} has another one")
        if not bool(np.all(np.abs(array) < _MAX_WEIGHT)):
            raise Refusal("readouts of finite numbers", f"{shown(name)} has others")
        block, role = name.split(".")
        # A toRGB without a style is divided by the root of its channels.
        whole = array[:, :, None, None] * np.float32(math.sqrt(array.shape[1])) if role == "weight" else array
        found[f"drafts.{block}.{role}"] = np.array(whole, np.float32)
    if not found or any(f"drafts.b{side}.{role}" not in found for side in readout_sides(found) for role in _ROLES):
        raise Refusal("a weight and a bias for each side", "one is missing")
    return found


_ROLES = ("weight", "bias")
