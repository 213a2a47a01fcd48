"""The layers and the tensors that make a StyleGAN2 generator, derived from a few numbers.

Layer order, row indices and shapes follow the StyleGAN2 papers (Karras et al. 2020a, 2020b) and the
state-dict names of public files. With L = log2(R), block R has the rows

    conv0  2L - 5       conv1  2L - 4       torgb  2L - 3

so that a block's torgb shares its row with the next block's conv0; num_ws = 2 log2(resolution) - 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gpu_backend.model.mapping_network import mapping_shapes
from gpu_backend.model.spec import Activation, Architecture, LayerSpec, StyleGAN2Spec

BUFFER_SUFFIXES = (".noise_const", ".w_avg")
"""Suffixes of tensors that are stored with the parameters but not trained."""


def num_ws_of(resolution: int) -> int:
    """Rows of w that a network of this resolution takes."""
    return 2 * int(math.log2(resolution)) - 2


def block_resolutions(resolution: int) -> tuple[int, ...]:
    """Resolutions of the blocks: 4, 8, ... up to `resolution`."""
    return tuple(1 << exponent for exponent in range(2, int(math.log2(resolution)) + 1))


def stylegan2_layers(
    architecture: Architecture,
    channels: Mapping[int, int],
    img_channels: int,
    *,
    conv_clamp: float | None = None,
    fp16_from: int | None = None,
    activation: Activation = "lrelu",
    has_noise: bool = True,
) -> tuple[LayerSpec, ...]:
    """List the layers in execution order.

    Parameters
    ----------
    channels
        Block resolution -> channels, for every resolution from 4 up.
    conv_clamp
        Clamp of every convolution and toRGB; the resnet skip has none.
    fp16_from
        Blocks of this resolution and above run in half precision; None for none. Never the 4 x 4 block.
    """
    layers: list[LayerSpec] = []
    last = max(channels)
    for resolution in sorted(channels):
        width = channels[resolution]
        before = channels.get(resolution // 2, 0)
        level = int(math.log2(resolution))
        half = fp16_from is not None and resolution >= max(fp16_from, 8)
        prefix = f"b{resolution}"
        if resolution > 4:
            if architecture == "resnet":
                layers.append(LayerSpec(f"{prefix}.skip", "skip", resolution, before, width, 1, -1, use_fp16=half))
            layers.append(
                LayerSpec(
                    f"{prefix}.conv0",
                    "up_conv",
                    resolution,
                    before,
                    width,
                    3,
                    2 * level - 5,
                    has_noise=has_noise,
                    activation=activation,
                    conv_clamp=conv_clamp,
                    use_fp16=half,
                )
            )
        layers.append(
            LayerSpec(
                f"{prefix}.conv1",
                "conv",
                resolution,
                width,
                width,
                3,
                2 * level - 4,
                has_noise=has_noise,
                activation=activation,
                gain=math.sqrt(0.5) if architecture == "resnet" and resolution > 4 else 1.0,
                conv_clamp=conv_clamp,
                use_fp16=half,
            )
        )
        if architecture == "skip" or resolution == last:
            layers.append(
                LayerSpec(
                    f"{prefix}.torgb",
                    "to_rgb",
                    resolution,
                    width,
                    img_channels,
                    1,
                    2 * level - 3,
                    conv_clamp=conv_clamp,
                    use_fp16=half,
                )
            )
    return tuple(layers)


def tensor_shapes(spec: StyleGAN2Spec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that a network of this spec has; resample filters live in the spec instead."""
    shapes = mapping_shapes(spec.mapping)
    for layer in spec.layers:
        prefix = f"synthesis.{layer.name}"
        if layer.name == "b4.conv1":
            shapes["synthesis.b4.const"] = (layer.in_channels, 4, 4)
        shapes[f"{prefix}.weight"] = (layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)
        if layer.kind == "skip":
            continue
        shapes[f"{prefix}.bias"] = (layer.out_channels,)
        shapes[f"{prefix}.affine.weight"] = (layer.in_channels, spec.w_dim)
        shapes[f"{prefix}.affine.bias"] = (layer.in_channels,)
        if layer.has_noise:
            shapes[f"{prefix}.noise_const"] = (layer.resolution, layer.resolution)
            shapes[f"{prefix}.noise_strength"] = ()
    return shapes


def parameter_count(spec: StyleGAN2Spec) -> int:
    """Trained numbers of the network: noise images and w_avg are not among them."""
    return sum(math.prod(shape) for name, shape in tensor_shapes(spec).items() if not name.endswith(BUFFER_SUFFIXES))


def row_resolutions(layers: Iterable[LayerSpec], num_ws: int) -> tuple[int, ...]:
    """Resolution of the first layer that each row of w styles."""
    first: dict[int, int] = {}
    for layer in layers:
        if layer.w_index >= 0:
            first.setdefault(layer.w_index, layer.resolution)
    return tuple(first[row] for row in range(num_ws))
