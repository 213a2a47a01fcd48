"""The one constant of the `styles` kernel: rows of all affines, rows of all W2, and two numbers per row.

Rows are those of `gpu_backend.cuda.launches.style_layout`, padding included, first the affines' (`w_dim` columns), then
the demodulations' (`in_channels` columns), each row padded to a multiple of 8 columns. All padding is zero.

    affine rows    A gain / sqrt(w_dim)                  terms (f, a gain)
    W2 rows        sum of squares over the taps          terms (f, 2^e); (0, 0) in rows that are padding

Layers of unit size (`StyleSlot.is_normalized`) have 1 / sqrt(magnitude_ema) in toRGB's gain, others in the second term.
Style and weights are not brought to unit size, since that changes nothing but what the 1e-8 under the root is beside:
at unit size float32 does not see it. So the first term has 2^40 and the second 2^20 besides, after which it is not seen
beside styles and weights of any usual size.

In fp32 tables f is 1. In fp16 tables a row is stored as row / f with f the power of two that brings its largest
magnitude into [2^14, 2^15): a number is then off by 2^-11 of itself, or by 2^-40 of its row's largest. W2 and s^2 are
positive, so demod is off by at most 2^-12 = 2.5e-4 of itself; with normal weights and 512 channels, where roundings
average out, by 8e-6 (root mean square; 3.5e-5 at most). A style is off by at most 2^-11 of each of its products with w;
with normal numbers and w_dim 512 by 2.1e-4 (9e-4 at most), which is what fp16 activations are off by themselves. demod
is computed from the unscaled style. `e` is `weight_exponent` of the layer in fp16 tables, 0 in fp32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.launches.shared_work import parallel_for
from gpu_backend.cuda.launches.style_layout import StyleLayout, pad8
from gpu_backend.cuda.launches.weight_exponent import weight_exponent
from gpu_backend.model.model import Weights
from gpu_backend.ops.styles import StyleSlot
from gpu_backend.quick_dataclass import dataclass

_UNIT_EXPONENT = 20

_ROWS = 16
"""Output channels whose weights are squared at a time."""

_LINE = 128
"""Bytes of a cache line; sections begin at whole lines."""


@dataclass(frozen=True, slots=True)
class StyleTable:
    """Offsets in the table.

    Attributes
    ----------
    layout
        Where each slot's rows are.
    half
        fp16 rows; fp32 otherwise.
    """

    layout: StyleLayout
    half: bool

    @property
    def itemsize(self) -> int:
        """Bytes of a weight."""
        return 2 if self.half else 4

    @property
    def affine_groups(self) -> int:
        """16-byte groups of an affine's row."""
        return self._groups(self.layout.attributes.w_dim)

    @property
    def demod_slots(self) -> tuple[StyleSlot, ...]:
        """Slots that demodulate, in order."""
        return tuple(slot for slot in self.layout.attributes.slots if slot.demod_offset >= 0)

    def demod_groups(self, slot: StyleSlot) -> int:
        """16-byte groups of a row of the slot's W2."""
        return self._groups(slot.in_channels)

    def affine_start(self, slot: StyleSlot) -> int:
        """First group of the slot's affine."""
        return self.layout.style_offset(slot.layer) * self.affine_groups

    def demod_start(self, slot: StyleSlot) -> int:
        """First group of the slot's W2; behind the last slot's for the table's end."""
        before = self.demod_slots[: self.demod_slots.index(slot)]
        return self._demods_start + sum(pad8(other.out_channels) * self.demod_groups(other) for other in before)

    @property
    def weights_nbytes(self) -> int:
        """Bytes of all rows, whole lines."""
        groups = self._demods_start + sum(
            pad8(slot.out_channels) * self.demod_groups(slot) for slot in self.demod_slots
        )
        return _whole_lines(16 * groups)

    @property
    def term_rows(self) -> int:
        """Rows of the table."""
        return self.layout.style_width + self.layout.demod_width

    @property
    def nbytes(self) -> int:
        """Bytes of rows and terms, whole lines."""
        return self.weights_nbytes + _whole_lines(8 * self.term_rows)

    @property
    def lines(self) -> int:
        """Cache lines of the table."""
        return self.nbytes // _LINE

    def make(self, weights: Weights, names: Mapping[str, str]) -> NDArray[np.uint8]:
        """Fill the table: (nbytes,) bytes.

        Parameters
        ----------
        weights
            The model's.
        names
            Role in the `styles` step, ``<layer>.affine.weight``, to name among the weights.
        """
        table = np.zeros(self.nbytes, np.uint8)
        terms = table[self.weights_nbytes :].view(np.float32).reshape(-1, 2)
        scale = math.sqrt(self.layout.attributes.w_dim)

        def fill_affine(slot: StyleSlot) -> None:
            gain = slot.style_gain * (1.0 if slot.demod_offset >= 0 else _input_gain(slot, weights, names))
            affine = weights[names[f"{slot.layer}.affine.weight"]] * np.float32(gain / scale)
            bias = weights[names[f"{slot.layer}.affine.bias"]] * np.float32(gain)
            row = self.layout.style_offset(slot.layer)
            self._put(table, terms[row:], self.affine_start(slot), affine, bias)

        def fill_demod(slot: StyleSlot) -> None:
            weight = weights[names[f"{slot.layer}.weight"]]
            exponent = weight_exponent(weight) if self.half else 0
            unit = 2.0**_UNIT_EXPONENT if slot.is_normalized else 1.0
            last = np.full(slot.out_channels, 2.0**exponent * unit * _input_gain(slot, weights, names), np.float32)
            row = self.layout.style_width + self.layout.demod_offset(slot.layer)
            self._put(table, terms[row:], self.demod_start(slot), _sums_of_squares(weight), last)
            terms[row : row + slot.out_channels, 0] *= np.float32(unit**2)

        slots = (*self.demod_slots, *self.layout.attributes.slots)
        demods = len(self.demod_slots)
        parallel_for(lambda number: (fill_demod if number < demods else fill_affine)(slots[number]), len(slots))
        return table

    @property
    def _demods_start(self) -> int:
        return self.layout.style_width * self.affine_groups

    def _groups(self, columns: int) -> int:
        return pad8(columns) * self.itemsize // 16

    def _put(
        self,
        table: NDArray[np.uint8],
        terms: NDArray[np.float32],
        start: int,
        rows: NDArray[np.float32],
        second: NDArray[np.float32],
    ) -> None:
        count, columns = rows.shape
        stored: NDArray[Any]
        stored, factors = _within_half(rows) if self.half else (rows, np.ones(count, np.float32))
        padded = np.zeros((count, pad8(columns)), stored.dtype)
        padded[:, :columns] = stored
        table[16 * start : 16 * start + padded.nbytes] = padded.reshape(-1).view(np.uint8)
        terms[:count, 0] = factors
        terms[:count, 1] = second


