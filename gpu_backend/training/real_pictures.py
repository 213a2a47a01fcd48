"""Real pictures of the current step, in persistent memory."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.training.replay import Noted, Recorder, Replayed


class RealPictures:
    """Converts uint8 pictures to -1..1, for all updates of a step.

    Attributes
    ----------
    values
        (count, 3, R, R) float32.
    """

    def __init__(
        self,
        count: int,
        resolution: int,
        device: torch.device,
        memory_format: torch.memory_format,
        recorder: Recorder | None,
        *,
        mirror: bool,
    ) -> None:
        shape = (count, 3, resolution, resolution)
        self.values = torch.empty(shape, device=device, memory_format=memory_format)
        self._bytes = torch.empty(shape, dtype=torch.uint8, device=device)
        self._mirror = mirror
        self._unpack = Replayed(self._unpacked, recorder)

    @property
    def is_settled(self) -> bool:
        """Whether unpacking is captured, or never will be."""
        return self._unpack.is_settled

    def show(self, pictures: Tensor) -> None:
        """Set the pictures of a step, (count, 3, R, R) uint8 on any device."""
        self._bytes.copy_(pictures, non_blocking=True)
        self._unpack()

    def _unpacked(self) -> Noted:
        real = self._bytes.float() / 127.5 - 1.0
        if self._mirror:
            turned = torch.rand(len(real), 1, 1, 1, device=real.device) < 0.5
            real = torch.where(turned, real.flip(3), real)
        self.values.copy_(real)
        return {}
