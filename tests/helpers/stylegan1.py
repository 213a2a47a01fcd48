"""Small StyleGAN1 networks with random weights, built in memory; compare `networks`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model
from gpu_backend.model.spec import Activation, MappingSpec, StyleGAN1Spec
from gpu_backend.model.stylegan1 import stylegan1_layers, tensor_shapes
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of

if TYPE_CHECKING:

    class StyleGAN1Model(Model):
        """A model whose spec is typed as StyleGAN1's."""

        spec: StyleGAN1Spec
else:
    StyleGAN1Model = Model


def make_spec1(
    *,
    resolution: int = 16,
    img_channels: int = 3,
    z_dim: int = 8,
    w_dim: int = 8,
    c_dim: int = 0,
    mapping_layers: int = 2,
    mapping_widths: tuple[int, ...] = (),
    lr_multiplier: float = 0.01,
    channel_base: int = 64,
    channel_max: int = 6,
    channels: dict[int, int] | None = None,
    pictures: Collection[int] | None = None,
    activation: Activation = "lrelu",
    use_noise: bool = True,
    epsilon: float = 1e-8,
    blurs_bias: bool = False,
) -> StyleGAN1Spec:
    """The spec for these options; `pictures` None gives each resolution a toRGB."""
    widths = mapping_widths or (w_dim,) * mapping_layers
    sides = block_resolutions(resolution)
    own = {side: min(channel_base // side, channel_max) for side in sides} | (channels or {})
    return StyleGAN1Spec(
        family="stylegan1",
        resolution=resolution,
        img_channels=img_channels,
        num_ws=num_ws_of(resolution),
        mapping=MappingSpec(
            z_dim, c_dim, z_dim if c_dim else 0, widths, activation, lr_multiplier, joins_label=c_dim > 0
        ),
        layers=stylegan1_layers(
            {side: own[side] for side in sides},
            img_channels,
            pictures=sides if pictures is None else pictures,
            activation=activation,
            has_noise=use_noise,
        ),
        epsilon=epsilon,
        blurs_bias=blurs_bias,
    )


def make_stylegan1(*, seed: int = 0, contrast: float = 1.0, **options: Any) -> StyleGAN1Model:
    """A whole model; equal arguments give equal weights, all of which affect the picture.

    With a contrast of 1 pictures go from about -6 to 6, with 0.2 as those of trained networks do.
    """
    spec = make_spec1(**options)
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for name, shape in tensor_shapes(spec).items():
        values = generator.standard_normal(shape)
        if name.startswith("mapping.fc"):
            values *= (1.0 if name.endswith("weight") else 0.2) / spec.mapping.lr_multiplier
        elif name == "mapping.embed.bias":
            values *= 0.0
        elif name.endswith("affine.bias"):
            values = 0.2 * values + np.repeat([1.0, 0.0], shape[0] // 2)
        elif name.endswith(("bias", "noise_strength")):
            values *= 0.2
        elif name.endswith("w_avg"):
            values *= 0.5
        elif name.endswith("torgb.weight"):
            values *= contrast
        weights[name] = np.ascontiguousarray(values, dtype=np.float32).reshape(shape)
    digest = hashlib.sha256(repr(spec).encode())
    for name in sorted(weights):
        digest.update(weights[name].tobytes())
    nbytes = sum(array.nbytes for array in weights.values())
    file = FileFacts(Path(f"made-adain-{spec.resolution}-{seed}.safetensors"), nbytes, digest.hexdigest())
    facts = facts_of(spec, file, container="safetensors", flavour="made for a test")
    return cast("StyleGAN1Model", Model(spec, weights, facts))


def for_rosinality(**options: Any) -> StyleGAN1Model:
    """A network as rosinality's tool makes it: with its constants, and no bias after the constant."""
    made = make_stylegan1(lr_multiplier=1.0, epsilon=1e-5, blurs_bias=True, **options)
    made.weights["synthesis.b4.input.bias"][...] = 0.0
    return made
