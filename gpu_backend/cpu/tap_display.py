"""A layer as a picture: three channels are picked, scaled and made bytes; it runs once a frame and is small."""

from __future__ import annotations

import torch

from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.ops.tap_display import LEAST, MOST
from gpu_backend.ops.to_display import OPAQUE
from gpu_backend.plan.executor import FLAG_NOT_FINITE
from gpu_backend.plan.plan import Step


class TapDisplayKernel(Kernel):
    """One layer on show."""

    def __init__(self, step: Step, site: Site) -> None:
        self._x, self._tap = (site.buffers[name] for name in step.inputs)
        self._out, self._flags = (site.buffers[name] for name in step.outputs)
        self._out.fill_(OPAQUE)

    def run(self) -> None:
        """Do the step."""
        *places, gain, is_normalized = self._tap.tolist()
        chosen = self._x[..., [int(place) for place in places]]
        self._flags.copy_((chosen - chosen).sum((1, 2, 3)).isnan().to(torch.int64) * FLAG_NOT_FINITE)
        if is_normalized:
            chosen /= chosen.abs().amax((1, 2), keepdim=True).clamp_(LEAST, MOST)
        scaled = chosen.mul_(gain * 127.5).add_(128.0).clamp_(0.0, 255.0)
        self._out[..., :3].copy_(scaled.flip(-1))
