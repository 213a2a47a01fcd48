"""Skip connection of a resnet block: a 1 x 1 convolution as one matrix product, then upsampling in strips."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from gpu_backend.cpu.epilogue import strip_rows
from gpu_backend.cpu.fir import BandedRows, Doubling
from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import spans
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.ops.upfirdn import doubling_left_pad, resampling_matrix
from gpu_backend.plan.plan import Step

_MAX_STRIP = 16


class SkipConvKernel(Kernel):
    """One skip layer."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: SkipConv = step.attributes
        self._x = site.buffers[step.inputs[0]]
        self._out = site.buffers[step.outputs[0]]
        scale = attributes.gain / math.sqrt(attributes.in_channels)
        self._weight = (site.weight(step, "weight").flatten(1) * scale).t().contiguous()
        side, self._channels, self._half = attributes.resolution, attributes.out_channels, attributes.resolution // 2
        left = doubling_left_pad(len(attributes.taps))
        self._strip = min(_MAX_STRIP, strip_rows(4 * side * self._channels, side))
        self._rows = BandedRows(
            resampling_matrix(self._half, side, attributes.taps, up=2, left=left, gain=2.0), self._strip
        )
        self._doubling = Doubling(attributes.taps)
        self._side, self._team = side, site.team
        self._halves = spans(self._half, site.team.lanes)
        self._strips = spans(-(-side // self._strip), site.team.lanes)
        self.scratch_floats = allocated_floats(*self._shapes())

    def attach(self, scratch: Tensor) -> None:
        carver = BumpAllocator(scratch)
        self._low, self._tall = (carver.take(*shape) for shape in self._shapes())
        first = self._doubling.margin * self._channels
        self._inner = self._tall.flatten(2)[:, :, first : first + self._half * self._channels]

    def run(self) -> None:
        self._team.run(self._multiply)
        self._team.run(self._double)

    def _multiply(self, lane: int) -> None:
        first, end = (row * self._half for row in self._halves[lane])
        for x, low in zip(self._x, self._low, strict=True):
            torch.mm(x.view(self._half**2, -1)[first:end], self._weight, out=low[first:end])

    def _double(self, lane: int) -> None:
        margin, tall, inner = self._doubling.margin, self._tall[lane], self._inner[lane]
        tall[:, :margin].zero_()
        tall[:, margin + self._half :].zero_()
        for low, out in zip(self._low, self._out, strict=True):
            flat = low.view(self._half, -1)
            for number in range(*self._strips[lane]):
                strip = out[number * self._strip : (number + 1) * self._strip]
                self._rows.filter(number, flat, inner[: strip.shape[0]])
                self._doubling.run(tall[: strip.shape[0]], 1, strip)

    def replay_key(self) -> Hashable:
        return "always"

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        columns = self._half + 2 * self._doubling.margin
        lanes = self._team.lanes
        return (self._out.shape[0], self._half**2, self._channels), (lanes, self._strip, columns, self._channels)
