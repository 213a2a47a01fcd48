"""A convolution and its place in a schedule: the arguments of the builders of all convolution kernels."""

from __future__ import annotations

import math
from typing import Self

from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.ops.adain import SCALING_FLOPS, SUMMING_FLOPS, weight_gain
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.ops.kernels.conv_tile import Operands
from gpu_backend.ops.kernels.e4m3 import padded_channels
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS, ModulatedUpConv
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.plan.fusion import raw
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ConvWork:
    """One form for the steps ``modulated_conv``, ``modulated_up_conv`` and ``skip_conv``, and StyleGAN1's convolutions.

    The steps ``adain_conv`` and ``adain_up_conv`` are normalised later; their noise has a strength per channel.

    Attributes
    ----------
    layer
        As in the step.
    side
        Of the output. A skip convolution is done before its doubling, so this is half the step's resolution.
    padding
        Zeros around the input; an up-convolution's follow from its filter.
    taps
        FIR filter of an up-convolution; empty for others.
    noise_index
        Place of the layer among the network's noise layers; -1 for a layer without noise.
    weight, bias, noise_strength, noise_const
        Names in the model's weights; "" where the layer has none.
    weight_scale
        Factor on the weight as stored.
    flops
        Of the step for one sample.
    has_odd_border
        Beyond the border of the transposed picture the filter meets its edge with the sign turned, instead of zeros.
    blurs_bias
        The bias is added before the blur, of an up-convolution that has an odd border.
    is_normalised
        It is one of StyleGAN1's.
    """

    layer: str
    in_channels: int
    out_channels: int
    kernel: int
    side: int
    weight: str
    flops: int
    weight_scale: float = 1.0
    padding: int = 0
    taps: tuple[float, ...] = ()
    act: BiasAct = BiasAct()
    bias: str = ""
    noise_index: int = -1
    noise_strength: str = ""
    noise_const: str = ""
    has_odd_border: bool = False
    blurs_bias: bool = False
    is_normalised: bool = False

    @classmethod
    def of_step(cls, step: Step) -> ConvWork:
        """Read a step.

        Raises
        ------
        TypeError
            If the step is no convolution.
        """
        settings = step.attributes
        if isinstance(settings, SkipConv):
            return _skip_work(step, settings)
        if isinstance(settings, AdainConv | AdainUpConv):
            return _normalised_work(step, settings)
        if isinstance(settings, ModulatedConv | ModulatedUpConv):
            return _modulated_work(step, settings)
        raise TypeError(f"step {step.layer!r} is no convolution: {settings!r}")

    @property
    def is_up(self) -> bool:
        """Whether the output has twice the side of the input."""
        return bool(self.taps)

    @property
    def plain_stem(self) -> str:
        """Name of the plain kernel, which fused ones stand for."""
        return "plain_modulated_up_conv" if self.is_up else "plain_modulated_conv"

    @property
    def has_binomial_filter(self) -> bool:
        """Whether an up-convolution's filter is 1 3 3 1, and nothing happens to it at a border."""
        return self.taps == BINOMIAL_TAPS and not self.has_odd_border and not self.is_normalised

    @property
    def side_in(self) -> int:
        """Side of the input."""
        return self.side // 2 if self.is_up else self.side + self.kernel - 1 - 2 * self.padding

    @property
    def cin(self) -> int:
        """Input channels in memory, padded."""
        return pad8(self.in_channels)

    @property
    def cout(self) -> int:
        """Output channels in memory, padded."""
        return pad8(self.out_channels)


def _skip_work(step: Step, settings: SkipConv) -> ConvWork:
    side = settings.resolution // 2
    return ConvWork(
        layer=step.layer,
        in_channels=settings.in_channels,
        out_channels=settings.out_channels,
        kernel=1,
        side=side,
        weight=step.weights["weight"],
        flops=2 * side**2 * settings.in_channels * settings.out_channels,
        weight_scale=1.0 / math.sqrt(settings.in_channels),
    )


def _modulated_work(step: Step, settings: ModulatedConv | ModulatedUpConv) -> ConvWork:
    return ConvWork(
        layer=step.layer,
        in_channels=settings.in_channels,
        out_channels=settings.out_channels,
        kernel=settings.kernel,
        side=settings.resolution,
        weight=step.weights["weight"],
        flops=settings.flops(1),
        padding=settings.pad if isinstance(settings, ModulatedConv) else settings.kernel // 2,
        taps=settings.taps if isinstance(settings, ModulatedUpConv) else (),
        act=settings.act,
        bias=step.weights["bias"],
        noise_index=settings.noise_index,
        noise_strength=step.weights.get("noise_strength", ""),
        noise_const=step.weights.get("noise_const", ""),
    )


def _normalised_work(step: Step, settings: AdainConv | AdainUpConv) -> ConvWork:
    """Return the convolution of a StyleGAN1's layer; its normalisation is another kernel's work."""
    normalisation = (SUMMING_FLOPS + SCALING_FLOPS) * settings.resolution**2 * settings.out_channels
    return ConvWork(
        layer=step.layer,
        in_channels=settings.in_channels,
        out_channels=settings.out_channels,
        kernel=settings.kernel,
        side=settings.resolution,
        weight=step.weights["weight"],
        flops=settings.flops(1) - normalisation,
        weight_scale=weight_gain(settings.in_channels, settings.kernel),
        padding=settings.kernel // 2,
        taps=settings.taps if isinstance(settings, AdainUpConv) else (),
        act=settings.act,
        bias=step.weights["bias"],
        noise_index=settings.noise_index,
        noise_strength=step.weights.get("noise_strength", ""),
        noise_const=step.weights.get("noise_const", ""),
        has_odd_border=isinstance(settings, AdainUpConv),
        blurs_bias=isinstance(settings, AdainUpConv) and settings.blurs_bias,
        is_normalised=True,
    )


