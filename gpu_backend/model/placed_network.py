"""Renames the tensors of a network from any tool's names to the official ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.assembly import LayerSettings, Settings, assemble
from gpu_backend.model.found import Found
from gpu_backend.model.layout import Layout, Placed, Stored
from gpu_backend.model.mean_w import LATENTS, mean_w
from gpu_backend.model.resample_filters import common_taps, used_filters
from gpu_backend.model.spec import Activation, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.model.stylegan1 import INPUT
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings, assemble_stylegan1
from gpu_backend.model.tensor_table import TensorTable
from gpu_backend.model.tensors import Loaded
from gpu_backend.model.watch import Watch

_MEAN = "mapping.w_avg"
_LABEL_BIAS = "mapping.embed.bias"
_INPUT_BIAS = f"synthesis.{INPUT}.bias"
_STRENGTH, _NOISE = ".noise_strength", ".noise_const"

_Spec = StyleGAN1Spec | StyleGAN2Spec


def uniform_settings(
    placed: Placed,
    taps: tuple[float, ...],
    *,
    activation: Activation = "lrelu",
    mapping_activation: Activation = "lrelu",
    lr_multiplier: float = 0.01,
    conv_clamp: float | None = None,
    fp16_from: int | None = None,
    joins_label: bool = False,
) -> Settings:
    """Give every layer the same settings; blocks of `fp16_from` and above run in half precision, never that of 4."""
    layers: dict[str, LayerSettings] = {}
    for name in placed.shapes:
        if name.endswith(".affine.weight"):
            layer = name.removeprefix("synthesis.").removesuffix(".affine.weight")
            size = int(layer.partition(".")[0].removeprefix("b"))
            own: Activation = "linear" if layer.endswith(".torgb") else activation
            layers[layer] = LayerSettings(own, conv_clamp, fp16_from is not None and size >= max(fp16_from, 8))
    return Settings(mapping_activation, lr_multiplier, taps, layers, joins_label)


def taps_of(table: TensorTable, layout: Layout, placed: Placed) -> tuple[float, ...] | None:
    """Read the resample filter of a file, None if it holds none."""
    names = used_filters(placed.filters, placed.shapes)
    filters = ((name, table.shapes[name], table.small(name)) for name in names)
    return common_taps(filters, layout.filter_sums)


def find_placed(
    table: TensorTable,
    placed: Placed,
    settings: Settings | StyleGAN1Settings,
    *,
    container: str,
    flavour: str,
    requested: frozenset[str] = frozenset(),
    ignored: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> Found:
    """Put a network together. What pictures can do without, noise and the mean of w, is made where it is missing.

    Raises
    ------
    Refusal
        If its tensors do not make a StyleGAN1 or StyleGAN2 generator, as the settings say.
    """
    shapes, said = dict(placed.shapes), list(warnings)
    for name in placed.shapes:
        prefix = name.removesuffix(_STRENGTH)
        if prefix != name and f"{prefix}{_NOISE}" not in shapes:
            size = int(name.split(".")[1].removeprefix("b"))
            shapes[f"{prefix}{_NOISE}"] = (size, size)
    if len(shapes) > len(placed.shapes):
        said.append("The file lacks noise maps: fixed random ones are used instead.")
    if _MEAN not in shapes and "mapping.embed.weight" not in shapes:
        depth = sum(1 for name in shapes if name.startswith("mapping.fc") and name.endswith(".bias"))
        shapes[_MEAN] = shapes.get(f"mapping.fc{depth - 1}.bias", ())
        said.append(f"The file lacks the mean of w: it was computed from {LATENTS:,} random latents.")
    if settings.joins_label and "mapping.embed.weight" in shapes:
        shapes[_LABEL_BIAS] = shapes["mapping.embed.weight"][:1]
    spec = _assembled(shapes, settings)
    return Found(
        spec=spec,
        load=partial(_load, table, placed.stored, spec),
        container=container,
        flavour=flavour,
        requested=requested,
        ignored=ignored,
        warnings=tuple(said),
    )


def _assembled(shapes: dict[str, tuple[int, ...]], settings: Settings | StyleGAN1Settings) -> _Spec:
    if isinstance(settings, Settings):
        return assemble(shapes, settings)
    shapes.setdefault(_INPUT_BIAS, shapes.get(f"synthesis.{INPUT}.const", ())[:1])  # one tool has none
    return assemble_stylegan1(shapes, settings)


def _load(table: TensorTable, stored: Mapping[str, Stored], spec: _Spec, watch: Watch) -> Loaded:
    """Decode and convert the tensors one by one, so that at most one is in memory twice."""
    loaded = table.load((item.name for item in stored.values()), watch)
    weights: dict[str, NDArray[np.float32]] = {}
    for official, item in stored.items():
        watch.check()
        weights[official] = item.change.array(loaded.weights.pop(item.name))
    random = np.random.RandomState(0)
    for layer in spec.layers:
        name = f"synthesis.{layer.name}{_NOISE}"
        if layer.has_noise and name not in weights:
            weights[name] = random.randn(layer.resolution, layer.resolution).astype(np.float32)
    if spec.mapping.joins_label:
        weights[_LABEL_BIAS] = np.zeros(spec.mapping.embed_dim, np.float32)
    if spec.family == "stylegan1":
        weights.setdefault(_INPUT_BIAS, np.zeros(spec.layers[0].out_channels, np.float32))
    if _MEAN not in weights:
        weights[_MEAN] = mean_w(spec.mapping, weights, watch)
    return Loaded(weights, loaded.digest)
