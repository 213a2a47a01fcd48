"""What a network is, as frozen data: enough to plan it without looking at its file again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Architecture = Literal["skip", "resnet", "orig"]
LayerKind = Literal["conv", "up_conv", "to_rgb", "skip"]
Activation = Literal["linear", "relu", "lrelu", "tanh", "sigmoid", "elu", "selu", "softplus", "swish"]

ACTIVATION_GAINS: dict[Activation, float] = {
    "linear": 1.0,
    "relu": math.sqrt(2.0),
    "lrelu": math.sqrt(2.0),
    "tanh": 1.0,
    "sigmoid": 1.0,
    "elu": 1.0,
    "selu": 1.0,
    "softplus": 1.0,
    "swish": math.sqrt(2.0),
}
"""Gain that follows each activation, so that unit variance stays near unit variance."""


@dataclass(frozen=True, slots=True)
class MappingSpec:
    """The mapping network. `widths` are the rows of each fully connected layer; the last equals w_dim.

    `c_dim` 0 means unconditional; otherwise a label is embedded into `embed_dim` features and concatenated to z.
    """

    z_dim: int
    c_dim: int
    embed_dim: int
    widths: tuple[int, ...]
    activation: Activation = "lrelu"
    lr_multiplier: float = 0.01

    @property
    def w_dim(self) -> int:
        """Width of w."""
        return self.widths[-1]


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer of a StyleGAN2 synthesis network, in execution order.

    Attributes
    ----------
    name
        The official module name without ``synthesis.``: ``"b64.conv1"``, ``"b64.torgb"``, ``"b64.skip"``.
        The layer's tensors are ``synthesis.<name>.weight`` and so on.
    kind
        ``conv`` 3 x 3, ``up_conv`` transposed stride 2 with FIR, ``to_rgb`` 1 x 1 without demodulation,
        ``skip`` the resnet block's 1 x 1 with upsampling.
    resolution
        Side of the output in pixels.
    w_index
        Row of w that styles it; -1 for ``skip``, which has no style.
    has_noise
        The layer has noise_const and noise_strength.
    gain
        Extra gain on activation and clamp: sqrt(0.5) for conv1 of resnet blocks, else 1.
    conv_clamp
        Clamp of the output (times `gain`), None for none.
    use_fp16
        The official network runs this layer in half precision on a GPU.
    """

    name: str
    kind: LayerKind
    resolution: int
    in_channels: int
    out_channels: int
    kernel: int
    w_index: int
    has_noise: bool = False
    activation: Activation = "linear"
    gain: float = 1.0
    conv_clamp: float | None = None
    use_fp16: bool = False


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """A StyleGAN2 generator.

    `resample_filter` holds the one-dimensional FIR taps (sum 1); the filter applied is their outer product.
    """

    family: Literal["stylegan2"]
    architecture: Architecture
    resolution: int
    img_channels: int
    num_ws: int
    mapping: MappingSpec
    layers: tuple[LayerSpec, ...]
    resample_filter: tuple[float, ...] = (0.125, 0.375, 0.375, 0.125)

    @property
    def w_dim(self) -> int:
        """Width of w."""
        return self.mapping.w_dim

    @property
    def noise_layers(self) -> tuple[str, ...]:
        """Names of the layers that take noise, in execution order."""
        return tuple(layer.name for layer in self.layers if layer.has_noise)

    @property
    def draft_resolutions(self) -> tuple[int, ...]:
        """Resolutions below the full one at which the network has a picture to leave with, ascending."""
        if self.architecture != "skip":
            return ()
        return tuple(layer.resolution for layer in self.layers[:-1] if layer.kind == "to_rgb")
