"""The file of an encoder beside a model: NAME.encoder.safetensors.

An encoder is a small convolutional network that reads a picture, some of which may be masked, and says which w shows
it (`gpu_backend.gradients.encoder`). The file holds its tensors in half precision and one JSON text in the metadata::

    {"version": 1, "model_id": SHA-256 of the model file, "side": 64, "steps": 3000, "error": 0.31}

A file is read strictly: its tensors must have the names and shapes that follow from ``side`` and the model's w_dim. It
may also hold the scales of searches (`gpu_backend.model.search_scales`), and then ``"probes"`` in the text.
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
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.search_scales import PREFIX, SearchScales, parsed_scales
from gpu_backend.quick_dataclass import dataclass

KEY = "latent-loom-encoder"
SUFFIX = ".encoder.safetensors"
VERSION = 1
MAX_FILE_BYTES = 16 << 20
_EXPECTED = "an encoder"
INPUT_CHANNELS = 4
"""Red, green, blue and the mask."""
SIDES = (8, 16, 32, 64)
"""Sides of the picture that an encoder reads; the largest that the model's pictures have."""
_WIDTHS = (32, 64, 128, 192)
_LEAST_SIDE = 4
"""Side of the features that the dense layers read."""
_HIDDEN = 320
_MAX_WEIGHT = 1e4
_MAX_STEPS = 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class EncoderFile:
    """An encoder as it is stored.

    Attributes
    ----------
    side
        Of the picture that it reads, one of `SIDES`.
    tensors
        As `encoder_shapes` names them, float32.
    steps
        Steps of its training.
    error
        Of w on pictures that it was not trained on, as `gpu_backend.training.encoder` measures it: 1 for an encoder
        that knows the mean of w only.
    scales
        Of searches for pictures; None if they were not learnt.
    """

    side: int
    tensors: Mapping[str, NDArray[np.float32]]
    steps: int
    error: float
    scales: SearchScales | None = None


def encoder_path(model: str | os.PathLike[str]) -> Path:
    """Return where a model's encoder lies: ``hills.safetensors`` -> ``hills.encoder.safetensors``."""
    path = Path(model)
    return path.with_name(path.stem + SUFFIX)


def encoder_side(resolution: int) -> int:
    """Return the side of the picture that an encoder reads, for a network of this resolution."""
    return max((side for side in SIDES if side <= resolution), default=SIDES[0])


def encoder_shapes(side: int, w_dim: int) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of an encoder's tensors: convolutions ``down.N`` and ``same.N``, dense layers."""
    levels = int(math.log2(side // _LEAST_SIDE))
    shapes: dict[str, tuple[int, ...]] = {}
    inputs = INPUT_CHANNELS
    for level, width in enumerate(_WIDTHS[:levels]):
        shapes |= {f"down.{level}.weight": (width, inputs, 3, 3), f"down.{level}.bias": (width,)}
        if 0 < level < len(_WIDTHS) - 1:
            shapes |= {f"same.{level}.weight": (width, width, 3, 3), f"same.{level}.bias": (width,)}
        inputs = width
    flat = inputs * _LEAST_SIDE**2
    shapes |= {"hidden.weight": (_HIDDEN, flat), "hidden.bias": (_HIDDEN,)}
    shapes |= {"w.weight": (w_dim, _HIDDEN), "w.bias": (w_dim,), "mean": (w_dim,), "deviation": (w_dim,)}
    return shapes


def write_encoder(encoder: EncoderFile, path: str | os.PathLike[str], model_id: str, w_dim: int, num_ws: int) -> None:
    """Write an encoder, aside first and then moved into place.

    Raises
    ------
    ModelFileError
        If reading would refuse it.
    LoomError
        If the file cannot be written; nothing is left behind.
    """
    scales = encoder.scales
    tensors: dict[str, NDArray[Any]] = {
        name: np.ascontiguousarray(array, np.float16 if array.ndim > 1 else np.float32)
        for name, array in encoder.tensors.items()
    }
    said = {
        "version": VERSION,
        "model_id": model_id,
        "side": encoder.side,
        "steps": encoder.steps,
        "error": round(float(encoder.error), 5),
    }
    if scales is not None:
        tensors |= scales.stored()
        said["probes"] = scales.probes
    write_companion(
        path,
        lambda: safetensors.numpy.save(tensors, {KEY: json.dumps(said, sort_keys=True, allow_nan=False)}),
        lambda content: _parsed(content, model_id, w_dim, num_ws),
    )


def read_encoder(path: str | os.PathLike[str], model_id: str, w_dim: int, num_ws: int) -> EncoderFile:
    """Read the encoder of a model.

    Raises
    ------
    ModelFileError
        If the file is damaged, for another model, or of another format.
    """
    return read_companion(path, _EXPECTED, MAX_FILE_BYTES, lambda content: _parsed(content, model_id, w_dim, num_ws))


def _parsed(content: bytes, model_id: str, w_dim: int, num_ws: int) -> EncoderFile:
    if len(content) > MAX_FILE_BYTES:
        raise Refusal(f"{_EXPECTED} of at most {MAX_FILE_BYTES >> 20} MiB", f"it has {len(content)} bytes")
    said, tensors = parse_companion(content, KEY, "the file of an encoder")
    if said.get("version") != VERSION:
        raise Refusal(f"version {VERSION} of encoders", "this file is of another version")
    if said.get("model_id") != model_id:
        raise Refusal("an encoder of this model", "it was trained for another one", "train one for this model")
    side, steps, measured = said.get("side"), said.get("steps"), said.get("error")
    if type(side) is not int or side not in SIDES or type(steps) is not int or not 0 <= steps <= _MAX_STEPS:
        raise Refusal("the side and the steps of an encoder", "they are missing or out of range")
    if isinstance(measured, bool) or not (isinstance(measured, int | float) and 0.0 <= measured < _MAX_WEIGHT):
        raise Refusal("the error of an encoder, a finite number", "it is missing or out of range")
    of_scales = {name: tensors.pop(name) for name in [*tensors] if name.startswith(PREFIX)}
    probes = said.get("probes")
    scales = parsed_scales(of_scales, probes, num_ws, w_dim) if of_scales or probes is not None else None
    shapes = encoder_shapes(side, w_dim)
    if set(tensors) != set(shapes):
        raise Refusal("the tensors of an encoder", "some are missing, or others are there")
    for name, shape in shapes.items():
        array = tensors[name]
        if array.dtype not in (np.float16, np.float32) or array.shape != shape:
            raise Refusal(f"{name} as floating-point numbers of the shape {shape}", "it has another shape or type")
        if not bool(np.all(np.abs(array.astype(np.float32)) < _MAX_WEIGHT)):
            raise Refusal("tensors of finite numbers", f"{name} has others")
    arrays = {name: np.ascontiguousarray(tensors[name], np.float32) for name in shapes}
    return EncoderFile(side, arrays, steps, float(measured), scales)
