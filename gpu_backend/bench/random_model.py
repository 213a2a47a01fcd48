"""A network with random weights, for measurements that need a size but no trained model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpu_backend.bench.shapes import Shape
from gpu_backend.model import stylegan1, stylegan2, stylegan3
from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model
from gpu_backend.model.spec import ClassTable, MappingSpec, NetworkSpec, StyleGAN1Spec, StyleGAN2Spec, StyleGAN3Spec
from gpu_backend.model.stylegan3_design import StyleGAN3Design
from gpu_backend.model.stylegan_xl_design import STEM, StyleGANXLDesign

_MAPPING_LAYERS, _MAPPING_LAYERS_3 = 8, 2
_CLAMP = 256.0
_Z_DIM_XL, _CLASSES, _CLASS_WIDTH = 64, 1000, 320
"""Of the public StyleGAN-XL networks for ImageNet."""


def random_model(shape: Shape, *, seed: int = 0) -> Model:
    """Return a network of a shape, with clamp 256 where there are clamps; the same seed gives the same weights."""
    spec: NetworkSpec
    fixed: dict[str, NDArray[np.float32]] = {}
    if shape.config == "AdaIN":
        spec = _stylegan1(shape)
        shapes = stylegan1.tensor_shapes(spec)
    elif shape.config == "skip":
        spec = _stylegan2(shape)
        shapes = stylegan2.tensor_shapes(spec)
    else:
        spec, fixed = _stylegan3(shape, np.random.default_rng(seed))
        shapes = stylegan3.tensor_shapes(spec)
    generator = np.random.default_rng(seed)
    weights = {}
    for name, extents in shapes.items():
        values = generator.standard_normal(extents, dtype=np.float32)
        if name in fixed:
            values = fixed[name]
        elif name.startswith("mapping.fc") and name.endswith(".weight"):
            values /= spec.mapping.lr_multiplier  # what training leaves in files; others would map every z alike
        elif name.endswith("affine.bias") and shape.config == "AdaIN":
            values = np.repeat(np.array([1, 0], np.float32), extents[0] // 2)
        elif name.endswith(("affine.bias", "magnitude_ema")):
            values = np.ones(extents, np.float32)
        elif name.endswith(".bias") or name.endswith("w_avg"):
            values = np.zeros(extents, np.float32)
        elif name.endswith("noise_strength"):
            values = np.full(extents, 0.1, np.float32)
        weights[name] = np.ascontiguousarray(values, np.float32).reshape(extents)
    file = FileFacts(Path(shape.name), sum(array.nbytes for array in weights.values()), f"random-{shape.name}-{seed}")
    return Model(spec, weights, facts_of(spec, file, container="random weights", flavour="none"))


def _channels(shape: Shape) -> dict[int, int]:
    return {side: min(shape.base // side, shape.maximum) for side in stylegan2.block_resolutions(shape.resolution)}


def _stylegan1(shape: Shape) -> StyleGAN1Spec:
    channels = _channels(shape)
    return StyleGAN1Spec(
        family="stylegan1",
        resolution=shape.resolution,
        img_channels=3,
        num_ws=stylegan2.num_ws_of(shape.resolution),
        mapping=MappingSpec(shape.w_dim, 0, 0, (shape.w_dim,) * _MAPPING_LAYERS),
        layers=stylegan1.stylegan1_layers(channels, 3, pictures=channels),
    )


def _stylegan2(shape: Shape) -> StyleGAN2Spec:
    return StyleGAN2Spec(
        family="stylegan2",
        architecture="skip",
        resolution=shape.resolution,
        img_channels=3,
        num_ws=stylegan2.num_ws_of(shape.resolution),
        mapping=MappingSpec(shape.w_dim, 0, 0, (shape.w_dim,) * _MAPPING_LAYERS),
        layers=stylegan2.stylegan2_layers("skip", _channels(shape), 3, conv_clamp=_CLAMP),
    )


def _stylegan3(shape: Shape, generator: np.random.Generator) -> tuple[StyleGAN3Spec, dict[str, NDArray[np.float32]]]:
    """Return the spec, and the tensors that are not random, or not normal."""
    is_r, is_xl = shape.config == "R", shape.config == "XL"
    design: StyleGAN3Design | StyleGANXLDesign = StyleGAN3Design(
        shape.resolution,
        channel_base=shape.base,
        channel_max=shape.maximum,
        kernel=1 if is_r else 3,
        is_radial=is_r,
        conv_clamp=_CLAMP,
    )
    mapping = MappingSpec(shape.w_dim, 0, 0, (shape.w_dim,) * _MAPPING_LAYERS_3)
    if is_xl:
        stem = replace(STEM, channel_base=shape.base, channel_max=shape.maximum, conv_clamp=_CLAMP)
        design = StyleGANXLDesign(shape.resolution, stem)
        table = ClassTable(_CLASSES, _CLASS_WIDTH)
        mapping = MappingSpec(_Z_DIM_XL, _CLASSES, _Z_DIM_XL, mapping.widths, class_table=table)
    layers, grid = design.layers(), design.input()
    spec = StyleGAN3Spec(
        family="stylegan_xl" if is_xl else "stylegan3",
        resolution=shape.resolution,
        img_channels=3,
        num_ws=len(layers) + 1,
        mapping=mapping,
        input=grid,
        layers=layers,
    )
    turn, radius = (
        generator.uniform(0, 2 * np.pi, grid.channels),
        grid.bandwidth * np.sqrt(generator.random(grid.channels)),
    )
    fixed = {
        "synthesis.input.freqs": (radius * np.array([np.cos(turn), np.sin(turn)])).T.astype(np.float32),
        "synthesis.input.phases": generator.uniform(-0.5, 0.5, grid.channels).astype(np.float32),
        "synthesis.input.transform": np.eye(3, dtype=np.float32),
        "synthesis.input.affine.weight": np.zeros((4, shape.w_dim), np.float32),
        "synthesis.input.affine.bias": np.array([1, 0, 0, 0], np.float32),
    }
    return spec, {**fixed, **design.filters()}
