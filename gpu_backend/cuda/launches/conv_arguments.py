"""Arguments of all convolution kernels, with the constants and regions that they name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.conv_work import ConvSite, ConvWork, KeptSecond, RgbPart, SkipPicture
from gpu_backend.cuda.launches.style_layout import pad8
from gpu_backend.cuda.schedule import Address, Argument, Constant, Region
from gpu_backend.ops.kernels.e4m3 import ACTIVATION_SCALE, E4M3, WEIGHT_SCALE

Weights = Mapping[str, NDArray[np.float32]]
"""A model's weights by name."""

ACTIVATION_NUMBERS = {
    name: number
    for number, name in enumerate(
        ("linear", "relu", "lrelu", "tanh", "sigmoid", "elu", "selu", "softplus", "swish"),
    )
}
"""Macro ACTIVATION of the kernels."""


def region(name: str, floats: int = 0) -> Address:
    """Return a region's address, some floats from its start."""
    return Address(name, "region", 4 * floats)


def constant(key: str) -> Address:
    """Return a constant's address."""
    return Address(key, "constant")


def padded(array: NDArray[np.float32], axes: Sequence[int]) -> NDArray[np.float32]:
    """Return a contiguous copy whose given axes are padded with zeros to a multiple of 8."""
    widths = [(0, pad8(size) - size if axis in axes else 0) for axis, size in enumerate(array.shape)]
    return np.ascontiguousarray(np.pad(array, widths), dtype=np.float32)


def weight_of(work: ConvWork, weights: Weights) -> NDArray[np.float32]:
    """Return a convolution's weight, (out_channels, in_channels, k, k), also where it is stored as a matrix."""
    return weights[work.weight].reshape(work.out_channels, work.in_channels, work.kernel, work.kernel)


def bias_constant(work: ConvWork, weights: Weights) -> Constant:
    """Return a layer's bias, padded."""
    return Constant(f"padded/{work.bias}", lambda: padded(weights[work.bias], (0,)))


def noise_constant(work: ConvWork, weights: Weights) -> Constant:
    """Return a layer's stored noise."""
    return Constant(f"flat/{work.noise_const}", lambda: np.ascontiguousarray(weights[work.noise_const], np.float32))


def conv_arguments(
    work: ConvWork, site: ConvSite, weights: Weights, weight: Constant
) -> tuple[dict[str, Argument], list[Constant], tuple[Region, ...]]:
    """Return the arguments of all convolution kernels, the constants among them, and the regions that they write.

    The names are those of ``LAYER_PARAMETERS`` and ``SIZE_PARAMETERS`` in ``parts/epilogue.cuh``, and of
    ``BLEND_PARAMETERS`` in ``parts/blend.cuh`` if there is a blend. Reads ``site.x``,
    ``demod``, ``styles``, ``noise_gain`` and ``noise_source``; writes ``site.y`` and ``site.y_raw``, the regions that
    it returns.
    """
    constants = [weight]

    def held(item: Constant) -> Address:
        constants.append(item)
        return constant(item.key)

    bias = noise = noise_gain = noise_source = demod = next_style = None
    strength = 0.0
    if work.bias:
        bias = held(bias_constant(work, weights))
    if work.noise_const:
        noise = held(noise_constant(work, weights))
        noise_gain, noise_source = region("noise_gain", work.noise_index), region("noise_source")
        # Of a normalised layer, `strengths_argument` has one per channel.
        strength = 1.0 if work.is_normalised else float(np.asarray(weights[work.noise_strength]).reshape(-1)[0])
    demod_stride = site.demod_stride
    if site.demod_offset is not None:
        demod = region("demod", site.demod_offset)
    elif site.weight_exponent:
        size, demod_stride = 2.0**site.weight_exponent, 0
        demod = held(Constant(f"ones/{work.cout}/{size}", lambda: np.full(work.cout, size, np.float32)))
    if site.next_style_offset is not None:
        next_style = region("styles", site.next_style_offset)
    arguments: dict[str, Argument] = {
        "x": region(site.x),
        "weight": constant(weight.key),
        "y": None if site.y is None else region(site.y),
        "y_raw": None if site.y_raw is None else region(site.y_raw),
        "demod": demod,
        "next_style": next_style,
        "bias": bias,
        "noise": noise,
        "noise_gain": noise_gain,
        "noise_source": noise_source,
        "noise_strength": np.float32(strength),
        "noise_layer": np.int32(max(work.noise_index, 0)),
        "batch": np.int32(site.batch),
        "side": np.int32(work.side),
        "cin": np.int32(site.cin(work)),
        "cout": np.int32(work.cout),
        "demod_stride": np.int32(demod_stride),
        "style_stride": np.int32(site.style_stride),
        "gain": np.float32(work.act.gain),
        "clamp": np.float32(math.inf if work.act.clamp is None else work.act.clamp),
    }
    if site.blend is not None:
        arguments |= blend_arguments(site.blend, work.side, work.cout * (2 if site.half else 4))
    shape = (site.batch, work.side, work.side, work.cout)
    stored = (site.y, E4M3 if site.stores_fp8 else site.dtype), (site.y_raw, site.dtype)
    written = tuple(Region(name, shape, dtype, "scratch") for name, dtype in stored if name is not None)
    return arguments, constants, written


