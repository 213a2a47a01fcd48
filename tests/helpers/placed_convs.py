"""Convolutions of gradients that are placed nowhere, for tests of their launches and kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.gradients.gpu.placed import PlacedConv
from gpu_backend.gradients.gpu.weights import conv_geometry, pack_conv, padded, up_geometry
from gpu_backend.model.spec import LayerSpec
from gpu_backend.ops.bias_act import BiasAct


def placed_conv(
    side: int, inputs: int, outputs: int, *, is_up: bool, bias: NDArray[np.float32] | None = None
) -> PlacedConv:
    """Return a 3 x 3 convolution of a picture of `side`, or a transposed one, with random weights."""
    weight = np.random.default_rng(side).standard_normal((outputs, inputs, 3, 3)).astype(np.float32)
    geometry = up_geometry if is_up else conv_geometry
    addresses = "forward_weight", "backward_weight", "bias", "noise", "forward_parities", "backward_parities", "x", "z"
    return PlacedConv(
        spec=LayerSpec("b.conv", "up_conv" if is_up else "conv", (1 + is_up) * side, inputs, outputs, 3, 0),
        act=BiasAct(),
        packed=pack_conv(weight, np.zeros(outputs, np.float32) if bias is None else bias),
        inputs=padded(inputs),
        outputs=padded(outputs),
        source=side,
        forward=geometry(side, backward=False),
        backward=geometry(side, backward=True),
        **dict.fromkeys(addresses, 0),
    )
