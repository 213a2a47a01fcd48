"""The named factors of the world: exact numbers for what a picture shows."""

from dataclasses import dataclass

import torch

from gpu_backend.training.world.noise import Salt, chance


@dataclass(frozen=True)
class Factor:
    """One independent property of a landscape.

    Parameters
    ----------
    name : str
        Name, also the label of the pictures.
    low, high : float
        Its range, both ends included.
    meaning : str
        What moves from ``low`` to ``high``.
    """

    name: str
    low: float
    high: float
    meaning: str


FACTORS: tuple[Factor, ...] = (
    Factor("sun_height", -0.3, 1.0, "night under a moon, through sunrise at 0, to noon"),
    Factor("sun_side", -1.0, 1.0, "the sun or moon from the left edge to the right"),
    Factor("sky_hue", -1.0, 1.0, "a green-blue sky to a violet one"),
    Factor("cloud_cover", 0.0, 1.0, "a clear sky to one that is overcast"),
    Factor("haze", 0.0, 1.0, "air as after rain to mist that hides the distance"),
    Factor("ruggedness", 0.0, 1.0, "rounded hills to torn crests"),
    Factor("mountain_height", 0.0, 1.0, "low hills to mountains that fill the sky"),
    Factor("snow_line", 0.0, 1.0, "snow down to the forests to bare peaks"),
    Factor("water_level", 0.0, 1.0, "a dry valley to a wide lake"),
    Factor("season", 0.0, 1.0, "winter, spring, summer, autumn: white to green to red"),
    Factor("foreground", 0.0, 1.0, "an open view to tall grass and a bank in front"),
    Factor("tree_density", 0.0, 1.0, "bare meadows to woods"),
    Factor("warmth", -1.0, 1.0, "a cold white balance to a warm one"),
    Factor("exposure", -1.0, 1.0, "a dark print to a bright one"),
)


def sample_factors(count: int, generator: torch.Generator) -> torch.Tensor:
    """Sample factors independently and uniformly over their ranges.

    Parameters
    ----------
    count : int
        How many pictures.
    generator : torch.Generator
        Where the numbers come from; it also names the device.

    Returns
    -------
    torch.Tensor
        ``(count, len(FACTORS)) float32``, in the order of ``FACTORS``.
    """
    share = torch.rand((count, len(FACTORS)), generator=generator, device=generator.device)
    low = torch.tensor([factor.low for factor in FACTORS], device=share.device)
    high = torch.tensor([factor.high for factor in FACTORS], device=share.device)
    return low + (high - low) * share


@dataclass(frozen=True)
class Setting:
    """The factors of a batch by name, each ``(n, 1, 1) float32``, and the seeds for everything else.

    Parameters
    ----------
    seeds : torch.Tensor
        ``(n, 1, 1) int32``.
    """

    sun_height: torch.Tensor
    sun_side: torch.Tensor
    sky_hue: torch.Tensor
    cloud_cover: torch.Tensor
    haze: torch.Tensor
    ruggedness: torch.Tensor
    mountain_height: torch.Tensor
    snow_line: torch.Tensor
    water_level: torch.Tensor
    season: torch.Tensor
    foreground: torch.Tensor
    tree_density: torch.Tensor
    warmth: torch.Tensor
    exposure: torch.Tensor
    seeds: torch.Tensor

    @classmethod
    def of(cls, factors: torch.Tensor, seeds: torch.Tensor) -> "Setting":
        """Name the columns of ``factors`` ``(n, F)`` and fold ``seeds`` ``(n,) int64`` to 32 bits."""
        columns = factors.float()[:, :, None, None].unbind(1)
        folded = ((seeds ^ (seeds >> 31)) & 0x7FFFFFFF).to(torch.int32)
        return cls(*(*columns, folded[:, None, None]))

    def chance(self, salt: Salt) -> torch.Tensor:
        """A random number in 0..1 for each picture and ``salt``; ``(n, 1, 1)``."""
        return chance(self.seeds, salt)
