"""From the land along every column to the colour that each sample sees, air included."""

from dataclasses import dataclass

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.light import rgb
from gpu_backend.training.world.terrain import Terrain


def fog(setting: Setting, colour: torch.Tensor, behind: torch.Tensor, distance: torch.Tensor) -> torch.Tensor:
    """Blend the air between the eye and ``distance`` ``(n, W, H)`` over ``colour``."""
    thick = 0.006 + 0.060 * setting.haze**2
    clear = torch.exp(-(thick[:, None] * rgb(0.72, 0.95, 1.30, distance)) * (distance - 0.8).clamp(min=0.0)[:, None])
    return behind + (colour - behind) * clear


@dataclass(frozen=True)
class VisibleLand:
    """The visible land, computed by `look`. Shapes are ``(n, W, H)``, of ``colour`` ``(n, 3, W, H)``."""

    colour: torch.Tensor
    distance: torch.Tensor
    height: torch.Tensor
    white: torch.Tensor
    land: torch.Tensor


def look(land: Terrain, line: torch.Tensor, up: torch.Tensor) -> VisibleLand:
    """Find the first land that each view ray ``up`` ``(n, W, H)`` hits, interpolated between two steps of distance."""
    steps = line.shape[2]
    index = torch.searchsorted(line, up)
    far = index.clamp(max=steps - 1)
    near = (far - 1).clamp(min=0)
    low, top = line.gather(2, near), line.gather(2, far)
    share = ((up - low) / (top - low).clamp(min=1e-6)).clamp(0.0, 1.0)

    def between(value: torch.Tensor) -> torch.Tensor:
        a = value.gather(2, near)
        return a + (value.gather(2, far) - a) * share

    colours = [between(channel) for channel in land.colour.unbind(1)]
    distance = between(land.distance.expand_as(line))
    return VisibleLand(
        torch.stack(colours, 1), distance, between(land.height), between(land.white), (index < steps).float()
    )
