"""The spec of a StyleGAN3 generator from tensor shapes, layer names and settings, as in `assembly`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from gpu_backend.model.mapping_network import find_mapping
from gpu_backend.model.refusal import Refusal, shown
from gpu_backend.model.shapes import GENERATOR, MAX_RESOLUTION, Shapes, check_shapes, shape_of
from gpu_backend.model.spec import Activation, FilteredLayerSpec, FourierSpec, StyleGAN3Spec
from gpu_backend.model.stylegan3 import tensor_shapes
from gpu_backend.quick_dataclass import dataclass

_MAX_LAYERS = 64
_MAX_SIZE = 2 * MAX_RESOLUTION
_MAX_TAPS = 64
_MAX_MARGINS = 64
"""Samples beyond a small picture that its layers may have."""
_NAME = re.compile(r"L[0-9]{1,3}_([1-9][0-9]{0,4})_([1-9][0-9]{0,4})", re.ASCII)


@dataclass(frozen=True, slots=True)
class FilteredLayerSettings:
    """Settings of a layer that its tensors and name do not determine; the fields are those of FilteredLayerSpec."""

    in_rate: int
    out_rate: int
    rate: int
    conv_clamp: float | None = None
    use_fp16: bool = False


@dataclass(frozen=True, slots=True)
class StyleGAN3Settings:
    """Settings that tensor shapes do not determine. `layers` is in execution order."""

    mapping_activation: Activation
    lr_multiplier: float
    input_size: int
    sampling_rate: float
    bandwidth: float
    output_scale: float
    layers: Mapping[str, FilteredLayerSettings]


def assemble_stylegan3(
    shapes: Shapes, settings: StyleGAN3Settings, family: Literal["stylegan3", "stylegan_xl"] = "stylegan3"
) -> StyleGAN3Spec:
    """Derive the spec of a StyleGAN3 or StyleGAN-XL generator, and check every tensor's shape against it.

    Raises
    ------
    Refusal
        If a tensor is missing, does not fit the shapes of the others, or has no place in the network.
    """
    if not 2 <= len(settings.layers) <= _MAX_LAYERS:
        raise Refusal(f"a StyleGAN3 network of 2 to {_MAX_LAYERS} layers", f"found one of {len(settings.layers)}")
    if not 1 <= settings.input_size <= _MAX_SIZE or not settings.bandwidth < settings.sampling_rate / 2 <= _MAX_SIZE:
        raise Refusal("an input grid with room for its frequencies", f"found one of {settings.input_size} samples")
    channels = shape_of(shapes, "synthesis.input.weight", 2)[0]
    grid = FourierSpec(channels, settings.input_size, settings.sampling_rate, settings.bandwidth)
    layers: list[FilteredLayerSpec] = []
    size = grid.size
    for index, (name, own) in enumerate(settings.layers.items()):
        is_last = index == len(settings.layers) - 1
        layer = _layer(shapes, name, own, size, channels, w_index=index + 1, is_last=is_last)
        layers.append(layer)
        size, channels = layer.out_size, layer.out_channels
    if size > MAX_RESOLUTION:
        raise Refusal(f"a resolution of at most {MAX_RESOLUTION}", f"found one of {size}")
    largest = max(grid.size, *(layer.out_size for layer in layers))
    if largest > 2 * size + _MAX_MARGINS:
        raise Refusal(f"layers not much larger than the picture of {size} pixels", f"found one of {largest}")
    spec = StyleGAN3Spec(
        family=family,
        resolution=size,
        img_channels=channels,
        num_ws=len(layers) + 1,
        mapping=find_mapping(shapes, settings.mapping_activation, settings.lr_multiplier),
        input=grid,
        layers=tuple(layers),
        output_scale=settings.output_scale,
    )
    check_shapes(shapes, tensor_shapes(spec))
    return spec


def _layer(
    shapes: Shapes,
    name: str,
    own: FilteredLayerSettings,
    in_size: int,
    in_channels: int,
    *,
    w_index: int,
    is_last: bool,
) -> FilteredLayerSpec:
    prefix = f"synthesis.{name}"
    match = _NAME.fullmatch(name)
    if match is None:
        raise Refusal(GENERATOR, f"its layer {shown(name)} does not say its size and channels in its name")
    out_size, out_channels = int(match[1]), int(match[2])
    kernel = shape_of(shapes, f"{prefix}.weight", 4)[3]
    up_taps, down_taps = (_taps(shapes, f"{prefix}.{role}_filter") for role in ("up", "down"))
    if out_size > _MAX_SIZE or kernel % 2 == 0 or kernel > 7:
        raise Refusal(GENERATOR, f"its layer {name} has another size than such networks have")
    rates = own.in_rate, own.out_rate, own.rate
    if not all(1 <= rate <= 4 * _MAX_SIZE for rate in rates) or own.rate % own.in_rate or own.rate % own.out_rate:
        raise Refusal(f"sampling rates in {name} that divide the one in between", f"they are {rates}")
    if is_last and (up_taps, down_taps, own.rate, own.rate) != (1, 1, own.in_rate, own.out_rate):
        raise Refusal(f"no filters in the last layer, {name}", "it has some")
    return FilteredLayerSpec(
        name=name,
        kind="to_rgb" if is_last else "conv",
        w_index=w_index,
        in_channels=in_channels,
        out_channels=out_channels,
        kernel=kernel,
        in_size=in_size,
        out_size=out_size,
        in_rate=own.in_rate,
        out_rate=own.out_rate,
        rate=own.rate,
        up_taps=up_taps,
        down_taps=down_taps,
        is_radial=len(shapes.get(f"{prefix}.down_filter", ())) == 2,
        conv_clamp=own.conv_clamp,
        use_fp16=own.use_fp16,
    )


def _taps(shapes: Shapes, name: str) -> int:
    """Taps of a filter, 1 where there is none."""
    count = shapes.get(name, (1,))[:1]
    if not count or not 1 <= count[0] <= _MAX_TAPS:
        raise Refusal(f"at most {_MAX_TAPS} taps in {name}", f"its shape is {shapes[name]}")
    return count[0]
