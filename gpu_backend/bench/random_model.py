"""A StyleGAN2 with random weights, for measurements that need a size and no picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpu_backend.bench.shapes import Shape
from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model
from gpu_backend.model.spec import MappingSpec, StyleGAN2Spec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers, tensor_shapes

_MAPPING_LAYERS = 8


def random_model(shape: Shape, *, seed: int = 0) -> Model:
    """Return a skip network of a shape with clamp 256; the same seed gives the same weights."""
    channels = {side: min(shape.base // side, shape.maximum) for side in block_resolutions(shape.resolution)}
    w_dim = shape.w_dim
    mapping = MappingSpec(w_dim, 0, 0, (w_dim,) * _MAPPING_LAYERS)
    spec = StyleGAN2Spec(
        family="stylegan2",
        architecture="skip",
        resolution=shape.resolution,
        img_channels=3,
        num_ws=num_ws_of(shape.resolution),
        mapping=mapping,
        layers=stylegan2_layers("skip", channels, 3, conv_clamp=256.0),
    )
    generator = np.random.default_rng(seed)
    weights = {}
    for name, extents in tensor_shapes(spec).items():
        values = generator.standard_normal(extents, dtype=np.float32)
        if name.startswith("mapping.fc") and name.endswith(".weight"):
            values /= mapping.lr_multiplier  # what training leaves in files; other numbers would map every z alike
        elif name.endswith("affine.bias"):
            values = np.ones(extents, np.float32)
        elif name.endswith(".bias") or name.endswith("w_avg"):
            values = np.zeros(extents, np.float32)
        elif name.endswith("noise_strength"):
            values = np.full(extents, 0.1, np.float32)
        weights[name] = np.ascontiguousarray(values, np.float32).reshape(extents)
    file = FileFacts(Path(shape.name), sum(array.nbytes for array in weights.values()), f"random-{shape.name}-{seed}")
    return Model(spec, weights, facts_of(spec, file, container="random weights", flavour="none"))
