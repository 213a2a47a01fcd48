"""toRGB: a matrix product over all pixels, clamp, and the sum with the upsampled picture of the previous block.

Lanes divide the rows of the output. Each upsamples the rows that it needs itself, so that none waits for another.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from gpu_backend.cpu.fir import PictureDoubling
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
        self._bias = site.weight(step, "bias").repeat(attributes.resolution)  # of a row of pixels
        self._clamp = attributes.clamp
        self._gain = attributes.gain
        self._batch, self._channels, self._side = site.batch, attributes.out_channels, attributes.resolution
        self._team, self._rows = site.team, spans(attributes.resolution, site.team.lanes)
        self._doublings = [
            PictureDoubling(attributes.taps, self._side // 2, self._channels, rows) if rows[0] < rows[1] else None
            for rows in self._rows
            if attributes.adds_image
        ]
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._y, self._tall = (carver.take(*shape) for shape in self._shapes())

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return "always"

    def layer_output(self) -> Tensor:
        return self._y.permute(0, 3, 1, 2)

    def _lane(self, lane: int) -> None:
        """Compute some rows of the layer's own picture, and of the sum."""
        rows = slice(*self._rows[lane])
        if rows.start == rows.stop:
            return
        pixels = slice(rows.start * self._side, rows.stop * self._side)
        for sample in range(self._batch):
            weight = torch.mul(self._weight, self._style[sample])
            part, out = self._y[sample, rows], self._out[sample, rows]
            # With the pixels as columns, the product takes up to four times as long if they come from memory.
            torch.mm(self._x[sample].view(self._side**2, -1)[pixels], weight.t(), out=part.view(-1, self._channels))
            part.view(-1, self._bias.shape[0]).add_(self._bias)
            if self._clamp is not None:
                part.clamp_(-self._clamp, self._clamp)
            doubling = self._doublings[lane] if self._doublings else None
            if doubling is not None and self._image is not None:
                doubling.run(self._image[sample], self._tall[rows], out)
                out.add_(part, alpha=self._gain)
            else:
                torch.mul(part, self._gain, out=out)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        half = self._side // 2 if self._doublings else 0
        return (self._batch, self._side, self._side, self._channels), (self._side, half * self._channels)
