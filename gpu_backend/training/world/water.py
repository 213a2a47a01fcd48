"""Water: the mirrored world through ripples, blended over the ground below."""

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.look import VisibleLand, fog, look
from gpu_backend.training.world.noise import gradient_noise, smoothstep
from gpu_backend.training.world.numbers import number
from gpu_backend.training.world.parts import Run, as_is
from gpu_backend.training.world.sky import sky
from gpu_backend.training.world.terrain import Terrain, mirrored_skyline, step_at
from gpu_backend.training.world.trees import FARTHEST_ROW, tree_row
from gpu_backend.training.world.view import EYE, View


def _ripples(setting: Setting, view: View, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """Wave heights on the water, about -1..1, without those below the sampling limit."""
    footprint = view.pitch * z * z * 2.0
    total = torch.zeros_like(x)
    for octave, (wide, deep, weight) in enumerate(((3.0, 9.0, 1.0), (7.5, 21.0, 0.6))):
        seen = (1.6 - footprint * deep).clamp(0.0, 1.0) * weight
        total = total + seen * gradient_noise(x * wide + 3.0 * octave, z * deep, setting.seeds, 130 + octave)
    return total


def water(
    setting: Setting,
    light: Light,
    ambient: torch.Tensor,
    horizon: torch.Tensor,
    view: View,
    land: Terrain,
    ground: torch.Tensor,
    depth: torch.Tensor,
    run: Run = as_is,
) -> torch.Tensor:
    """Colour of the water, were it everywhere, for the rows of ``view`` at and below the horizon.

    Parameters
    ----------
    ambient, horizon : torch.Tensor
        ``(n, 3, 1, 1)`` and ``(n, 3, W, 1)``: light from the sky, and its colour at the horizon.
    land : Terrain
        At the columns of ``view``.
    ground : torch.Tensor
        ``(n, 3, W, H)``: colour of what lies below the water.
    depth : torch.Tensor
        ``(n, W, H)``: how deep below.

    Returns
    -------
    torch.Tensor
        ``(n, 3, W, H)`` linear.
    """
    ripple, mirror, sideways = run(_surface, setting, view, land.water)
    reflected = run(sky, setting, light, view, sideways, mirror)
    image = run(look, land, run(mirrored_skyline, land), mirror)
    step = step_at(FARTHEST_ROW, land.distance.shape[2])
    feet, below = land.height[:, :, step : step + 1], 2.0 * land.water - EYE
    distance = number(FARTHEST_ROW, mirror.device)
    trees = run(tree_row, setting, light, ambient, view, feet, land.water, distance, mirror, below)
    return run(
        _shown, setting, light, ambient, horizon, view, land.water, ground, depth, ripple, reflected, image, *trees
    )


def _surface(setting: Setting, view: View, level: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Ripples, and the reflected view ray of each sample: its tangents up and to the side."""
    across, down = view.across, -view.up
    away = (EYE - level) / down.clamp(min=0.012)
    ripple = _ripples(setting, view, across * away, away)
    calm = 0.009 + 0.018 * setting.chance(132)
    mirror = (down + ripple * calm).clamp(min=0.002).contiguous()
    return ripple, mirror, across + ripple * calm * 0.5


def _shown(
    setting: Setting,
    light: Light,
    ambient: torch.Tensor,
    horizon: torch.Tensor,
    view: View,
    level: torch.Tensor,
    ground: torch.Tensor,
    depth: torch.Tensor,
    ripple: torch.Tensor,
    reflected: torch.Tensor,
    image: VisibleLand,
    cover: torch.Tensor,
    colour: torch.Tensor,
) -> torch.Tensor:
    """Composite the ground below, the reflection (sky, land, trees) and glints."""
    across, down = view.across, -view.up
    away = (EYE - level) / down.clamp(min=0.012)
    reflected = reflected + (fog(setting, image.colour, horizon, image.distance) - reflected) * image.land[:, None]
    reflected = reflected + (colour - reflected) * cover[:, None]
    grazing = 1.0 - down.clamp(min=0.0) * torch.rsqrt(down**2 + across**2 + 1.0)
    # Schlick's formula with the fourth power and a raised minimum, so that water seen from above still reflects.
    fresnel = 0.12 + 0.82 * grazing**4
    body = rgb(0.014, 0.050, 0.062, depth) * (ambient * 1.2 + light.lamp * 0.35)
    body = body + (ground * 0.5 - body) * (0.7 * torch.exp(-depth.clamp(min=0.0) * 9.0))[:, None]
    path = torch.exp(-(((across - light.across) / (0.05 + 0.20 * down)) ** 2)) * (1.0 - 0.6 * image.land)
    glint = smoothstep(0.35, 0.9, ripple) * path * (0.45 + 0.45 * smoothstep(1.1, 0.2, light.sun_up.abs()))
    return fog(setting, body + (reflected - body) * fresnel[:, None] + light.lamp * glint[:, None], horizon, away)
