"""A spec from tensor shapes: shapes decide what they can decide, settings say the rest, and a contradiction refuses.

The same rules serve every file format, so that a converted file means exactly what its source meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.spec import Activation, Architecture, LayerSpec, MappingSpec, StyleGAN2Spec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers, tensor_shapes

Shapes = Mapping[str, tuple[int, ...]]
"""State-dict name -> shape."""

GENERATOR = "a StyleGAN2 generator"

MAX_RESOLUTION = 4096
_MAX_MAPPING_LAYERS = 64
_BLOCK = re.compile(r"synthesis\.b([1-9][0-9]{0,4})\.", re.ASCII)
_FULLY_CONNECTED = re.compile(r"mapping\.fc(0|[1-9][0-9]?)\.weight", re.ASCII)


@dataclass(frozen=True, slots=True)
class LayerSettings:
    """What a layer's tensors do not tell."""

    activation: Activation = "lrelu"
    conv_clamp: float | None = None
    use_fp16: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What a network's tensors do not tell. `layers` is keyed by layer name, without the resnet skips."""

    mapping_activation: Activation
    lr_multiplier: float
    resample_filter: tuple[float, ...]
    layers: Mapping[str, LayerSettings]


def assemble(shapes: Shapes, settings: Settings) -> StyleGAN2Spec:
    """Work out the spec of a StyleGAN2 generator, and check every tensor's shape against it.

    Raises
    ------
    Refusal
        If a tensor is missing, has another shape than the others ask for, or has no place in the network.
    """
    resolutions = find_resolutions(shapes)
    mapping = _mapping(shapes, settings)
    layers = stylegan2_layers(
        find_architecture(shapes, resolutions),
        {size: _shape(shapes, f"synthesis.b{size}.conv1.weight", 4)[0] for size in resolutions},
        _shape(shapes, f"synthesis.b{resolutions[-1]}.torgb.weight", 4)[0],
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
    _check_shapes(shapes, tensor_shapes(spec))
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
        raise Refusal(f"a resolution of at most {MAX_RESOLUTION}", f"a block of {largest} came")
    expected = block_resolutions(largest) if largest >= 4 else ()
    for resolution in sorted(found | set(expected)):
        if resolution not in found or resolution not in expected:
            came = "is missing" if resolution not in found else "came"
            raise Refusal(f"blocks of 4, 8 and so on up to {largest}", f"the block of {resolution} {came}")
    return expected


def find_architecture(names: Iterable[str], resolutions: tuple[int, ...]) -> Architecture:
    """Tell skip, resnet and orig apart by which blocks have a skip or a torgb."""
    present = set(names)
    if any(f"synthesis.b{size}.skip.weight" in present for size in resolutions):
        return "resnet"
    if all(f"synthesis.b{size}.torgb.weight" in present for size in resolutions):
        return "skip"
    return "orig"


def _mapping(shapes: Shapes, settings: Settings) -> MappingSpec:
    depth = sum(1 for name in shapes if _FULLY_CONNECTED.fullmatch(name))
    if not 1 <= depth <= _MAX_MAPPING_LAYERS:
        raise Refusal(f"a mapping network of 1 to {_MAX_MAPPING_LAYERS} layers", f"one of {depth} came")
    widths = tuple(_shape(shapes, f"mapping.fc{index}.weight", 2)[0] for index in range(depth))
    embed_dim = c_dim = 0
    if "mapping.embed.weight" in shapes:
        embed_dim, c_dim = _shape(shapes, "mapping.embed.weight", 2)
    z_dim = _shape(shapes, "mapping.fc0.weight", 2)[1] - embed_dim
    if z_dim < 1:
        raise Refusal("a mapping network that takes z", f"its first layer has room for {z_dim} numbers of z")
    return MappingSpec(z_dim, c_dim, embed_dim, widths, settings.mapping_activation, settings.lr_multiplier)


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


def _shape(shapes: Shapes, name: str, dimensions: int) -> tuple[int, ...]:
    shape = shapes.get(name)
    if shape is None:
        raise Refusal(GENERATOR, f"its tensor {name} is missing")
    if len(shape) != dimensions:
        raise Refusal(f"{name} to have {dimensions} dimensions", f"its shape is {shape}")
    if 0 in shape:
        raise Refusal(f"{name} to have something in it", f"its shape is {shape}")
    return shape


def _check_shapes(shapes: Shapes, expected: Shapes) -> None:
    const = shapes.get("synthesis.b4.const", ())
    if len(const) == 3 and const[1:] != (4, 4):
        raise Unsupported("square pictures", f"this network starts from {const[1]} x {const[2]} pixels")
    for name, shape in expected.items():
        if name not in shapes:
            raise Refusal(GENERATOR, f"its tensor {name} is missing")
        if shapes[name] != shape:
            raise Refusal(f"{name} of shape {shape}", f"its shape is {shapes[name]}")
    extra = sorted(set(shapes) - set(expected))
    if extra:
        raise Unsupported(GENERATOR, f"it also has {shown(extra[0])}, which such a network does not have")


def fir_taps(values: list[float], shape: tuple[int, ...]) -> tuple[float, ...]:
    """Find the one-dimensional taps of a stored resample filter.

    Stored are n taps f (n >= 8) or their outer product F[i, j] = f[i] f[j]; as sum(f) = 1, the row sums of F are f.

    Raises
    ------
    Refusal
        If the filter is too large, not an outer product, or does not sum to one.
    """
    if len(shape) not in (1, 2) or not 1 <= shape[0] <= 32 or len(set(shape)) != 1:
        raise Refusal("a resample filter of at most 32 taps", f"its shape is {shape}")
    count = shape[0]
    taps = values if len(shape) == 1 else [math.fsum(values[row * count : (row + 1) * count]) for row in range(count)]
    if not all(math.isfinite(tap) for tap in taps) or abs(math.fsum(taps) - 1) > 1e-3:
        raise Refusal("a resample filter that sums to 1", f"it sums to {math.fsum(taps):g}")
    if len(shape) == 2:
        error = max(abs(values[i * count + j] - taps[i] * taps[j]) for i in range(count) for j in range(count))
        if not error < 1e-5:
            raise Unsupported("a separable resample filter", "this one is not")
    return tuple(taps)
