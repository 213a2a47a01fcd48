"""Specs of networks as frozen data, which are sufficient to build plans without the file."""

from __future__ import annotations

import math
from typing import Literal

from gpu_backend.quick_dataclass import dataclass

Architecture = Literal["skip", "resnet", "orig"]
LayerKind = Literal["conv", "up_conv", "to_rgb", "skip"]
AdainLayerKind = Literal["input", "conv", "up_conv", "to_rgb"]
FilteredLayerKind = Literal["conv", "to_rgb"]
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
class ClassTable:
    """Class embedding table of a StyleGAN-XL: (rows, width), of which the first c_dim rows are used."""

    rows: int
    width: int


@dataclass(frozen=True, slots=True)
class MappingSpec:
    """The mapping network. `widths` are the rows of each fully connected layer; the last equals w_dim.

    `c_dim` 0 means unconditional; otherwise a label is embedded into `embed_dim` features and concatenated to z: each
    normalised on its own, or with `joins_label` both together, the embedding then without gain and bias. With a
    `class_table` the label picks a row of it, which a layer with a leaky ReLU embeds, and w_avg is one of each class.
    """

    z_dim: int
    c_dim: int
    embed_dim: int
    widths: tuple[int, ...]
    activation: Activation = "lrelu"
    lr_multiplier: float = 0.01
    joins_label: bool = False
    class_table: ClassTable | None = None

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
class StyleGAN2Spec:
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
    def has_transform(self) -> bool:
        """Whether the picture can be moved, turned and scaled inside the network."""
        return False

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


@dataclass(frozen=True, slots=True)
class AdainLayerSpec:
    """One layer of a StyleGAN1 synthesis network, in execution order.

    Attributes
    ----------
    name
        As the layers of a StyleGAN2 are named, and ``"b4.input"`` for the constant that the network starts from, which
        is a layer too. The layer's tensors are ``synthesis.<name>.weight`` and so on.
    kind
        ``input`` the constant, ``conv`` 3 x 3, ``up_conv`` 3 x 3 on twice the side with a blur, each with noise, bias,
        activation, instance normalisation and style; ``to_rgb`` 1 x 1 without any of these but the bias.
    resolution
        Side of the output in pixels.
    w_index
        Row of w that styles it; -1 for ``to_rgb``, which has no style.
    has_noise
        The layer has noise_const and noise_strength, a number a channel.
    """

    name: str
    kind: AdainLayerKind
    resolution: int
    in_channels: int
    out_channels: int
    w_index: int
    has_noise: bool = False
    activation: Activation = "linear"

    @property
    def conv_clamp(self) -> None:
        """There is none."""
        return None

    @property
    def use_fp16(self) -> bool:
        """No file marks any layer for half precision."""
        return False


@dataclass(frozen=True, slots=True)
class StyleGAN1Spec:
    """A StyleGAN1 generator.

    Attributes
    ----------
    layers
        With the toRGB of each resolution that the file has one for: those below the full one are for drafts alone.
    epsilon
        Added to the variances of instance normalisation.
    blurs_bias
        The bias of an up-convolution is added before the blur, which makes it smaller at the border, not after.
    """

    family: Literal["stylegan1"]
    resolution: int
    img_channels: int
    num_ws: int
    mapping: MappingSpec
    layers: tuple[AdainLayerSpec, ...]
    epsilon: float = 1e-8
    blurs_bias: bool = False

    @property
    def usual_cutoff(self) -> int:
        """Default cutoff of truncation: coarse and middle rows (Karras et al. 2019, B)."""
        return min(8, self.num_ws)

    @property
    def architecture(self) -> str:
        """There is only one, with adaptive instance normalisation."""
        return "AdaIN"

    @property
    def w_dim(self) -> int:
        """Width of w."""
        return self.mapping.w_dim

    @property
    def has_transform(self) -> bool:
        """Whether the picture can be moved, turned and scaled inside the network."""
        return False

    @property
    def noise_layers(self) -> tuple[str, ...]:
        """Names of the layers that take noise, in execution order."""
        return tuple(layer.name for layer in self.layers if layer.has_noise)

    @property
    def draft_resolutions(self) -> tuple[int, ...]:
        """Resolutions below the full one at which the network has a picture to leave with, ascending."""
        return tuple(layer.resolution for layer in self.layers[:-1] if layer.kind == "to_rgb")


