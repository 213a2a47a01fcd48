"""A StyleGAN2 with random weights, for measurements that need a size and no picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.spec import MappingSpec, NetworkSpec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers, tensor_shapes


def random_network(
    resolution: int, base: int, maximum: int, *, w_dim: int = 512, seed: int = 0
) -> tuple[NetworkSpec, dict[str, NDArray[np.float32]]]:
    """Return the spec and the weights of a skip network with clamp 256 and channels min(base / R, maximum)."""
    channels = {side: min(base // side, maximum) for side in block_resolutions(resolution)}
    spec = NetworkSpec(
        family="stylegan2",
        architecture="skip",
        resolution=resolution,
        img_channels=3,
        num_ws=num_ws_of(resolution),
        mapping=MappingSpec(w_dim, 0, 0, (w_dim,) * 8),
        layers=stylegan2_layers("skip", channels, 3, conv_clamp=256.0),
    )
    generator = np.random.default_rng(seed)
    weights = {}
    for name, shape in tensor_shapes(spec).items():
        values = generator.standard_normal(shape, dtype=np.float32)
        if name.endswith("affine.bias"):
            values = np.ones(shape, np.float32)
        elif name.endswith("noise_strength"):
            values = np.full(shape, 0.1, np.float32)
        weights[name] = np.ascontiguousarray(values, np.float32).reshape(shape)
    return spec, weights
