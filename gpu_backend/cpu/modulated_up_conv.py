"""The up-convolution: packed transposed convolution, then the FIR filter and the epilogue strip by strip."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.convolution import make_transposed_convolution
from gpu_backend.cpu.epilogue import Epilogue, strip_rows
from gpu_backend.cpu.fir import BandedRows, filter_columns
from gpu_backend.cpu.kernel import Carver, Kernel, Site, carved_floats
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.upfirdn import resampling_matrix, up_conv_left_pad
from gpu_backend.plan.plan import Step

_MAX_STRIP = 8
"""Rows of a strip: a taller band multiplies more zeros."""


class UpConv(Kernel):
    """One up-convolution layer."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: ModulatedUpConv = step.attributes
        offset, count = attributes.style_offset, len(attributes.taps)
        self._x = site.buffers[step.inputs[0]]
        self._style = site.buffers[step.inputs[1]][:, offset : offset + attributes.in_channels]
        self._out = site.buffers[step.outputs[0]]
        self._epilogue = Epilogue(step, site)
        batch, height, width, channels = self._x.shape
        shape = (batch, channels, height, width)
        self._convolve = site.packed.get(
            (step.weights["weight"], "transposed", shape),
            lambda: make_transposed_convolution(site.weight(step, "weight"), shape),
        )
        size, side = attributes.transposed_size, attributes.resolution
        self._left = up_conv_left_pad(count, attributes.kernel)
        # z[u] = sum over k of f[k] t[u + n - 1 - left - k]: columns from -left to side - 1 + n - 1 - left
        self._pad_left = max(0, self._left)
        self._crop = max(0, -self._left)
        self._pad_right = max(0, side + count - 2 - self._left - (size - 1))
        self._strip = min(_MAX_STRIP, strip_rows(4 * size * attributes.out_channels, side))
        self._rows = BandedRows(
            resampling_matrix(size, side, attributes.taps, up=1, left=self._left, gain=2.0), self._strip
        )
        self._taps = [2.0 * tap for tap in attributes.taps]
        self._size, self._side, self._channels = size, side, attributes.out_channels
        self.scratch_floats = carved_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        """Take working memory."""
        carver = Carver(scratch)
        self._scaled, self._filtered = (carver.take(*shape) for shape in self._shapes())
        first = self._pad_left * self._channels
        flat = self._filtered.view(self._strip, -1)
        self._inner = flat[:, first : first + self._size * self._channels]

    def run(self) -> None:
        """Do the step."""
        torch.mul(self._x, self._style[:, None, None, :], out=self._scaled)
        t = self._convolve(self._scaled.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        self._filtered[:, : self._pad_left].zero_()
        self._filtered[:, self._pad_left + self._size :].zero_()
        columns = self._filtered[:, self._crop :]
        for sample in range(t.shape[0]):
            self._epilogue.begin(sample)
            flat = t[sample].reshape(self._size, -1)
            for number, row in enumerate(range(0, self._side, self._strip)):
                out = self._out[sample, row : row + self._strip]
                rows = out.shape[0]
                self._rows.filter(number, flat, self._inner[:rows])
                filter_columns(columns[:rows], self._taps, out)
                self._epilogue.finish(out, row, out)

    def layer_output(self) -> Tensor:
        """What the layer gave."""
        return self._out.permute(0, 3, 1, 2)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        columns = self._pad_left + self._size + self._pad_right
        return tuple(self._x.shape), (self._strip, columns, self._channels)
