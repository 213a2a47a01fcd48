"""Elementwise kernels: the constant, the resnet sum, and the conversion to bytes for display."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import BumpAllocator, Kernel, Site, allocated_floats
from gpu_backend.cpu.team import spans
from gpu_backend.ops.to_display import OPAQUE, ToDisplay
from gpu_backend.plan.executor import FLAG_NOT_FINITE
from gpu_backend.plan.plan import Step


class ConstantKernel(Kernel):
    """The learned constant, repeated over the batch."""

    def __init__(self, step: Step, site: Site) -> None:
        self._const = site.weight(step, "const").permute(1, 2, 0)
        self._out = site.buffers[step.outputs[0]]

    def run(self) -> None:
        self._out.copy_(self._const)


class AddKernel(Kernel):
    """The sum of two buffers."""

    def __init__(self, step: Step, site: Site) -> None:
        self._x, self._y = (site.buffers[name] for name in step.inputs)
        self._out = site.buffers[step.outputs[0]]
        self._team, self._rows = site.team, spans(self._out.shape[1], site.team.lanes)

    def run(self) -> None:
        self._team.run(self._lane)

    def replay_key(self) -> Hashable:
        return "always"

    def _lane(self, lane: int) -> None:
        rows = slice(*self._rows[lane])
        torch.add(self._x[:, rows], self._y[:, rows], out=self._out[:, rows])


class ToDisplayKernel(Kernel):
    """trunc(clamp(x * 127.5 + middle, 0, 255)) in Qt's channel order, and a flag for values that are not finite."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: ToDisplay = step.attributes
        self._image = site.buffers[step.inputs[0]]
        self._out, self._flags = (site.buffers[name] for name in step.outputs)
        self._sources, self._middle = attributes.sources, attributes.middle
        self._out.fill_(OPAQUE)
        self._team, self._rows = site.team, spans(attributes.resolution, site.team.lanes)
        self._checks = torch.zeros(site.team.lanes, site.batch)
        self.scratch_floats = allocated_floats(tuple(self._image.shape))

    def attach(self, scratch: Tensor) -> None:
        self._scaled = BumpAllocator(scratch).take(*self._image.shape)

    def run(self) -> None:
        self._team.run(self._lane)
        self._flags.copy_(self._checks.sum(0).isnan().to(torch.int64) * FLAG_NOT_FINITE)

    def replay_key(self) -> Hashable:
        return "always"

    def _lane(self, lane: int) -> None:
        rows = slice(*self._rows[lane])
        image, scaled = self._image[:, rows], self._scaled[:, rows]
        # x - x is 0 for finite x and NaN otherwise, so one sum detects them without a mask of the picture's size.
        torch.sub(image, image, out=scaled)
        torch.sum(scaled, (1, 2, 3), out=self._checks[lane])
        torch.mul(image, 127.5, out=scaled)
        scaled.add_(self._middle).clamp_(0.0, 255.0)
        for place, channel in enumerate(self._sources):
            if channel is not None:
                self._out[:, rows, :, place].copy_(scaled[..., channel])
