"""The discriminator of a model file: the blocks that read a picture, down to 4 x 4.

Snapshots of NVIDIA's PyTorch tools hold one under ``D``, rosinality's checkpoints one under ``d``. Only StyleGAN2's
residual discriminator is read, which the tools of StyleGAN2 and StyleGAN3 train. Its last layers, which judge, are not.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.detection import HEAD_BYTES, pickle_reader
from gpu_backend.model.modules import take_apart
from gpu_backend.model.records import Persistent, TensorRecord
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.resample_filters import USUAL_TAPS, common_taps
from gpu_backend.model.source import Source, open_source
from gpu_backend.model.spec import NetworkSpec
from gpu_backend.model.tensors import load_tensors, small_values
from gpu_backend.model.watch import Watch
from gpu_backend.quick_dataclass import dataclass

_EXPECTED = "the discriminator of a model file"
_FILTER = re.compile(r"b[0-9]{1,4}\.(conv1|skip)\.resample_filter", re.ASCII)
"""The filters that a residual discriminator applies."""
_ROSINALITY = {
    "conv0.weight": "conv1.0.weight",
    "conv0.bias": "conv1.1.bias",
    "conv1.weight": "conv2.1.weight",
    "conv1.bias": "conv2.2.bias",
    "skip.weight": "skip.1.weight",
}
"""Tensors of a block: official names -> rosinality's."""


@dataclass(frozen=True, slots=True, eq=False)
class DiscriminatorWeights:
    """The blocks of a residual discriminator.

    Attributes
    ----------
    sides
        Of the blocks, descending: the resolution, half of it, ..., 8.
    tensors
        By official names: ``b64.fromrgb.weight`` and ``.bias`` of the first block, of each block ``b64.conv0``,
        ``b64.conv1`` and ``b64.skip.weight``.
    taps
        Of the filter before each halving, sum 1.
    """

    sides: tuple[int, ...]
    tensors: Mapping[str, NDArray[np.float32]]
    taps: tuple[float, ...]


def read_discriminator(path: str | os.PathLike[str], model_id: str, spec: NetworkSpec) -> DiscriminatorWeights | None:
    """Read the discriminator of a model file on the host; None if the file has none of this kind.

    Parameters
    ----------
    model_id
        SHA-256 that the file must still have.
    spec
        Of the generator: both have the same resolution and channels.

    Raises
    ------
    ModelFileError
        If the file was changed, or the discriminator is damaged.
    """
    path = Path(path)
    try:
        with open_source(path) as source:
            reader = pickle_reader(source.read(0, HEAD_BYTES))
            if reader is None:
                return None
            found = _find(source, reader(source, Watch(), set()).value, spec)
            if found is None:
                return None
            records, taps = found
            loaded = load_tensors(source, records, Watch())
    except Refusal as refusal:
        raise refusal.error(refusal.sentence(path.name)) from refusal
    if loaded.digest != model_id:
        changed = Refusal("the file that the model was read from", "it was changed since")
        raise changed.error(changed.sentence(path.name))
    tensors = {name: x.reshape(-1) if name.endswith(".bias") else x for name, x in loaded.weights.items()}
    return DiscriminatorWeights(_sides(spec.resolution), tensors, taps)


def _find(source: Source, value: object, spec: NetworkSpec) -> tuple[dict[str, TensorRecord], tuple[float, ...]] | None:
    """Return the tensors of the blocks by official names, and the taps; None if there is no such discriminator."""
    stored = value.get("D") if isinstance(value, dict) else None
    if stored is None and isinstance(value, dict):
        stored = value.get("d")
    sides = _sides(spec.resolution)
    if isinstance(stored, Persistent) and stored.class_name == "Discriminator":
        modules = take_apart(stored)
        tensors = modules.tensors
        architecture = modules.attribute(f"b{sides[0]}", "architecture") if sides else None
        if architecture != "resnet":
            return None
        filters = ((name, x.shape, small_values(source, x, name)) for name, x in tensors.items() if _FILTER.match(name))
        taps = common_taps(filters) or USUAL_TAPS
        names = {name: name for name in _names(sides)}
    elif isinstance(stored, dict):
        tensors = {name: x for name, x in stored.items() if isinstance(name, str) and isinstance(x, TensorRecord)}
        names, taps = _rosinality_names(sides), USUAL_TAPS
    else:
        return None
    if not sides or any(name not in tensors for name in names.values()):
        return None
    records = {name: tensors[own] for name, own in names.items()}
    _check(records, sides, spec.img_channels)
    return records, taps


def _sides(resolution: int) -> tuple[int, ...]:
    return tuple(1 << level for level in range(resolution.bit_length() - 1, 2, -1))


def _names(sides: tuple[int, ...]) -> list[str]:
    first = [f"b{sides[0]}.fromrgb.weight", f"b{sides[0]}.fromrgb.bias"] if sides else []
    return first + [f"b{side}.{part}" for side in sides for part in _ROSINALITY]


def _rosinality_names(sides: tuple[int, ...]) -> dict[str, str]:
    first = {f"b{side}.fromrgb.{part}": own for side in sides[:1] for part, own in _FIRST.items()}
    return first | {
        f"b{side}.{part}": f"convs.{number}.{own}"
        for number, side in enumerate(sides, 1)
        for part, own in _ROSINALITY.items()
    }


_FIRST = {"weight": "convs.0.0.weight", "bias": "convs.0.1.bias"}


def _check(records: Mapping[str, TensorRecord], sides: tuple[int, ...], img_channels: int) -> None:
    """Refuse tensors that do not follow from each other."""
    inputs = records[f"b{sides[0]}.fromrgb.bias"].extent
    wanted: dict[str, tuple[int, ...]] = {f"b{sides[0]}.fromrgb.weight": (inputs, img_channels, 1, 1)}
    for side in sides:
        outputs = records[f"b{side}.conv1.bias"].extent
        wanted |= {
            f"b{side}.conv0.weight": (inputs, inputs, 3, 3),
            f"b{side}.conv1.weight": (outputs, inputs, 3, 3),
            f"b{side}.skip.weight": (outputs, inputs, 1, 1),
        }
        if math.prod(records[f"b{side}.conv0.bias"].shape) != inputs:
            raise Refusal(_EXPECTED, f"its b{side}.conv0.bias has the shape {records[f'b{side}.conv0.bias'].shape}")
        inputs = outputs
    for name, shape in wanted.items():
        if records[name].shape != shape:
            raise Refusal(f"{_EXPECTED} with {name} of shape {shape}", f"its shape is {records[name].shape}")
