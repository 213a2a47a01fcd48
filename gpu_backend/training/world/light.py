"""The sun or the moon of each picture, and the colour of the light on the land."""

from dataclasses import dataclass

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.noise import smoothstep
from gpu_backend.training.world.numbers import numbers

# Optical depth of clear air at 680, 550 and 440 nm, towards the zenith (Rayleigh: the fourth power of the wavelength).
_AIR = (0.040, 0.098, 0.235)
# Mist scatters all colours almost equally.
_MIST = (0.95, 1.0, 1.06)
_MOONLIGHT = (0.34, 0.52, 0.92)


def rgb(red: float, green: float, blue: float, like: torch.Tensor) -> torch.Tensor:
    """A linear colour as ``(1, 3, 1, 1)`` beside ``like``."""
    return numbers((red, green, blue), like.device)[None, :, None, None]


@dataclass(frozen=True)
class Light:
    """What shines. Colours are ``(n, 3, 1, 1)`` linear, the rest ``(n, 1, 1)``.

    Parameters
    ----------
    across, sun_up, moon_up : torch.Tensor
        Positions of sun and moon, in the view's tangents.
    air, mist : torch.Tensor
        Optical depths towards the zenith.
    path : torch.Tensor
        Length of the sun's path through the air, relative to the zenith.
    day, night : torch.Tensor
        Shares of daylight and of moonlight.
    lamp : torch.Tensor
        Colour of the direct light on the land.
    slope : tuple of torch.Tensor
        Direction to that light: right, up, away from the eye; of length 1.
    tint : torch.Tensor
        What ``sky_hue`` multiplies the sky's colours with.
    """

    across: torch.Tensor
    sun_up: torch.Tensor
    moon_up: torch.Tensor
    air: torch.Tensor
    mist: torch.Tensor
    path: torch.Tensor
    day: torch.Tensor
    night: torch.Tensor
    lamp: torch.Tensor
    slope: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    tint: torch.Tensor

    @classmethod
    def of(cls, setting: Setting) -> "Light":
        """Set the sun, and the moon where the sun is down."""
        height = setting.sun_height
        air = rgb(*_AIR, like=height)
        mist = (0.016 + 0.085 * setting.haze)[:, None] * rgb(*_MIST, like=height)
        day = smoothstep(-0.26, 0.10, height)
        night = smoothstep(0.04, 0.2, -height)
        path = 1.0 / (torch.sin(height.clamp(min=0.0) * 0.6) + 0.062)
        through = torch.exp(-(air * 1.15 + mist * 0.5) * path[:, None])
        shaded = 1.0 - 0.72 * setting.cloud_cover**2
        sun = 3.6 * smoothstep(-0.10, 0.06, height) * shaded
        moon = 0.42 * night * shaded
        lamp = sun[:, None] * through + moon[:, None] * rgb(*_MOONLIGHT, like=height)
        # The lamp stands a little on the eye's side of the land even where the sun is in the picture: a painter's
        # licence, without which every low sun would leave only silhouettes.
        right = setting.sun_side * 0.95
        up = 0.30 + 0.75 * height.abs()
        away = -0.38 - 0.25 * height.clamp(min=0.0)
        length = torch.sqrt(right**2 + up**2 + away**2)
        hue = setting.sky_hue
        tint = torch.exp(hue[:, None] * rgb(0.30, -0.15, 0.10, like=height))
        return cls(
            across=setting.sun_side * 0.62,
            sun_up=0.015 + 0.98 * height,
            moon_up=0.16 - 1.5 * height,
            air=air,
            mist=mist,
            path=path,
            day=day,
            night=night,
            lamp=lamp,
            slope=(right / length, up / length, away / length),
            tint=tint,
        )
