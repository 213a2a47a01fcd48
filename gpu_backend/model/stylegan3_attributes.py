"""Attributes of the modules of a pickled StyleGAN3; as `attributes` for StyleGAN2."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import numpy as np

from gpu_backend.model.attribute_checks import (
    MAPPING_ATTRIBUTES,
    MAPPING_ROLES,
    as_clamp,
    as_truth,
    check_expected,
    check_roles,
    expected_of_connected,
    expected_of_mapping,
    in_words,
    mapping_settings,
)
from gpu_backend.model.modules import Modules
from gpu_backend.model.numpy_values import ITEM_BYTES, ArrayRecord
from gpu_backend.model.records import content_of
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.source import Source
from gpu_backend.model.spec import StyleGAN3Spec
from gpu_backend.model.stylegan3_assembly import FilteredLayerSettings, StyleGAN3Settings
from gpu_backend.model.watch import Watch

_CLAMP = 256
"""Clamp where none is stored."""

_MAX_SMALL = 64
"""Longest array among the attributes: a rate a layer."""

_DESIGN = {
    "channel_base",
    "channel_max",
    "conv_kernel",
    "first_cutoff",
    "first_stopband",
    "last_stopband_rel",
    "sampling_rates",
    "use_radial_filters",
}
"""Attributes from which the stored filters and sizes were computed."""

STYLEGAN3_ATTRIBUTES = {
    **MAPPING_ATTRIBUTES,
    "SynthesisNetwork": _DESIGN
    | {
        "w_dim",
        "num_ws",
        "img_resolution",
        "img_channels",
        "num_layers",
        "num_critical",
        "margin_size",
        "output_scale",
        "num_fp16_res",
        "layer_names",
    },
    "SynthesisInput": {"w_dim", "channels", "size", "sampling_rate", "bandwidth"},
    "SynthesisLayer": {
        "w_dim",
        "is_torgb",
        "is_critically_sampled",
        "use_fp16",
        "in_channels",
        "out_channels",
        "in_size",
        "out_size",
        "in_sampling_rate",
        "out_sampling_rate",
        "tmp_sampling_rate",
        "in_cutoff",
        "out_cutoff",
        "in_half_width",
        "out_half_width",
        "conv_kernel",
        "conv_clamp",
        "magnitude_ema_beta",
        "up_factor",
        "up_taps",
        "down_factor",
        "down_taps",
        "down_radial",
        "padding",
        "filter_size",
        "use_radial_filters",
        "lrelu_upsampling",
    },
}
"""Class -> attributes that affect its pictures, or that are redundant."""

STYLEGAN3_ROLES = (
    *MAPPING_ROLES,
    (re.compile(r"synthesis"), "SynthesisNetwork"),
    (re.compile(r"synthesis\.input"), "SynthesisInput"),
    (re.compile(r"synthesis\.L\d+_\d+_\d+"), "SynthesisLayer"),
    (re.compile(r"synthesis\.(input|L\d+_\d+_\d+)\.affine"), "FullyConnectedLayer"),
)


def check_stylegan3_classes(modules: Modules) -> tuple[str, ...]:
    """Check the class of each module; return warnings about unknown attributes.

    Raises
    ------
    Unsupported
        If there is an unexpected module, or one of another class.
    """
    return check_roles(modules, STYLEGAN3_ROLES, STYLEGAN3_ATTRIBUTES)


def decode_small_arrays(source: Source, modules: Modules) -> None:
    """Convert NumPy arrays among the attributes to lists: sizes are stored as arrays of two numbers."""
    for record in modules.records.values():
        for name, value in record.state.items():
            if isinstance(value, ArrayRecord):
                record.state[name] = _small_array(source, value)


def read_stylegan3_settings(modules: Modules) -> StyleGAN3Settings:
    """Collect the hyper-parameters that shapes and layer names do not determine.

    Raises
    ------
    Refusal
        If one is missing or invalid.
    """
    activation, rate = mapping_settings(modules)
    clamp = _clamp_default(modules)
    layers: dict[str, FilteredLayerSettings] = {}
    for name in _layer_names(modules):
        path = f"synthesis.{name}"
        record = modules.records.get(path)
        if record is None:
            raise Refusal(GENERATOR, f"its layer {name} is missing")
        layers[name] = FilteredLayerSettings(
            in_rate=_count(modules, path, "in_sampling_rate"),
            out_rate=_count(modules, path, "out_sampling_rate"),
            rate=_count(modules, path, "tmp_sampling_rate"),
            conv_clamp=as_clamp(record.state.get("conv_clamp", clamp), path),
            use_fp16=as_truth(modules, path, "use_fp16"),
        )
    scale = modules.attribute("synthesis", "output_scale")
    return StyleGAN3Settings(
        mapping_activation=activation,
        lr_multiplier=rate,
        input_size=_size(modules),
        sampling_rate=_positive(modules, "synthesis.input", "sampling_rate"),
        bandwidth=_positive(modules, "synthesis.input", "bandwidth"),
        output_scale=0.25 if scale is None else _positive(modules, "synthesis", "output_scale"),
        layers=layers,
    )


def check_stylegan3_attributes(modules: Modules, spec: StyleGAN3Spec) -> None:
    """Check the attributes of the modules against their tensors.

    Raises
    ------
    Refusal
        If an attribute contradicts a shape, a name or another attribute.
    """
    check_expected(modules, expected_of_stylegan3(spec))


def _small_array(source: Source, record: ArrayRecord) -> list[bool | int | float]:
    if len(record.shape) != 1 or record.shape[0] > _MAX_SMALL:
        raise Refusal(f"a NumPy array of at most {_MAX_SMALL} numbers", f"found one of shape {record.shape}")
    content = content_of(source, record.content, Watch())
    if len(content) != record.shape[0] * ITEM_BYTES[record.dtype]:
        raise Refusal(f"a NumPy array of {record.shape[0]} numbers", "its bytes are not so many")
    values: list[bool | int | float] = np.frombuffer(content, dtype=f"<{record.dtype}").tolist()
    return values


def expected_of_stylegan3(spec: StyleGAN3Spec) -> Iterator[tuple[str, str, object]]:
    """Yield (module path, attribute, value) for every attribute that follows from the spec."""
    yield from expected_of_mapping(spec)
    yield "synthesis", "num_layers", len(spec.layers) - 1
    yield "synthesis.input", "w_dim", spec.w_dim
    yield "synthesis.input", "channels", spec.input.channels
    yield from expected_of_connected("synthesis.input.affine", spec.w_dim, 4, "linear", 1.0)
    for layer in spec.layers:
        path, (low, high) = f"synthesis.{layer.name}", layer.pads
        same: dict[str, object] = {
            "w_dim": spec.w_dim,
            "is_torgb": layer.kind == "to_rgb",
            "in_size": [layer.in_size] * 2,
            "out_size": [layer.out_size] * 2,
            "in_channels": layer.in_channels,
            "out_channels": layer.out_channels,
            "conv_kernel": layer.kernel,
            "up_factor": layer.up,
            "up_taps": layer.up_taps,
            "down_factor": layer.down,
            "down_taps": layer.down_taps,
            "down_radial": layer.is_radial,
            "padding": [low, high, low, high],
        }
        yield from ((path, name, value) for name, value in same.items())
        yield from expected_of_connected(f"{path}.affine", spec.w_dim, layer.in_channels, "linear", 1.0)


def _layer_names(modules: Modules) -> list[str]:
    """Names of the layers in execution order, each once."""
    said = modules.attribute("synthesis", "layer_names")
    there = {path.split(".")[1] for path in modules.records if path.startswith("synthesis.L")}
    names = sorted(there, key=lambda name: int(name[1:].partition("_")[0])) if said is None else said
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise Refusal("a list of the layers at synthesis.layer_names", f"found {in_words(names)}")
    if len(set(names)) != len(names) or set(names) != there:
        raise Refusal("synthesis.layer_names to list the layers that there are", "it lists others")
    return list(names)


def _size(modules: Modules) -> int:
    """Side of the input's grid, which is stored as width and height."""
    size = modules.attribute("synthesis.input", "size")
    if not isinstance(size, list) or len(size) != 2 or isinstance(size[0], bool) or not isinstance(size[0], int):
        raise Refusal("the two sizes of the input's grid", f"found {in_words(size)}")
    if size[0] != size[1]:
        raise Unsupported("square pictures", f"this network's grid is of {in_words(size)} samples")
    return size[0]


def _clamp_default(modules: Modules) -> object:
    arguments = modules.attribute("", "_init_kwargs")
    return arguments.get("conv_clamp", _CLAMP) if isinstance(arguments, dict) else _CLAMP


def _positive(modules: Modules, path: str, name: str) -> float:
    value = modules.attribute(path, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise Refusal(f"a number above 0 at {path}.{name}", f"found {in_words(value)}")
    return float(value)


def _count(modules: Modules, path: str, name: str) -> int:
    value = _positive(modules, path, name)
    if value != int(value):
        raise Refusal(f"a whole number at {path}.{name}", f"found {value:g}")
    return int(value)
