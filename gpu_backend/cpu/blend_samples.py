"""Blends of samples under masks; a mask is enlarged when it changes."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.cpu.team import spans
from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.plan.plan import Step
from gpu_backend.reference.blend_samples import enlarged


class BlendSamplesKernel(Kernel):
    """Kernel of `gpu_backend.ops.blend_samples`."""

    def __init__(self, step: Step, site: Site) -> None:
        self._settings: BlendSamples = step.attributes
        self._x = site.buffers[step.inputs[0]]
        self._second = site.buffers[step.inputs[1]] if self._settings.reads_kept else self._x[self._settings.pictures :]
        self._masks = [site.buffers[name] for name in self._settings.masks_of(step.inputs)]
        self._out = site.buffers[step.outputs[0]]
        self._known = [torch.full_like(mask, float("nan")) for mask in self._masks]
        """The masks that those below were made from."""
        self._shares: list[Tensor] = [torch.empty(0)] * len(self._masks)
        self._team, self._rows = site.team, spans(self._settings.resolution, site.team.lanes)

    def replay_key(self) -> Hashable:
        return None if self._masks else "always"

    def run(self) -> None:
        for place, mask in enumerate(self._masks):
            if not torch.equal(mask, self._known[place]):
                self._known[place].copy_(mask)
                self._shares[place] = enlarged(self._known[place], self._settings.resolution)[..., None].contiguous()
        self._team.run(self._lane)

    def _lane(self, lane: int) -> None:
        rows = slice(*self._rows[lane])
        pictures = self._settings.pictures
        for sample in range(self._settings.samples_out):
            out, made = self._out[sample, rows], self._x[sample, rows]
            if sample >= pictures:
                out.copy_(made)
                continue
            for blend, shares in zip(self._settings.blends, self._shares, strict=True):
                torch.lerp(made, self._second[blend, rows], shares[rows], out=out)
                made = out