def _input_gain(slot: StyleSlot, weights: Weights, names: Mapping[str, str]) -> float:
    """Return the factor that normalises a layer's input."""
    if not slot.is_normalized:
        return 1.0
    return 1.0 / math.sqrt(float(weights[names[f"{slot.layer}.magnitude_ema"]]))


def _sums_of_squares(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the sum over the kernel of W^2, (out_channels, in_channels), summed in double precision."""
    sums = np.empty(weight.shape[:2], np.float32)
    for first in range(0, len(weight), _ROWS):  # a few rows stay in a core's cache
        part = weight[first : first + _ROWS].astype(np.float64)
        sums[first : first + _ROWS] = np.square(part, out=part).sum((2, 3))
    return sums


def _within_half(rows: NDArray[np.float32]) -> tuple[NDArray[np.float16], NDArray[np.float32]]:
    """Return fp16 rows and the powers of two that they were divided by."""
    largest = np.abs(rows).max(axis=1, initial=0.0)
    exponents = np.where(np.isfinite(largest), np.frexp(largest)[1] - 15, 0)
    with np.errstate(over="ignore"):  # a weight that is not finite stays so, and the frame's flag reports it
        half = np.ldexp(rows, -exponents[:, None]).astype(np.float16)
    return half, np.ldexp(np.float32(1), exponents).astype(np.float32)


def _whole_lines(nbytes: int) -> int:
    return -(-nbytes // _LINE) * _LINE
