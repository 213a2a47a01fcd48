"""Tap display: converts three channels of a layer to bytes, and computes statistics of these and of all channels.

Each lane computes the statistics of its rows, the calling thread combines them, then each lane converts its rows.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import spans
from gpu_backend.ops.tap_display import LEAST, MOST, TapDisplay
from gpu_backend.ops.to_display import OPAQUE
from gpu_backend.plan.executor import FLAG_NOT_FINITE
from gpu_backend.plan.plan import Step
from gpu_backend.reference.tap_display import statistics


class TapDisplayKernel(Kernel):
    """Kernel of `gpu_backend.ops.tap_display`."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: TapDisplay = step.attributes
        side = attributes.resolution
        self._x, self._tap = (site.buffers[name] for name in step.inputs)
        self._out, self._flags, self._statistics, self._values = (site.buffers[name] for name in step.outputs)
        self._out.fill_(OPAQUE)
        self._team, self._rows = site.team, [rows for rows in spans(side, site.team.lanes) if rows[0] < rows[1]]
        shares = [(end - first) / side for first, end in self._rows]
        self._shares = torch.tensor(shares, dtype=torch.float64)[:, None, None]
        self._parts = torch.empty((len(shares), *self._statistics.shape))
        self._shape = (site.batch, side, side, 3)
        self.scratch_floats = allocated_floats(self._shape)

    def attach(self, scratch: Tensor) -> None:
        self._chosen = BumpAllocator(scratch).take(*self._shape)

    def run(self) -> None:
        self._team.run(self._measure)
        self._combine()
        self._team.run(self._show)

    def _measure(self, lane: int) -> None:
        """Copy the shown channels of some rows and compute the statistics of these rows."""
        if lane >= len(self._rows):
            return
        rows = slice(*self._rows[lane])
        part, chosen = self._x[:, rows], self._chosen[:, rows]
        for color, place in enumerate(self._tap[:3].tolist()):
            chosen[..., color].copy_(part[..., int(place)])
        self._parts[lane, :, :3].copy_(statistics(chosen, (1, 2)))
        self._parts[lane, :, 3].copy_(statistics(part, (1, 2, 3)))

    def _combine(self) -> None:
        means, deviations, least, largest = self._parts.double().unbind(-1)
        mean = (self._shares * means).sum(0)
        variance = (self._shares * (deviations.square() + (means - mean).square())).sum(0)
        self._statistics.copy_(torch.stack((mean, variance.sqrt(), least.amin(0), largest.amax(0)), dim=-1))
        ends = self._statistics[:, :3, 2:]
        self._flags.copy_((~ends.isfinite()).any(2).any(1).to(torch.int64) * FLAG_NOT_FINITE)

    def _show(self, lane: int) -> None:
        """Convert some rows to bytes."""
        if lane >= len(self._rows):
            return
        rows = slice(*self._rows[lane])
        *_, gain, is_normalized = self._tap.tolist()
        chosen = self._chosen[:, rows]
        self._values[:, rows].copy_(chosen[..., 0])
        if is_normalized:
            chosen /= self._statistics[:, None, None, :3, 2:].abs().amax(-1).clamp_(LEAST, MOST)
        scaled = chosen.mul_(gain * 127.5).add_(128.0).clamp_(0.0, 255.0)
        self._out[:, rows, :, :3].copy_(scaled.flip(-1))
