"""The tensors of a StyleGAN3 generator (Karras et al. 2021), and facts that follow from its layers.

Row 0 of w styles the input, row i + 1 layer i, the last one the toRGB.
"""

from __future__ import annotations

import math

from gpu_backend.model.mapping_network import mapping_shapes
from gpu_backend.model.spec import StyleGAN3Spec

BUFFER_SUFFIXES = (".w_avg", ".transform", ".freqs", ".phases", ".magnitude_ema", ".up_filter", ".down_filter")
"""Suffixes of tensors that are stored with the parameters but not trained."""


def tensor_shapes(spec: StyleGAN3Spec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that a network of this spec has."""
    shapes = mapping_shapes(spec.mapping)
    channels = spec.input.channels
    shapes["synthesis.input.weight"] = (channels, channels)
    shapes["synthesis.input.affine.weight"] = (4, spec.w_dim)
    shapes["synthesis.input.affine.bias"] = (4,)
    shapes["synthesis.input.transform"] = (3, 3)
    shapes["synthesis.input.freqs"] = (channels, 2)
    shapes["synthesis.input.phases"] = (channels,)
    for layer in spec.layers:
        prefix = f"synthesis.{layer.name}"
        shapes[f"{prefix}.weight"] = (layer.out_channels, layer.in_channels, layer.kernel, layer.kernel)
        shapes[f"{prefix}.bias"] = (layer.out_channels,)
        shapes[f"{prefix}.affine.weight"] = (layer.in_channels, spec.w_dim)
        shapes[f"{prefix}.affine.bias"] = (layer.in_channels,)
        shapes[f"{prefix}.magnitude_ema"] = ()
        if layer.up_taps > 1:
            shapes[f"{prefix}.up_filter"] = (layer.up_taps,)
        if layer.down_taps > 1:
            shapes[f"{prefix}.down_filter"] = (layer.down_taps,) * (2 if layer.is_radial else 1)
    return shapes


def parameter_count(spec: StyleGAN3Spec) -> int:
    """Trained numbers of the network: frequencies, filters and averages are not among them."""
    return sum(math.prod(shape) for name, shape in tensor_shapes(spec).items() if not name.endswith(BUFFER_SUFFIXES))


def row_resolutions(spec: StyleGAN3Spec) -> tuple[int, ...]:
    """Samples across the picture of what each row of w styles: the finest detail that it can change."""
    return (math.ceil(spec.input.sampling_rate), *(layer.out_rate for layer in spec.layers))
