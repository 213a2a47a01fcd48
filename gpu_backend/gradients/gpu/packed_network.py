"""A StyleGAN2's weights as the kernels of its gradients take them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpu_backend.gradients.gpu.weights import PackedConv, StyleTable, pack_conv, padded, style_table
from gpu_backend.model.spec import LayerSpec, StyleGAN2Spec


@dataclass(frozen=True, slots=True, eq=False)
class PackedNetwork:
    """The layers of a StyleGAN2 up to a side, on the host. Each search and drag places a copy on its device.

    Attributes
    ----------
    layers
        Those of the specification up to the side, in order.
    convs
        By layer; a resnet's skips with their gains.
    rgbs
        By toRGB layer: weights (colours, padded channels) and biases (colours,), fp32.
    noise
        By layer: (side, side) fp32, strength included; a layer left out gets none.
    constant
        (4, 4, padded channels) fp16.
    table
        Of convolutions, then toRGB layers.
    """

    spec: StyleGAN2Spec
    side: int
    layers: tuple[LayerSpec, ...]
    convs: Mapping[str, PackedConv]
    rgbs: Mapping[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
    noise: Mapping[str, NDArray[np.float32]]
    constant: NDArray[np.float16]
    table: StyleTable

    def of_kind(self, *kinds: str) -> list[LayerSpec]:
        """Return the layers of some kinds, in order."""
        return [layer for layer in self.layers if layer.kind in kinds]


def pack_network(
    spec: StyleGAN2Spec,
    weights: Mapping[str, NDArray[np.float32]],
    noise: Mapping[str, NDArray[np.float32]],
    side: int,
) -> PackedNetwork:
    """Pack the layers up to a side.

    Parameters
    ----------
    weights
        Official state-dict names to arrays.
    noise
        As of `PackedNetwork`.
    """
    layers = tuple(layer for layer in spec.layers if layer.resolution <= side)

    def packed(layer: LayerSpec) -> PackedConv:
        weight = weights[f"synthesis.{layer.name}.weight"]
        if layer.kind != "skip":
            return pack_conv(weight, weights[f"synthesis.{layer.name}.bias"])
        gain = np.float32(math.sqrt(0.5 / layer.in_channels))
        return pack_conv(weight * gain, np.zeros(layer.out_channels, np.float32))

    convs = [layer for layer in layers if layer.kind in ("conv", "up_conv")]
    skips = [layer for layer in layers if layer.kind == "skip"]
    rgbs = [layer for layer in layers if layer.kind == "to_rgb"]
    with ThreadPoolExecutor(thread_name_prefix="packing weights") as pool:  # NumPy rounds outside of Python's lock
        of_layers = dict(
            zip([layer.name for layer in [*convs, *skips]], pool.map(packed, [*convs, *skips]), strict=True)
        )
    const = weights["synthesis.b4.const"]
    constant = np.zeros((*const.shape[1:], padded(const.shape[0])), np.float16)
    constant[..., : const.shape[0]] = const.transpose(1, 2, 0)
    return PackedNetwork(
        spec,
        side,
        layers,
        of_layers,
        {layer.name: _packed_rgb(layer, weights) for layer in rgbs},
        {name: picture.astype(np.float32) for name, picture in noise.items()},
        constant,
        style_table([*convs, *rgbs], [of_layers[layer.name] for layer in convs], weights),
    )


def _packed_rgb(
    layer: LayerSpec, weights: Mapping[str, NDArray[np.float32]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    weight = weights[f"synthesis.{layer.name}.weight"][:, :, 0, 0]
    whole = np.pad(weight, ((0, 0), (0, padded(layer.in_channels) - layer.in_channels)))
    return whole.astype(np.float32), weights[f"synthesis.{layer.name}.bias"].astype(np.float32)
