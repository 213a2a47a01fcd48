"""A discriminator's weights as its kernels take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.gradients.discriminator_layers import gain_of
from gpu_backend.gradients.gpu.weights import PackedConv, pack_conv, padded
from gpu_backend.model.discriminator_file import DiscriminatorWeights


@dataclass(frozen=True, slots=True, eq=False)
class PackedDiscriminator:
    """A discriminator's weights as its kernels take them.

    Attributes
    ----------
    sides, taps
        As of `DiscriminatorWeights`.
    convs
        By layer, as ``b64.conv0``.
    rgb_weight, rgb_bias
        (colours, channels) and (channels,) of the first layer, fp32, channels padded.
    channels
        That a block reads, by its side, and that the last one writes as 4; without padding.
    """

    sides: tuple[int, ...]
    taps: tuple[float, ...]
    convs: Mapping[str, PackedConv]
    rgb_weight: NDArray[np.float32]
    rgb_bias: NDArray[np.float32]
    channels: Mapping[int, int]


def pack_discriminator(stored: DiscriminatorWeights) -> PackedDiscriminator:
    """Pack the weights, with the scales and gains of their layers in them."""
    weights = {name: array * np.float32(gain_of(name, array.shape)) for name, array in stored.tensors.items()}
    channels, convs = {}, {}
    for side in stored.sides:
        channels[side] = weights[f"b{side}.conv0.weight"].shape[1]
        channels[side // 2] = weights[f"b{side}.conv1.weight"].shape[0]
        for layer in (f"b{side}.conv0", f"b{side}.conv1", f"b{side}.skip"):
            weight = weights[f"{layer}.weight"]
            convs[layer] = pack_conv(weight, weights.get(f"{layer}.bias", np.zeros(len(weight), np.float32)))
    first = f"b{stored.sides[0]}.fromrgb"
    weight, bias = weights[f"{first}.weight"][:, :, 0, 0].T, weights[f"{first}.bias"]
    margin = padded(len(bias)) - len(bias)
    return PackedDiscriminator(
        stored.sides,
        stored.taps,
        convs,
        np.ascontiguousarray(np.pad(weight, ((0, 0), (0, margin)))),
        np.pad(bias, (0, margin)),
        channels,
    )
