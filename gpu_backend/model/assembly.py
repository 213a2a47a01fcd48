"""Derives a StyleGAN2 spec from tensor shapes and settings; a contradiction refuses the file.

All file formats use the same rules, so a converted file gives the same spec as its source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpu_backend.model.mapping_network import find_mapping
from gpu_backend.model.refusal import Refusal, Unsupported
from gpu_backend.model.shapes import GENERATOR, MAX_RESOLUTION, Shapes, check_shapes, shape_of
from gpu_backend.model.spec import Activation, Architecture, LayerSpec, StyleGAN2Spec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers, tensor_shapes
from gpu_backend.quick_dataclass import dataclass

_BLOCK = re.compile(r"synthesis\.b([1-9][0-9]{0,4})\.", re.ASCII)


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """Settings of a layer that its tensor shapes do not determine."""

    activation: Activation = "lrelu"
    conv_clamp: float | None = None
    use_fp16: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings that tensor shapes do not determine. `layers` is keyed by layer name, without the resnet skips."""

    mapping_activation: Activation
    lr_multiplier: float
    resample_filter: tuple[float, ...]
    layers: Mapping[str, LayerSettings]
    joins_label: bool = False


def assemble(shapes: Shapes, settings: Settings) -> StyleGAN2Spec:
    """Derive the spec of a StyleGAN2 generator, and check every tensor's shape against it.

    Raises
    ------
    Refusal
        If a tensor is missing, is not part of the network, or has a shape that contradicts the others.
    """
    resolutions = find_resolutions(shapes)
    mapping = find_mapping(
        shapes, settings.mapping_activation, settings.lr_multiplier, joins_label=settings.joins_label
    )
    layers = stylegan2_layers(
        find_architecture(shapes, resolutions),
        {size: shape_of(shapes, f"synthesis.b{size}.conv1.weight", 4)[0] for size in resolutions},
        shape_of(shapes, f"synthesis.b{resolutions[-1]}.torgb.weight", 4)[0],
    )
    spec = StyleGAN2Spec(
        family="stylegan2",
        architecture=find_architecture(shapes, resolutions),
        resolution=resolutions[-1],
        img_channels=layers[-1].out_channels,
        num_ws=num_ws_of(resolutions[-1]),
        mapping=mapping,
        layers=tuple(_with_settings(layer, shapes, settings) for layer in layers),
        resample_filter=settings.resample_filter,
    )
    _check_square(shapes)
    check_shapes(shapes, tensor_shapes(spec))
    return spec


def find_resolutions(names: Iterable[str]) -> tuple[int, ...]:
    """Resolutions of the blocks: 4, 8, ... without a gap.

    Raises
    ------
    Refusal
        If there is none, or one is missing or too large.
    """
    found = {int(match[1]) for name in names if (match := _BLOCK.match(name))}
    if not found:
        raise Refusal(GENERATOR, "it has no synthesis blocks")
    largest = max(found)
    if largest > MAX_RESOLUTION:
        raise Refusal(f"a resolution of at most {MAX_RESOLUTION}", f"found a block of {largest}")
    expected = block_resolutions(largest) if largest >= 4 else ()
    for resolution in sorted(found | set(expected)):
        if resolution not in found or resolution not in expected:
            problem = "is missing" if resolution not in found else "is none of them"
            raise Refusal(f"blocks of 4, 8 and so on up to {largest}", f"the block of {resolution} {problem}")
    return expected


def find_architecture(names: Iterable[str], resolutions: tuple[int, ...]) -> Architecture:
    """Return skip, resnet or orig, depending on which blocks have a skip or a torgb."""
    present = set(names)
    if any(f"synthesis.b{size}.skip.weight" in present for size in resolutions):
        return "resnet"
    if all(f"synthesis.b{size}.torgb.weight" in present for size in resolutions):
        return "skip"
    return "orig"


def _with_settings(layer: LayerSpec, shapes: Shapes, settings: Settings) -> LayerSpec:
    if layer.kind == "skip":
        half = settings.layers.get(layer.name.replace(".skip", ".conv0"), LayerSettings()).use_fp16
        return replace(layer, use_fp16=half)
    own = settings.layers.get(layer.name)
    if own is None:
        raise Refusal(GENERATOR, f"the settings of layer {layer.name} are missing")
    return replace(
        layer,
        has_noise=layer.kind != "to_rgb" and f"synthesis.{layer.name}.noise_strength" in shapes,
        activation="linear" if layer.kind == "to_rgb" else own.activation,
        conv_clamp=own.conv_clamp,
        use_fp16=own.use_fp16,
    )


def _check_square(shapes: Shapes) -> None:
    const = shapes.get("synthesis.b4.const", ())
    if len(const) == 3 and const[1:] != (4, 4):
        raise Unsupported("square pictures", f"this network starts from {const[1]} x {const[2]} pixels")
