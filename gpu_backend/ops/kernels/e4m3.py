"""Numbers of 8 bits, e4m3, as ``ops/kernels/parts/e4m3.cuh`` has them; NumPy has no such type.

Scales are powers of two that need no calibration. Activations are normalised by demodulation, and the styles that they
are multiplied by are at most 1 (``styles.cu``), so that `ACTIVATION_SCALE` brings them near the middle of the range:
they saturate beyond 224. Weights are divided so that the largest of a layer is in [128, 256): a number keeps its three
bits of fraction down to 2^-13 of that.

Weights are rounded together, the taps of one input and one output channel. Rounded to nearest, each tap has an error of
its own; a smooth input multiplies their sum, which is the same in every picture and shifts colours. Activations of
neighbouring pixels are alike, so taps are rounded up or down such that their errors cancel out.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

NEEDS = "fp8 needs a GPU of compute capability 8.9, 9.0 or 12 (Ada, Hopper, RTX Blackwell)"
"""Why a GPU has no fused kernels for e4m3."""

E4M3 = "int8"
"""Type of regions whose bytes are e4m3; nothing else in a schedule has it."""

ACTIVATION_SCALE = 2
WEIGHT_SCALE = 128
"""Of weights that `weight_exponent` has divided."""

MULTIPLE = 16
"""Channels of e4m3 are padded to a multiple of this, so that TMA can address every pixel."""

CORRELATION = 0.75
"""Of activations of neighbouring pixels, as weights are rounded for. Those of the bundled model have 0.92 to 0.99; but
the lower this is, the less the errors of single taps grow, and 0.7 to 0.8 err least there."""

_SWEEPS = 2
"""How often all taps are rounded anew, each for the errors of the others. A third sweep gains a tenth."""

_PIECE = 1 << 13
"""Pairs of channels that are rounded at a time: their numbers stay in a core's cache."""

_LARGEST = 448.0
_MAGIC = np.float32(1.5 * 2**20)
"""Times the power of two below a number: added to the number, it has as its last bit the third bit of its fraction."""

_CAPABILITIES = (range(89, 100), range(120, 130))
"""Of GPUs with kernels that multiply e4m3. Those between have tcgen05 for it; their mma converts it to fp16 first."""


def multiplies_e4m3(architecture: str) -> bool:
    """Return whether an architecture, such as ``"sm_89"``, has fused kernels for e4m3."""
    capability = int(architecture.removeprefix("sm_").rstrip("abcdefghijklmnopqrstuvwxyz"))
    return any(capability in known for known in _CAPABILITIES)


def up_convs_multiply_e4m3(architecture: str) -> bool:
    """Return whether an architecture has fused up-convolutions that read e4m3: two kernels, and the streaming one."""
    return architecture == "sm_90a"


def padded_channels(channels: int) -> int:
    """Round up to a multiple of `MULTIPLE`."""
    return -(-channels // MULTIPLE) * MULTIPLE


def to_e4m3(numbers: NDArray[np.float32]) -> NDArray[np.int8]:
    """Round to nearest even; numbers out of range become the largest, 448. NaN stays NaN."""
    size = np.minimum(np.abs(numbers), np.float32(_LARGEST)).astype(np.float32)
    bits = size.view(np.uint32)
    normal = ((bits + np.uint32(0x7FFFF) + (bits >> 20 & 1)) >> 20).astype(np.int64) - (120 << 3)
    with np.errstate(invalid="ignore"):
        tiny = np.rint(size * np.float32(512)).astype(np.int64)
    found = np.where(size < np.float32(2.0**-6), tiny, normal)
    found = np.where(np.isnan(numbers), 127, found) | np.where(np.signbit(numbers), 128, 0)
    return found.astype(np.uint8).view(np.int8)


def from_e4m3(numbers: NDArray[np.int8]) -> NDArray[np.float32]:
    """Return the numbers in single precision."""
    values: NDArray[np.float32] = _values()[numbers.view(np.uint8)]
    return values


def weight_to_e4m3(weight: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return a weight as a kernel multiplies it: times `WEIGHT_SCALE`, as e4m3.

    Of the taps of one pair of channels, with errors e, coordinate descent makes e' C e small, where C[s, t] is
    `CORRELATION` to the number of pixels, down and across, between both taps. This is the power that the errors add to
    an output, if C is the correlation of the input's pixels. A weight of one tap is rounded to nearest.

    Parameters
    ----------
    weight
        (out_channels, in_channels, k, k), divided as `WEIGHT_SCALE` says.
    """
    height, width = weight.shape[2:]
    taps = weight.reshape(-1, height * width)
    found = np.empty(taps.shape, np.int8)
    correlations = _correlations(height, width)
    for start in range(0, len(taps), _PIECE):
        exact = np.ascontiguousarray(taps[start : start + _PIECE].T) * np.float32(WEIGHT_SCALE)
        found[start : start + _PIECE] = to_e4m3(_rounded_together(exact, correlations)).T
    return found.reshape(weight.shape)


def rounded(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers of `weight_to_e4m3` in single precision, `WEIGHT_SCALE` times the weight."""
    return from_e4m3(weight_to_e4m3(weight))


def _rounded_together(exact: NDArray[np.float32], correlations: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round numbers (taps, pairs of channels): sweeps over the taps, each rounded for the errors of the others.

    All of it is done number by number in one order, so that the result depends on nothing but the pair's own numbers.
    """
    exact = np.clip(exact, np.float32(-_LARGEST), np.float32(_LARGEST))
    errors = _nearest(exact) - exact
    if len(exact) == 1:
        return exact + errors
    wanted, part = np.empty_like(exact[0]), np.empty_like(exact[0])
    for _ in range(_SWEEPS):
        for tap, number in enumerate(exact):
            np.copyto(wanted, number)
            for other, error in enumerate(errors):
                if other != tap:
                    wanted -= np.multiply(error, correlations[tap, other], out=part)
            np.subtract(_nearest(wanted), number, out=errors[tap])
    return exact + errors


def _nearest(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the numbers of `to_e4m3` in single precision, several times as fast as by its integers."""
    size = np.clip(numbers, np.float32(-_LARGEST), np.float32(_LARGEST))
    power = (size.view(np.uint32) & np.uint32(0x7F800000)).view(np.float32)
    magic = np.maximum(power, np.float32(2.0**-6))
    magic *= _MAGIC
    size += magic
    size -= magic
    return size


@functools.cache
def _correlations(height: int, width: int) -> NDArray[np.float32]:
    """Return C, (taps, taps)."""
    row, column = np.divmod(np.arange(height * width), width)
    apart = np.abs(row[:, None] - row) + np.abs(column[:, None] - column)
    return np.asarray(CORRELATION**apart, np.float32)


@functools.cache
def _values() -> NDArray[np.float32]:
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    size = np.where(code & 127 == 127, np.nan, size)
    return np.where(code >= 128, -size, size).astype(np.float32)
