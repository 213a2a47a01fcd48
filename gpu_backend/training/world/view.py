"""The camera: position of the eye, and the view ray of each sample."""

from dataclasses import dataclass

import torch

from gpu_backend.training.world.factors import Setting

#: Width and height of a picture at distance 1.
SPAN = 1.5
#: Height of the eye above the valley's floor, in the unit of the terrain (about 100 m).
EYE = 0.62
#: Range of the horizon as fractions of a picture's height: sky and water are drawn only where they can be.
LOWEST_HORIZON, HIGHEST_HORIZON = 0.30, 0.42


def _halved(places: torch.Tensor, dimension: int) -> torch.Tensor:
    low, high = places.unfold(dimension, 2, 2).unbind(-1)
    return (low + high) * 0.5


def doubled(value: torch.Tensor) -> torch.Tensor:
    """Upsample a coarse view ``(..., W, H)``: each sample is copied to four of the fine one."""
    return value.repeat_interleave(2, -1).repeat_interleave(2, -2)


@dataclass(frozen=True)
class View:
    """The samples of a picture, column by column: x along dimension 1, y upwards along dimension 2.

    Parameters
    ----------
    across : torch.Tensor
        ``(1, W, 1)``: tangent of the angle to the right.
    up : torch.Tensor
        ``(n, 1, H)``: tangent of the angle above the horizon, ascending.
    pitch : float
        Distance of two samples in the same unit.
    """

    across: torch.Tensor
    up: torch.Tensor
    pitch: float

    def coarse(self) -> "View":
        """The same view with half as many samples along each axis."""
        return View(_halved(self.across, 1), _halved(self.up, 2), self.pitch * 2.0)

    def rows(self, low: float, high: float) -> slice:
        """Rows that hold the tangents ``low`` to ``high`` in any picture; from an even one to an even one."""
        samples = self.up.shape[2]
        first = int((low / SPAN + LOWEST_HORIZON) * samples / 2) * 2
        last = int((high / SPAN + HIGHEST_HORIZON) * samples / 2 + 1) * 2
        return slice(max(0, first), min(samples, max(last, 2)))

    @classmethod
    def of(cls, setting: Setting, samples: int) -> "View":
        """Return the view with ``samples`` x ``samples`` samples."""
        places = (torch.arange(samples, device=setting.seeds.device, dtype=torch.float32) + 0.5) / samples
        horizon = LOWEST_HORIZON + (HIGHEST_HORIZON - LOWEST_HORIZON) * setting.chance(1)
        return cls((places[None, :, None] - 0.5) * SPAN, (places[None, None, :] - horizon) * SPAN, SPAN / samples)