def fp8_macros(site: ConvSite) -> dict[str, int]:
    """Return the macros of ``parts/e4m3.cuh``."""
    return {
        "FP8_X": ACTIVATION_SCALE * WEIGHT_SCALE if site.reads_fp8 else 0,
        "FP8_Y": ACTIVATION_SCALE if site.stores_fp8 else 0,
    }


def strengths_argument(work: ConvWork, weights: Weights, constants: list[Constant]) -> Argument:
    """Return the noise's strength per channel, added to `constants`; None for other networks than StyleGAN1."""
    if not (work.noise_const and work.is_normalised):
        return None
    key = f"padded/{work.noise_strength}"
    constants.append(Constant(key, lambda: padded(weights[work.noise_strength], (0,))))
    return constant(key)


def skip_arguments(skip: SkipPicture, constants: list[Constant]) -> dict[str, Argument]:
    """Return the arguments of a kernel with HAS_SKIP; the filter of the skip is added to `constants`."""
    # Doubling has gain 2 per axis, and the block's gain is for both axes.
    return {"skip": region(skip.region), "taps": taps_constant(constants, skip.taps, 2.0 * math.sqrt(skip.gain))}


def blend_arguments(blend: KeptSecond, side: int, pixel_nbytes: int) -> dict[str, Argument]:
    """Return the arguments of a kernel with HAS_BLEND."""
    return {
        "second": Address(blend.region, "region", blend.sample * side**2 * pixel_nbytes),
        "mask": region(blend.mask),
        "mask_side": np.int32(blend.mask_side),
        "mask_step": np.float32(blend.mask_side) / np.float32(side),
    }


def taps_constant(constants: list[Constant], taps: Sequence[float], gain: float) -> Address:
    """Add FIR taps times a gain per axis to `constants` and return their address."""
    scaled = tuple(gain * tap for tap in taps)
    key = "taps/" + " ".join(repr(tap) for tap in scaled)
    constants.append(Constant(key, lambda: np.array(scaled, np.float32)))
    return constant(key)


def rgb_arguments(rgb: RgbPart, weights: Weights, constants: list[Constant]) -> dict[str, Argument]:
    """Return the arguments of a kernel that writes toRGB's parts; its weight is added to `constants`."""
    weight = rgb_weight_constant(rgb.weight, weights)
    constants.append(weight)
    return {
        "rgb_weight": constant(weight.key),
        "rgb_style": region("styles", rgb.style_offset),
        "rgb_parts": region(rgb.region),
    }


def rgb_weight_constant(name: str, weights: Weights) -> Constant:
    """Return toRGB's weight as (channels of the picture, padded input channels)."""

    def make() -> NDArray[np.float32]:
        array = weights[name]
        return padded(array.reshape(array.shape[0], -1), (1,))

    return Constant(f"rgb/{name}", make)
