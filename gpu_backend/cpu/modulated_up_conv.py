"""Up-convolution: `winograd_up_conv` for large layers with the usual filter, else direct.

The direct way is a packed transposed convolution, then the FIR filter and the epilogue on strips of rows.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cpu.chunks import Chunk, chunks_of
from gpu_backend.cpu.convolution import make_transposed_convolution
from gpu_backend.cpu.epilogue import Epilogue, LayerEnd, MakeEnd, strip_rows
from gpu_backend.cpu.fir import BandedRows, filter_columns
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.modulated_conv import input_style
from gpu_backend.cpu.team import layer_parts
from gpu_backend.cpu.winograd_up_conv import make_winograd_up_conv, suits_winograd
from gpu_backend.ops.adain_up_conv import AdainUpConv, blurred_sum_matrix
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.upfirdn import resampling_matrix, up_conv_left_pad
from gpu_backend.plan.plan import Step

_MAX_STRIP = 8
"""Rows of a strip: in a taller one the banded filter matrix has more zeros."""


def make_up_conv_kernel(step: Step, site: Site, make_end: MakeEnd = Epilogue) -> Kernel:
    """Return the kernel that suits the layer's size, kernel and filter."""
    if suits_winograd(step.attributes):
        return make_winograd_up_conv(step, site, make_end)
    return UpConv(step, site, make_end)


class UpConv(Kernel):
    """A direct up-convolution; the lanes divide its rows or output channels and compute them in chunks."""

    def __init__(self, step: Step, site: Site, make_end: MakeEnd = Epilogue) -> None:
        attributes: ModulatedUpConv | AdainUpConv = step.attributes
        self._out, self._team = site.buffers[step.outputs[0]], site.team
        matrix = _rows_matrix(attributes)
        self._lanes: list[list[_Part]] = []
        for rows, channels in layer_parts(attributes.resolution, attributes.out_channels, site.team.lanes):
            if rows[0] < rows[1] and channels[0] < channels[1]:
                epilogue = make_end(step, site, rows, channels)
                row_nbytes = 4 * attributes.transposed_size * (channels[1] - channels[0])
                chunks = chunks_of(site.batch, rows, row_nbytes)
                self._lanes.append([_Part(step, site, chunk, rows, channels, matrix, epilogue) for chunk in chunks])
        self.scratch_floats = sum(_most(parts) for parts in self._lanes)

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        for parts in self._lanes:
            memory = carver.take(_most(parts))
            for part in parts:
                part.attach(memory)

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return self._lanes[0][0].epilogue.replay_key()

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _lane(self, lane: int) -> None:
        if lane < len(self._lanes):
            for part in self._lanes[lane]:
                part.run()


class _Part(Kernel):
    """A chunk: a transposed convolution of its input rows, then filter and epilogue on strips."""

    def __init__(
        self,
        step: Step,
        site: Site,
        chunk: Chunk,
        lane_rows: tuple[int, int],
        channels: tuple[int, int],
        matrix: NDArray[np.float64],
        epilogue: LayerEnd,
    ) -> None:
        attributes: ModulatedUpConv | AdainUpConv = step.attributes
        count, kernel = len(attributes.taps), attributes.kernel
        first, end = channels
        rows, samples = chunk.rows, slice(*chunk.samples)
        side, size = attributes.resolution, attributes.transposed_size
        left = up_conv_left_pad(count, kernel)
        # z[u] = sum over k of f[k] t[u + n - 1 - left - k] and t[2 i + ky] += W[ky] x[i]: rows of t, then of x
        low, high = max(0, rows[0] - left), min(size, rows[1] + count - 1 - left)
        source = max(0, -((kernel - 1 - low) // 2)), min(side // 2, (high - 1) // 2 + 1)
        self._x = site.buffers[step.inputs[0]][samples, source[0] : source[1]]
        style = input_style(step, site)
        self._style = None if style is None else style[samples, None, None, :]
        self._out = site.buffers[step.outputs[0]][..., first:end]
        self.epilogue = epilogue
        self._samples, self._is_first = range(*chunk.samples), rows[0] == lane_rows[0]
        batch, height, width, inputs = self._x.shape
        # Weights packed for one height are valid for all heights.
        shape = (batch, inputs, min(side // 2, (rows[1] - rows[0]) // 2 + 2), width)
        self._convolve = site.packed.get(
            (step.weights["weight"], "transposed", channels, shape),
            lambda: make_transposed_convolution(site.weight(step, "weight")[first:end], shape),
        )
        self._height = 2 * height - 2 + kernel
        self._pad_left, self._crop = max(0, left), max(0, -left)
        self._pad_right = max(0, side + count - 2 - left - (size - 1))
        self._strip = min(_MAX_STRIP, strip_rows(4 * size * (end - first), rows[1] - rows[0]))
        self._edge = attributes.edge_tap if isinstance(attributes, AdainUpConv) else 0.0
        top = 2 * source[0]
        self._bands = BandedRows(matrix[rows[0] : rows[1], top : top + self._height], self._strip)
        self._taps = [2.0 * tap for tap in attributes.taps]
        self._rows, self._size, self._channels = rows, size, end - first
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._scaled, self._filtered = (carver.take(*shape) for shape in self._shapes())
        first = self._pad_left * self._channels
        flat = self._filtered.view(self._strip, -1)
        self._inner = flat[:, first : first + self._size * self._channels]

    def run(self) -> None:
        """Compute the chunk."""
        source = self._x
        if self._style is not None:
            source = torch.mul(source, self._style, out=self._scaled)
        elif not source.is_contiguous():
            source = self._scaled.copy_(source)
        t = self._convolve(source.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        self._filtered[:, : self._pad_left].zero_()
        self._filtered[:, self._pad_left + self._size :].zero_()
        columns = self._filtered[:, self._crop :]
        for sample, plane in zip(self._samples, t, strict=True):
            if self._is_first:
                self.epilogue.begin(sample)
            flat = plane.reshape(self._height, -1)
            for number, row in enumerate(range(*self._rows, self._strip)):
                out = self._out[sample, row : min(row + self._strip, self._rows[1])]
                rows = out.shape[0]
                self._bands.filter(number, flat, self._inner[:rows])
                filter_columns(columns[:rows], self._taps, out)
                if self._edge:
                    out[:, 0].sub_(columns[:rows, self._pad_left], alpha=self._edge)
                    out[:, -1].sub_(columns[:rows, self._pad_left + self._size - 1], alpha=self._edge)
                self.epilogue.finish(out, row, out)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        columns = self._pad_left + self._size + self._pad_right
        return tuple(self._x.shape), (self._strip, columns, self._channels)


def _rows_matrix(attributes: ModulatedUpConv | AdainUpConv) -> NDArray[np.float64]:
    """Return the (side, side - 2 + kernel) matrix that filters the transposed convolution's output along rows."""
    if isinstance(attributes, AdainUpConv):
        return blurred_sum_matrix(attributes.resolution)
    left = up_conv_left_pad(len(attributes.taps), attributes.kernel)
    size, side = attributes.transposed_size, attributes.resolution
    return resampling_matrix(size, side, attributes.taps, up=1, left=left, gain=2.0)


def _most(parts: list[_Part]) -> int:
    return max(part.scratch_floats for part in parts)