@dataclass(frozen=True, slots=True)
class FourierSpec:
    """Fourier feature input of a StyleGAN3 network; the first row of w determines its translation and rotation.

    Attributes
    ----------
    size
        Side of the grid in samples, margins included.
    sampling_rate
        Samples across the picture; the amplitude is 0 at the Nyquist frequency.
    bandwidth
        Frequencies up to this one, in cycles across the picture, keep their full amplitude.
    """

    channels: int
    size: int
    sampling_rate: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class FilteredLayerSpec:
    """One layer of a StyleGAN3 synthesis network, in execution order.

    Attributes
    ----------
    name
        The official module name without ``synthesis.``: ``"L3_52_512"``.
    kind
        ``conv`` with a filtered activation, ``to_rgb`` 1 x 1 without demodulation and filters.
    w_index
        Row of w that styles it.
    in_size, out_size
        Sides in samples, margins included.
    in_rate, out_rate, rate
        Samples across the picture at the input, at the output, and where the activation is applied.
    up_taps, down_taps
        Taps of the filters before and after the activation, 1 for none.
    is_radial
        The filter after the activation is two-dimensional and the same in all directions.
    conv_clamp, use_fp16
        As in LayerSpec.
    """

    name: str
    kind: FilteredLayerKind
    w_index: int
    in_channels: int
    out_channels: int
    kernel: int
    in_size: int
    out_size: int
    in_rate: int
    out_rate: int
    rate: int
    up_taps: int
    down_taps: int
    is_radial: bool = False
    conv_clamp: float | None = None
    use_fp16: bool = False

    @property
    def up(self) -> int:
        """Upsampling factor from the input to the activation."""
        return self.rate // self.in_rate

    @property
    def down(self) -> int:
        """Downsampling factor from the activation to the output."""
        return self.rate // self.out_rate

    @property
    def conv_size(self) -> int:
        """Side of the convolution's output, with full padding (kernel - 1)."""
        return self.in_size + self.kernel - 1

    @property
    def pads(self) -> tuple[int, int]:
        """Padding before and after each upsampled axis; negative values crop.

        The filters then give `out_size` samples, centred as the input.
        """
        inside = (self.out_size - 1) * self.down + 1 + self.up_taps + self.down_taps - 2
        total = inside - self.conv_size * self.up
        low = (total + self.up) // 2
        return low, total - low


@dataclass(frozen=True, slots=True)
class StyleGAN3Spec:
    """A StyleGAN3 generator, or that of a StyleGAN-XL, which differs only in its mapping network.

    `output_scale` multiplies the picture.
    """

    family: Literal["stylegan3", "stylegan_xl"]
    resolution: int
    img_channels: int
    num_ws: int
    mapping: MappingSpec
    input: FourierSpec
    layers: tuple[FilteredLayerSpec, ...]
    output_scale: float = 0.25

    @property
    def architecture(self) -> str:
        """``"T"`` (translation equivariant), ``"R"`` (rotation equivariant too), else ``"mixed"``."""
        inner = [(layer.kernel, layer.is_radial) for layer in self.layers if layer.kind == "conv"]
        if all(kernel == 1 for kernel, _ in inner) and any(is_radial for _, is_radial in inner):
            return "R"
        return "T" if all(part == (3, False) for part in inner) else "mixed"

    @property
    def w_dim(self) -> int:
        """Width of w."""
        return self.mapping.w_dim

    @property
    def has_transform(self) -> bool:
        """Whether the picture can be moved, turned and scaled inside the network."""
        return True

    @property
    def noise_layers(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    @property
    def draft_resolutions(self) -> tuple[int, ...]:
        """There are none: pictures come out of the last layer alone."""
        return ()


NetworkSpec = StyleGAN1Spec | StyleGAN2Spec | StyleGAN3Spec
"""Spec of any family; `family` discriminates the union."""
