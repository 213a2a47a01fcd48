"""Small StyleGAN3 networks with random weights, built in memory; compare `networks`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model, Weights
from gpu_backend.model.spec import MappingSpec, StyleGAN3Spec
from gpu_backend.model.stylegan3 import tensor_shapes
from gpu_backend.model.stylegan3_design import StyleGAN3Design

if TYPE_CHECKING:

    class StyleGAN3Model(Model):
        """A model whose spec is typed as StyleGAN3's."""

        spec: StyleGAN3Spec
else:
    StyleGAN3Model = Model


@dataclass(frozen=True)
class StyleGAN3Options:
    """Options of a network; the layers follow from `resolution` and the other numbers."""

    resolution: int = 16
    img_channels: int = 3
    channel_base: int = 64
    channel_max: int = 6
    num_layers: int = 14
    kernel: int = 3
    is_radial: bool = False
    conv_clamp: float | None = None
    margin: int = 10
    z_dim: int = 8
    w_dim: int = 8
    c_dim: int = 0
    mapping_layers: int = 2

    @property
    def design(self) -> StyleGAN3Design:
        """The layer design for these options."""
        return StyleGAN3Design(
            self.resolution,
            img_channels=self.img_channels,
            channel_base=self.channel_base,
            channel_max=self.channel_max,
            num_layers=self.num_layers,
            kernel=self.kernel,
            is_radial=self.is_radial,
            conv_clamp=self.conv_clamp,
            margin=self.margin,
        )


R: dict[str, Any] = {"kernel": 1, "is_radial": True}
"""Options of configuration R."""


def make_spec(options: StyleGAN3Options) -> StyleGAN3Spec:
    """The spec for these options."""
    layers = options.design.layers()
    return StyleGAN3Spec(
        family="stylegan3",
        resolution=options.resolution,
        img_channels=options.img_channels,
        num_ws=len(layers) + 1,
        mapping=MappingSpec(
            options.z_dim,
            options.c_dim,
            options.w_dim if options.c_dim else 0,
            (options.w_dim,) * options.mapping_layers,
        ),
        input=options.design.input(),
        layers=layers,
    )


def make_weights(spec: StyleGAN3Spec, filters: Weights, seed: int = 0) -> Weights:
    """Random weights of every shape, scaled so that biases, pose and averages affect the picture; filters as given."""
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for name, shape in tensor_shapes(spec).items():
        values = generator.standard_normal(shape)
        if name in filters:
            values = filters[name].astype(np.float64)
        elif name.startswith("mapping.fc"):
            values *= (1.0 if name.endswith("weight") else 0.2) / 0.01
        elif name == "synthesis.input.affine.bias":
            values = np.array([1.0, 0.2, 0.0, 0.0]) + 0.1 * values
        elif name == "synthesis.input.affine.weight":
            values *= 0.2
        elif name.endswith("affine.bias"):
            values = 1 + 0.2 * values
        elif name.endswith("bias"):
            values *= 0.2
        elif name.endswith("w_avg"):
            values *= 0.5
        elif name.endswith("magnitude_ema"):
            values = np.exp(0.5 * values)
        elif name.endswith("transform"):
            values = np.eye(3)
        weights[name] = np.ascontiguousarray(values, dtype=np.float32).reshape(shape)
    return weights


def make_stylegan3(options: StyleGAN3Options | None = None, *, seed: int = 0, **changes: Any) -> StyleGAN3Model:
    """Make a model from options; keywords override single options: ``make_stylegan3(**R, seed=3)``."""
    options = replace(options or StyleGAN3Options(), **changes)
    spec = make_spec(options)
    return model_of(spec, make_weights(spec, options.design.filters(), seed))


def model_of(spec: StyleGAN3Spec, weights: Weights) -> StyleGAN3Model:
    """A model without a file."""
    digest = hashlib.sha256(repr(spec).encode())
    for name in sorted(weights):
        digest.update(weights[name].tobytes())
    file = FileFacts(
        path=Path(f"made-{spec.architecture}-{spec.resolution}.safetensors"),
        nbytes=sum(array.nbytes for array in weights.values()),
        model_id=digest.hexdigest(),
    )
    facts = facts_of(spec, file, container="safetensors", flavour="made for a test")
    return cast("StyleGAN3Model", Model(spec, weights, facts))
