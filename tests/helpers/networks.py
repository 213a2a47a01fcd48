"""Small StyleGAN2 networks with random weights, built in memory.

``make_stylegan2(architecture="resnet", c_dim=3, seed=7)`` is a whole `Model`: spec, weights and facts agree, and
the same arguments give the same numbers. The weights are spread so that noise, biases, truncation and labels all show.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.model import Model, Weights
from gpu_backend.model.spec import Activation, Architecture, MappingSpec, StyleGAN2Spec
from gpu_backend.model.stylegan2 import block_resolutions, num_ws_of, stylegan2_layers, tensor_shapes

if TYPE_CHECKING:

    class StyleGAN2Model(Model):
        """A model whose spec is typed as StyleGAN2's."""

        spec: StyleGAN2Spec
else:
    StyleGAN2Model = Model


@dataclass(frozen=True)
class NetworkOptions:
    """Options of a network.

    `channels` sets the width of single blocks (odd ones too); the others are min(channel_base // R, channel_max).
    `mapping_widths` overrides `mapping_layers` x `w_dim`; its last number is then w_dim. `fir` is normalised to sum 1.
    """

    resolution: int = 16
    img_channels: int = 3
    architecture: Architecture = "skip"
    z_dim: int = 8
    w_dim: int = 8
    c_dim: int = 0
    embed_dim: int | None = None
    mapping_layers: int = 2
    mapping_widths: tuple[int, ...] = ()
    lr_multiplier: float = 0.01
    channel_base: int = 64
    channel_max: int = 6
    channels: dict[int, int] = field(default_factory=dict)
    fir: tuple[float, ...] = (1, 3, 3, 1)
    conv_clamp: float | None = None
    num_fp16_res: int = 0
    activation: Activation = "lrelu"
    use_noise: bool = True
    joins_label: bool = False


def make_spec(options: NetworkOptions) -> StyleGAN2Spec:
    """The spec for these options."""
    widths = options.mapping_widths or (options.w_dim,) * options.mapping_layers
    channels = {
        resolution: options.channels.get(resolution, min(options.channel_base // resolution, options.channel_max))
        for resolution in block_resolutions(options.resolution)
    }
    embed = 0 if options.c_dim == 0 else (options.embed_dim or widths[-1])
    total = float(sum(options.fir))
    return StyleGAN2Spec(
        family="stylegan2",
        architecture=options.architecture,
        resolution=options.resolution,
        img_channels=options.img_channels,
        num_ws=num_ws_of(options.resolution),
        mapping=MappingSpec(
            options.z_dim,
            options.c_dim,
            embed,
            widths,
            options.activation,
            lr_multiplier=options.lr_multiplier,
            joins_label=options.joins_label,
        ),
        layers=stylegan2_layers(
            options.architecture,
            channels,
            options.img_channels,
            conv_clamp=options.conv_clamp,
            fp16_from=(2 * options.resolution) >> options.num_fp16_res if options.num_fp16_res else None,
            activation=options.activation,
            has_noise=options.use_noise,
        ),
        resample_filter=tuple(float(np.float32(tap / total)) for tap in options.fir),
    )


def make_weights(spec: StyleGAN2Spec, seed: int = 0) -> Weights:
    """Random weights of every shape of the spec."""
    generator = np.random.default_rng(seed)
    weights: dict[str, np.ndarray[Any, np.dtype[np.float32]]] = {}
    for name, shape in tensor_shapes(spec).items():
        values = generator.standard_normal(shape)
        if name.startswith("mapping.fc"):
            values *= (1.0 if name.endswith("weight") else 0.2) / spec.mapping.lr_multiplier
        elif name.endswith("affine.bias"):
            values = 1 + 0.2 * values
        elif name.endswith("bias"):
            values *= 0.0 if name == "mapping.embed.bias" and spec.mapping.joins_label else 0.2
        elif name.endswith("noise_strength"):
            values *= 0.1
        elif name.endswith("w_avg"):
            values *= 0.5
        weights[name] = np.ascontiguousarray(values, dtype=np.float32).reshape(shape)
    return weights


def make_stylegan2(options: NetworkOptions | None = None, *, seed: int = 0, **changes: Any) -> StyleGAN2Model:
    """Make a model from options; keywords override single options: ``make_stylegan2(img_channels=1, seed=3)``."""
    spec = make_spec(replace(options or NetworkOptions(), **changes))
    weights = make_weights(spec, seed)
    digest = hashlib.sha256(repr(spec).encode())
    for name in sorted(weights):
        digest.update(weights[name].tobytes())
    file = FileFacts(
        path=Path(f"made-{spec.architecture}-{spec.resolution}-{seed}.safetensors"),
        nbytes=sum(array.nbytes for array in weights.values()),
        model_id=digest.hexdigest(),
    )
    facts = facts_of(spec, file, container="safetensors", flavour="made for a test")
    return cast("StyleGAN2Model", Model(spec, weights, facts))


def as_stylegan2(model: Model) -> StyleGAN2Model:
    """The same model, checked to be a StyleGAN2."""
    assert isinstance(model.spec, StyleGAN2Spec)
    return cast("StyleGAN2Model", model)


def rows_of(model: Model, batch: int) -> NDArray[np.float32]:
    """Return random w rows, (batch, num_ws, w_dim), always the same."""
    shape = (batch, model.spec.num_ws, model.spec.w_dim)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)