@dataclass(frozen=True, slots=True)
class SkipPicture:
    """The skip that a resnet block adds after its activation: gain * U(region), the region at half the side."""

    region: str
    gain: float
    taps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class KeptSecond:
    """The second latent that a convolution's output is blended with.

    Attributes
    ----------
    region, sample
        Region of second latents, (samples, side, side, channels), and which of them.
    mask, mask_side
        Region of the mask, (mask_side, mask_side).
    """

    region: str
    sample: int
    mask: str
    mask_side: int

    @classmethod
    def of(cls, step: Step) -> Self:
        """Return that of a blend with one kept second latent."""
        settings: BlendSamples = step.attributes
        (mask,) = settings.masks_of(step.inputs)
        kept = step.inputs[1] if settings.is_picture else raw(step.inputs[1])
        return cls(kept, settings.blends[0], mask, settings.mask_side)


@dataclass(frozen=True, slots=True)
class RgbPart:
    """The toRGB that reads a convolution's output.

    Attributes
    ----------
    layer
        As in toRGB's step.
    weight
        Name in the model's weights.
    channels
        Of the picture.
    style_offset
        Of toRGB's styles in a sample's row of ``styles``, in floats; UNSTYLED where there are none.
    region
        Gets (parts, batch, side, side, channels) float32, to be summed by ``to_rgb``.
    """

    layer: str
    weight: str
    channels: int
    style_offset: int
    region: str


@dataclass(frozen=True, slots=True)
class PictureSum:
    """A picture that blocks beside an up-convolution's own add up: the sum of a toRGB's parts, as kernel ``to_rgb``.

    Attributes
    ----------
    layer
        As in toRGB's step.
    bias
        Name in the model's weights.
    parts, part_count
        Region of the parts, and how many there are.
    previous
        Region of the picture of half the side; None for none.
    image
        Region that gets the picture.
    taps
        Of the filter that doubles the picture before.
    """

    layer: str
    side: int
    channels: int
    bias: str
    clamp: float | None
    parts: str
    part_count: int
    previous: str | None
    image: str
    taps: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FoldedInput:
    """Weights of a convolution with the normalisation of its input, of one picture.

    Attributes
    ----------
    weight
        Region of the packed weights.
    tap_sums, parts
        Region of the constants of each tap, (parts, 9, output channels), and how many parts are to be added up.
    """

    weight: str
    tap_sums: str
    parts: int


@dataclass(frozen=True, slots=True)
class ConvSite:
    """Regions that a convolution reads and writes; offsets and strides are in floats.

    Attributes
    ----------
    half
        Activations are float16, else float32.
    x
        Input, already times this layer's styles.
    demod_offset
        In a sample's row of ``demod``; None for a convolution that is not demodulated.
    y
        Gets the output times the styles at `next_style_offset` (None: as it is); None: not stored.
    y_raw
        Gets the output as it is; None: nothing reads it.
    blend
        What the output is blended with, before the styles and toRGB's products.
    picture
        Picture that is added up beside an up-convolution.
    moments
        Gets the moments of a StyleGAN1's layer, (batch, blocks, channels, mean and M2); None: not computed.
    epsilon
        A block has the whole picture and normalises a StyleGAN1's layer itself, with scales and shifts at
        `next_style_offset`, instead of storing moments; None: it does not.
    folded
        Where the normalisation of `x` is in the weights.
    weight_exponent
        The packed weight is W * 2^-exponent, and ``demod`` has the 2^exponent; without demodulation, a constant has it.
    reads_fp8, stores_fp8
        `x` and the packed weight are e4m3, the channels of `x` padded as `padded_channels` says; `y` is.
    is_bf16x3
        Tensor cores multiply float32 as two bf16 numbers, else as tf32.
    """

    batch: int
    half: bool
    x: str
    demod_offset: int | None
    demod_stride: int
    style_stride: int
    y: str | None = None
    next_style_offset: int | None = None
    y_raw: str | None = None
    skip: SkipPicture | None = None
    rgb: RgbPart | None = None
    blend: KeptSecond | None = None
    picture: PictureSum | None = None
    moments: str | None = None
    epsilon: float | None = None
    folded: FoldedInput | None = None
    weight_exponent: int = 0
    reads_fp8: bool = False
    stores_fp8: bool = False
    is_bf16x3: bool = False

    @property
    def operands(self) -> Operands:
        """What tensor cores multiply."""
        if self.half:
            return "fp8" if self.reads_fp8 else "fp16"
        return "bf16x3" if self.is_bf16x3 else "tf32"

    @property
    def dtype(self) -> str:
        """Of activations."""
        return "float16" if self.half else "float32"

    def cin(self, work: ConvWork) -> int:
        """Input channels in memory, padded."""
        return padded_channels(work.in_channels) if self.reads_fp8 else work.cin

    def nbytes(self, work: ConvWork) -> int:
        """Bytes that the convolution asks for: activations, noise and weights, each once."""
        size = 2 if self.half else 4
        size_in, size_out = 1 if self.reads_fp8 else size, 1 if self.stores_fp8 else size
        area = work.side**2
        read = size_in * work.side_in**2 * work.in_channels
        written = (size_out * (self.y is not None) + size * (self.y_raw is not None)) * area * work.out_channels
        if self.skip is not None:
            read += size * (area // 4) * work.out_channels
        if self.blend is not None:
            read += size * area * work.out_channels
        noise = 4 * area if work.noise_const else 0
        weights = size_in * work.kernel**2 * work.in_channels * work.out_channels
        return self.batch * (read + written) + weights + noise
