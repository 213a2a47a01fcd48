"""A StyleGAN2's arrays as the kernels of a gradient take them. Pure NumPy.

Channels are padded to multiples of 8 with zeros. A convolution's weights W[o, i, ky, kx] are [tap][out][in] in fp16 for
the way forward, and [tap][in][out] for the way back, both divided by a power of two that keeps them in range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.spec import LayerSpec

_PARITY_INTS = 32
_LEAST_SUM_ROWS, _MOST_SUM_ROWS = 8, 768
"""Rows for which a layer's partial sums have room: as many blocks may share the smallest picture."""
_CHANNELS_OF_BLOCK, _MOST_BLOCKS = 128, 256
"""Of gradient_activation."""


def padded(channels: int) -> int:
    """Return channels rounded up to a multiple of 8."""
    return -(-channels // 8) * 8


@dataclass(frozen=True, slots=True, eq=False)
class PackedConv:
    """Weights of a convolution.

    Attributes
    ----------
    forward
        (taps, out, in) fp16, times 1 / unit.
    backward
        (taps, in, out) fp16, the same times 1 / unit.
    unit
        Power of two.
    squares
        (out, in) fp32: sums over taps of the squares.
    bias
        (out,).
    """

    forward: NDArray[np.float16]
    backward: NDArray[np.float16]
    unit: float
    squares: NDArray[np.float32]
    bias: NDArray[np.float32]


def pack_conv(weight: NDArray[np.float32], bias: NDArray[np.float32]) -> PackedConv:
    """Pack (out, in, side, side) weights and (out,) biases."""
    outputs, inputs = weight.shape[:2]
    flat = weight.reshape(outputs, inputs, -1)
    largest = float(np.abs(weight).max(initial=0.0))
    unit = 2.0 ** math.floor(math.log2(largest)) if largest > 0.0 else 1.0
    # Rounded before it is turned: reading every ninth number is what takes the time.
    halves = (flat / np.float32(unit)).astype(np.float16)
    forward = np.zeros((flat.shape[2], padded(outputs), padded(inputs)), np.float16)
    forward[:, :outputs, :inputs] = halves.transpose(2, 0, 1)
    squares = np.zeros(forward.shape[1:], np.float32)
    np.einsum("oit,oit->oi", flat, flat, out=squares[:outputs, :inputs])
    return PackedConv(
        forward,
        np.ascontiguousarray(forward.transpose(0, 2, 1)),
        unit,
        squares,
        np.pad(bias, (0, padded(outputs) - outputs)).astype(np.float32),
    )


def pack_affine(
    weight: NDArray[np.float32], bias: NDArray[np.float32], gain: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the matrix (inputs, w_dim) with 1 / sqrt(w_dim) and the gain in it, and the vector (inputs,)."""
    inputs, w_dim = weight.shape
    rows = padded(inputs) - inputs
    matrix = np.pad(weight * (gain / math.sqrt(w_dim)), ((0, rows), (0, 0)))
    return np.ascontiguousarray(matrix, np.float32), np.pad(bias * gain, (0, rows)).astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class StyleTable:
    """Styles and demodulation of all layers, laid out one after another.

    Attributes
    ----------
    layers
        (layers, LAYER_INTS) int32 as in parts/gradient_table.cuh, in the network's order.
    rows
        Layer name -> its row of `layers`.
    affine, affine_bias
        All layers' arrays, joined.
    half_affine
        The same matrices in fp16, w_dim padded, for the way back.
    squares
        All layers' sums of squares in fp16, each layer's divided by the square of its weights' unit.
    styles, demods
        Numbers of all styles, and of all demodulation coefficients.
    sums
        Numbers of all partial sums.
    """

    layers: NDArray[np.int32]
    rows: Mapping[str, int]
    affine: NDArray[np.float32]
    affine_bias: NDArray[np.float32]
    half_affine: NDArray[np.float16]
    squares: NDArray[np.float16]
    styles: int
    demods: int
    sums: int


def pixels_per_block(pixels: int, channels: int) -> int:
    """Return how many pixels a block of gradient_activation adds up, so that blocks fill a large GPU about once."""
    return max(8, -(-pixels * -(-channels // _CHANNELS_OF_BLOCK) // _MOST_BLOCKS))


def activation_blocks(pixels: int, channels: int) -> int:
    """Return the blocks of gradient_activation along the pixels."""
    return -(-pixels // pixels_per_block(pixels, channels))


def sum_rows(pixels: int) -> int:
    """Return for how many blocks a layer's partial sums have room."""
    return max(_LEAST_SUM_ROWS, min(_MOST_SUM_ROWS, -(-pixels // 8)))


def style_table(
    layers: Sequence[LayerSpec], packed: Sequence[PackedConv], weights: Mapping[str, NDArray[np.float32]]
) -> StyleTable:
    """Lay out the styles of convolutions, whose weights are `packed` in the same order, and of toRGB layers."""
    rows: list[list[int]] = []
    affines: list[NDArray[np.float32]] = []
    biases: list[NDArray[np.float32]] = []
    styles = demods = squares = sums = 0
    units = iter(conv.unit**2 for conv in packed)
    for layer in layers:
        is_conv = layer.kind != "to_rgb"
        gain = 1.0 if is_conv else 1.0 / math.sqrt(layer.in_channels * layer.kernel**2)
        matrix, bias = pack_affine(
            weights[f"synthesis.{layer.name}.affine.weight"], weights[f"synthesis.{layer.name}.affine.bias"], gain
        )
        inputs = len(bias)
        outputs = padded(layer.out_channels) if is_conv else 0
        source = layer.resolution // (2 if layer.kind == "up_conv" else 1)
        style_blocks = activation_blocks(source**2, inputs)
        demod_blocks = activation_blocks(layer.resolution**2, outputs) if is_conv else 0
        style_sums, demod_sums = sums, sums + sum_rows(source**2) * inputs
        row = [inputs, outputs, styles, demods, styles, squares, layer.w_index, style_sums, style_blocks, demod_sums]
        squares_unit = np.float32(next(units) if is_conv else 1.0)
        rows.append([*row, demod_blocks, int(squares_unit.view(np.int32))])
        styles, demods = styles + inputs, demods + outputs
        squares += inputs * outputs
        sums = demod_sums + sum_rows(layer.resolution**2) * outputs
        affines.append(matrix)
        biases.append(bias)
    affine = np.concatenate(affines)
    w_dim = affine.shape[1]
    return StyleTable(
        np.array(rows, np.int32),
        {layer.name: row for row, layer in enumerate(layers)},
        affine,
        np.concatenate(biases),
        np.pad(affine, ((0, 0), (0, padded(w_dim) - w_dim))).astype(np.float16),
        np.concatenate([(conv.squares.reshape(-1) / conv.unit**2).astype(np.float16) for conv in packed]),
        styles,
        demods,
        sums,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ConvGeometry:
    """Which pixels a gradient_conv multiplies.

    Attributes
    ----------
    parities
        (parities, 32) int32, as the kernel describes.
    in_side, in_stride, out_side, out_stride
        Of pictures of numbers.
    """

    parities: NDArray[np.int32]
    in_side: int
    in_stride: int
    out_side: int
    out_stride: int

    @property
    def pixels(self) -> tuple[int, ...]:
        """Pixels of each parity."""
        return tuple(int(row[1] * row[2]) for row in self.parities)


def conv_geometry(side: int, *, backward: bool) -> ConvGeometry:
    """Return that of a 3 x 3 convolution with zero padding 1, or of its adjoint."""
    turn = -1 if backward else 1
    taps = [(turn * (y - 1), turn * (x - 1), 3 * y + x) for y in range(3) for x in range(3)]
    return ConvGeometry(_rows([(side, side, 0, 0, taps)]), side, 1, side, 1)


def skip_geometry(side: int, *, backward: bool) -> ConvGeometry:
    """Return that of a 1 x 1 convolution, or of its adjoint, which are the same."""
    return ConvGeometry(_rows([(side, side, 0, 0, [(0, 0, 0)])]), side, 1, side, 1)


def up_geometry(side: int, *, backward: bool) -> ConvGeometry:
    """Return that of a transposed convolution with stride 2 of `side` to 2 side + 1, or of its adjoint."""
    whole = 2 * side + 1
    if backward:
        taps = [(y, x, 3 * y + x) for y in range(3) for x in range(3)]
        return ConvGeometry(_rows([(side, side, 0, 0, taps)]), whole, 2, side, 1)
    parities = []
    for r in (0, 1):
        for q in (0, 1):
            taps = [((r - y) // 2, (q - x) // 2, 3 * y + x) for y in range(r, 3, 2) for x in range(q, 3, 2)]
            parities.append((side + 1 - r, side + 1 - q, r, q, taps))
    return ConvGeometry(_rows(parities), side, 1, whole, 2)


def _rows(parities: Sequence[tuple[int, int, int, int, Sequence[tuple[int, int, int]]]]) -> NDArray[np.int32]:
    rows = np.zeros((len(parities), _PARITY_INTS), np.int32)
    for row, (height, width, r, q, taps) in zip(rows, parities, strict=True):
        numbers: list[Any] = [len(taps), height, width, r, q, *(number for tap in taps for number in tap)]
        row[: len(numbers)] = numbers
    return rows
