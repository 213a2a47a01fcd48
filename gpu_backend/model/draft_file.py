"""The file of draft readouts beside a model: NAME.drafts.safetensors.

An early exit of the skip architecture gives the sum of its toRGB layers so far. Training does not make this sum similar
to the full picture; some networks show fog. But the features of that block contain most of the picture. A readout is a
1 x 1 convolution, fitted to predict the downscaled full picture from these features::

    draft[o] = sum_i weight[o, i] x[channels[i]] + bias[o]      x: output of the last convolution of the block

It reads a few of the channels, so a draft computes no others: that convolution is the most expensive one of a draft.
For the side S the file holds ``bS.channels`` (count,), int32, ascending, ``bS.weight`` (img_channels, count) and
``bS.bias`` (img_channels,), float32, and one JSON text in the metadata: ``{"version": 2, "model_id": SHA-256 of the
model file}``. Version 1 has no ``bS.channels``: it reads all of them. A file is read strictly and never stops a model
from being opened.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from gpu_backend.model.companion_file import parse_companion, read_companion, write_companion
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.spec import NetworkSpec, StyleGAN2Spec
from gpu_backend.quick_dataclass import dataclass

KEY = "latent-loom-drafts"
SUFFIX = ".drafts.safetensors"
VERSION = 2
MAX_FILE_BYTES = 1 << 20
_MAX_WEIGHT = 1e4


@dataclass(frozen=True, slots=True, eq=False)
class Readout:
    """The readout of one side: the channels that it reads (count,), weight (img_channels, count), bias (img_channels,).

    All float32 but for the channels, which are whole numbers in ascending order.
    """

    channels: NDArray[np.int32]
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]


Readouts = Mapping[int, Readout]
"""Side -> its readout."""


def draft_path(model: str | os.PathLike[str]) -> Path:
    """Return the path of a model's readouts: ``hills.safetensors`` -> ``hills.drafts.safetensors``."""
    path = Path(model)
    return path.with_name(path.stem + SUFFIX)


def readout_channels(spec: NetworkSpec) -> dict[int, int]:
    """Return side -> number of channels of the block's features, for each side that may have a readout."""
    if not isinstance(spec, StyleGAN2Spec):
        return {}
    drafts = set(spec.draft_resolutions)
    return {layer.resolution: layer.in_channels for layer in spec.layers if layer.kind == "to_rgb"} if drafts else {}


def write_readouts(readouts: Readouts, path: str | os.PathLike[str], model_id: str, spec: NetworkSpec) -> None:
    """Write readouts.

    Raises
    ------
    ModelFileError
        If they do not suit the network.
    LoomError
        If the file cannot be written; nothing is left behind.
    """
    tensors: dict[str, NDArray[Any]] = {}
    for side, readout in readouts.items():
        tensors[f"b{side}.channels"] = np.ascontiguousarray(readout.channels, np.int32)
        tensors[f"b{side}.weight"] = np.ascontiguousarray(readout.weight, np.float32)
        tensors[f"b{side}.bias"] = np.ascontiguousarray(readout.bias, np.float32)
    text = json.dumps({"version": VERSION, "model_id": model_id}, sort_keys=True)
    write_companion(
        path,
        lambda: safetensors.numpy.save(tensors, {KEY: text}),
        lambda content: _parsed(content, model_id, spec),
    )


def read_readouts(path: str | os.PathLike[str], model_id: str, spec: NetworkSpec) -> Readouts:
    """Read the readouts of a model.

    Raises
    ------
    ModelFileError
        If the file is damaged, for another model, or of another format.
    """
    return read_companion(path, "draft readouts", MAX_FILE_BYTES, lambda content: _parsed(content, model_id, spec))


def readout_widths(readouts: Readouts) -> dict[int, int]:
    """Return side -> number of channels that its readout reads."""
    return {side: len(readout.channels) for side, readout in readouts.items()}


def draft_weights(readouts: Readouts, weights: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Return the weights that drafts have and the model has not.

    For a side S: ``drafts.bS.weight`` and ``.bias`` of the readout, in the form of a toRGB, and
    ``drafts.bS.conv1.weight`` and ``.bias``, the block's last convolution without the channels that are not read.
    """
    found: dict[str, NDArray[np.float32]] = {}
    for side, readout in readouts.items():
        # A toRGB without a style is divided by the root of its channels.
        scale = np.float32(math.sqrt(len(readout.channels)))
        found[f"drafts.b{side}.weight"] = readout.weight[:, :, None, None] * scale
        found[f"drafts.b{side}.bias"] = readout.bias
        for role in ("weight", "bias"):
            found[f"drafts.b{side}.conv1.{role}"] = weights[f"synthesis.b{side}.conv1.{role}"][readout.channels]
    return found


def _parsed(content: bytes, model_id: str, spec: NetworkSpec) -> Readouts:
    said, tensors = parse_companion(content, KEY, "a file of draft readouts")
    version = said.get("version")
    if version not in (1, VERSION):
        raise Refusal(f"version {VERSION} of draft readouts", "this file is of another version")
    if said.get("model_id") != model_id:
        raise Refusal("draft readouts for this model", "they were fitted to another one", "fit them to this one")
    found: dict[int, Readout] = {}
    for side, width in readout_channels(spec).items():
        names = {role: f"b{side}.{role}" for role in ("channels", "weight", "bias")}
        if version == 1 and names["weight"] in tensors:
            tensors[names["channels"]] = np.arange(width, dtype=np.int32)
        arrays = [tensors.pop(name) for name in names.values() if name in tensors]
        if len(arrays) == len(names):
            found[side] = _readout(side, *arrays, outputs=spec.img_channels, width=width)
        elif arrays:
            raise Refusal("channels, a weight and a bias for each side", f"b{side} lacks one of them")
    for name in tensors:
        raise Refusal("readouts of the sides that this network has", f"it has {shown(name)}")
    if not found:
        raise Refusal("a readout of at least one side", "it has none")
    return found


def _readout(
    side: int, channels: NDArray[Any], weight: NDArray[Any], bias: NDArray[Any], *, outputs: int, width: int
) -> Readout:
    """Return the readout of a side; refuse one that does not suit the block's `width` channels."""
    is_list = channels.dtype == np.int32 and channels.ndim == 1 and 0 < len(channels) <= width
    if not (is_list and bool(np.all(np.diff(channels) > 0)) and channels[0] >= 0 and channels[-1] < width):
        raise Refusal("readouts of channels in ascending order", f"b{side} has others")
    for array, shape in ((weight, (outputs, len(channels))), (bias, (outputs,))):
        if array.dtype != np.float32 or array.shape != shape:
            raise Refusal("readouts of the shapes that this network has", f"b{side} has another one")
        if not bool(np.all(np.abs(array) < _MAX_WEIGHT)):
            raise Refusal("readouts of finite numbers", f"b{side} has others")
    return Readout(channels, weight, bias)
