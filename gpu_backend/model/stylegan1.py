"""The layers and the tensors that make a StyleGAN1 generator (Karras et al. 2019), derived from a few numbers.

With L = log2(R), block R has the rows

    conv0  2L - 4       conv1  2L - 3

and the constant that the network starts from replaces the first block's conv0. Names are the same as in a StyleGAN2.
Up-convolutions hold their weights as a transposed convolution scatters them, at every resolution; the first half of a
style scales, with a bias that includes the 1 about which scales vary, and the second half shifts.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from gpu_backend.model.mapping_network import mapping_shapes
from gpu_backend.model.spec import Activation, AdainLayerKind, AdainLayerSpec, StyleGAN1Spec
from gpu_backend.model.stylegan2 import BUFFER_SUFFIXES

INPUT = "b4.input"
"""Name of the layer of the learned constant."""


def stylegan1_layers(
    channels: Mapping[int, int],
    img_channels: int,
    *,
    pictures: Collection[int] = (),
    activation: Activation = "lrelu",
    has_noise: bool = True,
) -> tuple[AdainLayerSpec, ...]:
    """List the layers in execution order.

    Parameters
    ----------
    channels
        Block resolution -> channels, for every resolution from 4 up.
    pictures
        Resolutions below the full one that have a toRGB too.
    """
    layers: list[AdainLayerSpec] = []
    for resolution in sorted(channels):
        width, before = channels[resolution], channels.get(resolution // 2, channels[resolution])
        row = 2 * int(math.log2(resolution)) - 4
        name: str
        kind: AdainLayerKind
        name, kind = (INPUT, "input") if resolution == 4 else (f"b{resolution}.conv0", "up_conv")
        first = AdainLayerSpec(name, kind, resolution, before, width, row, has_noise, activation)
        layers += [first, replace(first, name=f"b{resolution}.conv1", kind="conv", in_channels=width, w_index=row + 1)]
        if resolution in pictures or resolution == max(channels):
            layers.append(AdainLayerSpec(f"b{resolution}.torgb", "to_rgb", resolution, width, img_channels, -1))
    return tuple(layers)


def tensor_shapes(spec: StyleGAN1Spec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that a network of this spec has."""
    shapes = mapping_shapes(spec.mapping)
    for layer in spec.layers:
        prefix, outputs = f"synthesis.{layer.name}", layer.out_channels
        if layer.kind == "input":
            shapes[f"{prefix}.const"] = (outputs, 4, 4)
        else:
            kernel = 1 if layer.kind == "to_rgb" else 3
            shapes[f"{prefix}.weight"] = (outputs, layer.in_channels, kernel, kernel)
        shapes[f"{prefix}.bias"] = (outputs,)
        if layer.w_index >= 0:
            shapes[f"{prefix}.affine.weight"] = (2 * outputs, spec.w_dim)
            shapes[f"{prefix}.affine.bias"] = (2 * outputs,)
        if layer.has_noise:
            shapes[f"{prefix}.noise_const"] = (layer.resolution, layer.resolution)
            shapes[f"{prefix}.noise_strength"] = (outputs,)
    return shapes


def parameter_count(spec: StyleGAN1Spec) -> int:
    """Trained numbers of the network: noise images and w_avg are not among them."""
    return sum(math.prod(shape) for name, shape in tensor_shapes(spec).items() if not name.endswith(BUFFER_SUFFIXES))


def row_resolutions(spec: StyleGAN1Spec) -> tuple[int, ...]:
    """Resolution of the layer that each row of w styles."""
    return tuple(layer.resolution for layer in spec.layers if layer.w_index >= 0)
