"""Numbers of 8 bits, e4m3, as ``ops/kernels/parts/e4m3.cuh`` has them; NumPy has no such type.

Scales are powers of two that need no calibration. Activations are normalised by demodulation, and the styles that they
are multiplied by are at most 1 (``styles.cu``), so that `ACTIVATION_SCALE` brings them near the middle of the range:
they saturate beyond 224. Weights are divided so that the largest of a layer is in [128, 256): a number keeps its three
bits of fraction down to 2^-13 of that.
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

_LARGEST = 448.0
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


def rounded(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a divided weight as a kernel multiplies it: times `WEIGHT_SCALE`, rounded to e4m3."""
    return from_e4m3(to_e4m3(weight * np.float32(WEIGHT_SCALE)))


@functools.cache
def _values() -> NDArray[np.float32]:
    code = np.arange(256)
    exponent, fraction = code >> 3 & 15, code & 7
    size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
    size = np.where(code & 127 == 127, np.nan, size)
    return np.where(code >= 128, -size, size).astype(np.float32)
