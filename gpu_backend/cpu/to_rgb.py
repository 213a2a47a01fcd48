"""toRGB: a matrix product over all pixels, clamp, and the sum with the upsampled picture of the previous block.

Pictures are stored as planes, because three channels are too few for the innermost dimension.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.cpu.fir import Doubling
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import spans
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.plan import Step


class ToRgbKernel(Kernel):
    """One toRGB layer."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: ToRgb = step.attributes
        offset, inputs = attributes.style_offset, attributes.in_channels
        self._x = site.buffers[step.inputs[0]]
        self._style = (
            torch.full((site.batch, inputs), 1.0 / math.sqrt(inputs))
            if offset == UNSTYLED
            else site.buffers[step.inputs[1]][:, offset : offset + inputs]
        )
        self._image = site.buffers[step.inputs[2]] if attributes.adds_image else None
        self._out = site.buffers[step.outputs[0]]
        self._weight = site.weight(step, "weight").flatten(1)
        self._bias = site.weight(step, "bias")[:, None]
        self._clamp = attributes.clamp
        self._doubling = Doubling(attributes.taps) if attributes.adds_image else None
        self._gain = attributes.gain
        self._batch, self._channels, self._side = site.batch, attributes.out_channels, attributes.resolution
        self._team, self._rows = site.team, spans(attributes.resolution, site.team.lanes)
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._y, *rest = (carver.take(*shape) for shape in self._shapes())
        if rest:
            self._low, self._tall, self._sum = rest

    def run(self) -> None:
        self._team.run(self._make)
        self._team.run(self._finish)

    def layer_output(self) -> Tensor:
        return self._y.view(self._batch, self._channels, self._side, self._side)

    def _make(self, lane: int) -> None:
        """Compute some rows of the layer's own picture; the first lane also upsamples rows of the previous picture."""
        first, end = (row * self._side for row in self._rows[lane])
        for sample in range(self._batch):
            pixels = self._x[sample].view(self._side**2, -1)[first:end]
            weight = torch.mul(self._weight, self._style[sample])
            part = self._y[sample, :, first:end]
            torch.mm(weight, pixels.t(), out=part)
            part.add_(self._bias)
            if self._clamp is not None:
                part.clamp_(-self._clamp, self._clamp)
        if self._image is not None and self._doubling is not None and lane == 0:
            margin, half = self._doubling.margin, self._side // 2
            self._low.zero_()
            inner = slice(margin, margin + half)
            self._low[:, :, inner, inner].copy_(self._image.permute(0, 3, 1, 2))
            self._doubling.run(self._low, 2, self._tall)

    def _finish(self, lane: int) -> None:
        """Compute some rows of the sum."""
        rows = slice(*self._rows[lane])
        planes = self._y.view(self._batch, self._channels, self._side, self._side)[:, :, rows]
        if self._doubling is not None:
            total = self._sum[:, :, rows]
            self._doubling.run(self._tall[:, :, rows], 3, total)
            planes = total.add_(planes, alpha=self._gain)
            self._out[:, rows].copy_(planes.permute(0, 2, 3, 1))
        else:
            torch.mul(planes.permute(0, 2, 3, 1), self._gain, out=self._out[:, rows])

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        batch, channels, side = self._batch, self._channels, self._side
        if self._doubling is None:
            return ((batch, channels, side**2),)
        low = side // 2 + 2 * self._doubling.margin
        return (
            (batch, channels, side**2),
            (batch, channels, low, low),
            (batch, channels, side, low),
            (batch, channels, side, side),
        )
