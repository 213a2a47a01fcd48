"""The land: a height field in perspective, lit, with snow, woods and meadows."""

import math
from dataclasses import dataclass

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.noise import fractal, gradient_noise, line_noise, ridged, smoothstep
from gpu_backend.training.world.sky import air
from gpu_backend.training.world.view import EYE, View

_NEAREST, _MIDDLE, _FARTHEST = 0.7, 6.0, 36.0


# Share of the steps that lies before _MIDDLE: the mountains are looked at more densely.
_NEAR_SHARE = 0.34


def distances(steps: int, device: torch.device) -> torch.Tensor:
    """Sampled distances ``(1, 1, steps)``: geometric up to a middle distance, with another ratio beyond."""
    share = torch.linspace(0.0, 1.0, steps, device=device)[None, None]
    near = share / _NEAR_SHARE * math.log(_MIDDLE / _NEAREST) + math.log(_NEAREST)
    far = (share - _NEAR_SHARE) / (1.0 - _NEAR_SHARE) * math.log(_FARTHEST / _MIDDLE) + math.log(_MIDDLE)
    return torch.exp(torch.where(share < _NEAR_SHARE, near, far))


def step_at(distance: float, steps: int) -> int:
    """The step nearest to a distance that lies before the middle."""
    return round(_NEAR_SHARE * math.log(distance / _NEAREST) / math.log(_MIDDLE / _NEAREST) * (steps - 1))


@dataclass(frozen=True)
class Terrain:
    """The land along the rays of every column, from near to far.

    Parameters
    ----------
    distance : torch.Tensor
        ``(1, 1, K)``.
    height : torch.Tensor
        ``(n, W, K)`` above the valley's floor, without water.
    water : torch.Tensor
        ``(n, 1, 1)``: height of the water.
    colour : torch.Tensor
        ``(n, 3, W, K)`` linear, lit, without the air before it.
    white : torch.Tensor
        ``(n, W, K)``: share of snow.
    """

    distance: torch.Tensor
    height: torch.Tensor
    water: torch.Tensor
    colour: torch.Tensor
    white: torch.Tensor


def _relief(setting: Setting, x: torch.Tensor, z: torch.Tensor, across: torch.Tensor, pitch: float) -> torch.Tensor:
    """Heights at places ``x``, ``z``: a bank, a valley, hills and mountains behind it."""
    keys, chance = setting.seeds, setting.chance
    footprint = z * max(pitch, 0.004)
    tilt = chance(11) * 2.0 - 1.0
    roll = line_noise(across * 2.6 + 5.0, keys, 12)
    bank = (0.04 + 0.26 * setting.foreground) * (1.0 + 0.45 * tilt * across + 0.3 * roll)
    bank = bank * (1.0 - smoothstep(1.0, 3.0, z * (1.0 + 0.22 * roll)))
    swell = fractal(x * 0.24, z * 0.24, keys, 40, 5, footprint * 0.24, 0.46)
    floor = -0.12 + 0.42 * swell * smoothstep(1.5, 5.0, z)
    hills = smoothstep(4.5, 11.0, z) * (0.9 + 1.5 * gradient_noise(x * 0.22, z * 0.22, keys, 47)).clamp(min=0.1)
    focus = (chance(13) - 0.5) * 0.9
    valley = 0.40 + 0.60 * smoothstep(0.0, 0.55, (across - focus).abs())
    rise = smoothstep(5.5, 17.0, z) * (0.80 + 0.45 * smoothstep(18.0, 34.0, z))
    gain = 0.32 + 0.12 * setting.ruggedness
    bend = gradient_noise(x * 0.13 + 4.0, z * 0.13, keys, 48) * 1.1
    scale = 0.105
    # Steps of distance are coarser than columns: octaves finer than those would stand up as pillars.
    coarse = z * max(2.0 * pitch, 0.009) * scale
    crest = ridged(x * scale + bend * 0.35, z * scale + bend * 0.2, keys, 50, 8, coarse, gain)
    smooth = 0.42 + 0.42 * fractal(x * 0.12, z * 0.12, keys, 60, 3)
    shape = smooth + (crest - smooth) * (0.15 + 0.85 * smoothstep(0.0, 0.7, setting.ruggedness))
    tall = 2.2 + 17.0 * setting.mountain_height
    return bank + floor + hills * 0.6 + rise * valley * tall * shape.clamp(min=0.0)


def _shadow(height: torch.Tensor, distance: torch.Tensor, light: Light, pitch: float, columns: int) -> torch.Tensor:
    """Height by which neighbouring land blocks the light at each place; ``(n, W, K)``, 0 in full light."""
    right, up, _ = light.slope
    climb = up / right.abs().clamp(min=0.12)
    deepest = torch.zeros_like(height)
    for part in (0.012, 0.025, 0.05, 0.09, 0.15, 0.24):
        shift = max(1, round(part * columns))
        run = distance * (shift * pitch)
        from_right = torch.cat((height[:, shift:], height[:, -1:].expand(-1, shift, -1)), 1)
        from_left = torch.cat((height[:, :1].expand(-1, shift, -1), height[:, :-shift]), 1)
        beside = torch.where(right > 0.0, from_right, from_left)
        deepest = torch.maximum(deepest, (beside - height - run * climb) / (run + 0.15))
    return deepest * smoothstep(0.05, 0.35, right.abs())


def terrain(setting: Setting, light: Light, view: View, steps: int) -> Terrain:
    """Compute the land's heights and its lighting."""
    keys = setting.seeds
    across, pitch = view.across, view.pitch
    z = distances(steps, across.device)
    x = across * z + 50.0 * setting.chance(10)
    height = _relief(setting, x, z, across, pitch)
    water = -0.50 + 0.72 * setting.water_level
    tree_line = 0.35 + 0.30 * setting.mountain_height * 4.0
    patches = fractal(x * 0.5, z * 0.5, keys, 70, 3, z * (pitch * 0.5))
    belt = smoothstep(0.5, -0.3, (height - tree_line) / (0.6 + tree_line) - 0.35 * patches)
    dry = smoothstep(0.02, 0.16, height - water)
    wood = (
        smoothstep(0.62, 0.30, 1.0 - setting.tree_density + 0.55 * patches - 0.1) * belt * dry * smoothstep(4.0, 8.0, z)
    )
    tips = gradient_noise(across * (0.36 / max(pitch, 0.0029)) * 0.75, z * 2.6, keys, 75)
    height = height + wood * (0.05 + 0.16 * tips.abs())

    along = torch.gradient(height, dim=1)[0] / (pitch * z)
    apart = torch.gradient(z, dim=2)[0]
    into = torch.gradient(height, dim=2)[0] / apart - across * along
    norm = torch.rsqrt(along**2 + into**2 + 1.0)
    right, up, away = light.slope
    facing = ((up - right * along - away * into) * norm).clamp(min=0.0)
    facing = facing * (1.0 - smoothstep(0.0, 0.5, _shadow(height, z, light, pitch, across.shape[1])))
    open_sky = 0.55 + 0.45 * norm

    colour, white = _materials(setting, height, norm, x, z, wood, tips, patches, water, pitch)
    above = air(light, across[:, :1] * 0.0, across[:, :1] * 0.0 + 0.7)
    glow = air(light, light.across, across[:, :1] * 0.0 + 0.08)
    ambient = above * 0.55 + glow * 0.15
    lit = colour * (light.lamp * facing[:, None] + ambient * open_sky[:, None])
    return Terrain(z, height, water, lit, white)


def vegetation(setting: Setting) -> tuple[torch.Tensor, torch.Tensor]:
    """Colours of meadows and of leaves in this season, ``(n, 3, 1, 1)`` linear."""
    season = setting.season[:, None]

    def through(*stops: tuple[float, float, float]) -> torch.Tensor:
        colour = rgb(*stops[0], like=season)
        for index, stop in enumerate(stops[1:]):
            share = smoothstep(index / 3.0 + 0.02, (index + 1) / 3.0 - 0.02, season)
            colour = colour + (rgb(*stop, like=season) - colour) * share
        return colour

    meadow = through((0.40, 0.43, 0.47), (0.095, 0.185, 0.030), (0.125, 0.150, 0.030), (0.26, 0.135, 0.030))
    leaves = through((0.12, 0.11, 0.11), (0.085, 0.21, 0.03), (0.045, 0.115, 0.022), (0.42, 0.12, 0.018))
    return meadow, leaves


def winter(setting: Setting) -> torch.Tensor:
    """Uniform snow cover of the season; ``(n, 1, 1)``."""
    return smoothstep(0.27, 0.03, setting.season)


def _materials(
    setting: Setting,
    height: torch.Tensor,
    norm: torch.Tensor,
    x: torch.Tensor,
    z: torch.Tensor,
    wood: torch.Tensor,
    tips: torch.Tensor,
    patches: torch.Tensor,
    water: torch.Tensor,
    pitch: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Colours ``(n, 3, W, K)`` before light, and the share of snow."""
    keys = setting.seeds
    meadow, leaves = vegetation(setting)
    cold = winter(setting)
    grain = fractal(x * 1.6, z * 1.6, keys, 80, 4, z * (pitch * 1.6), 0.55)
    strata = 0.5 + 0.5 * grain
    warm_rock, cool_rock = rgb(0.22, 0.175, 0.14, x), rgb(0.125, 0.135, 0.155, x)
    rock = cool_rock + (warm_rock - cool_rock) * setting.chance(14)[:, None]
    rock = rock * (0.72 + 0.5 * strata)[:, None]
    grass = meadow * (0.80 + 0.42 * patches + 0.22 * grain).clamp(min=0.3)[:, None]
    alp = smoothstep(2.6 + 2.0 * setting.mountain_height, 0.8, height + 0.9 * patches + 0.5 * grain)
    # Tufts, and in spring and summer flowers among them, close enough to be distinguished.
    near = smoothstep(7.0, 2.0, z)
    tuft = gradient_noise(x * 9.0, z * 5.0, keys, 86) * smoothstep(5.0, 1.5, z) + 0.8 * grain
    grass = grass * (1.0 + 0.30 * tuft * near)[:, None]
    blooms = smoothstep(0.30, 0.45, setting.season) * smoothstep(0.78, 0.60, setting.season)
    blooms = blooms + 0.8 * smoothstep(0.2, 0.33, setting.season) * smoothstep(0.5, 0.36, setting.season)
    spot = smoothstep(0.42, 0.60, gradient_noise(x * 13.0, z * 9.0, keys, 87)) * smoothstep(-0.05, 0.35, patches)
    petal = (
        rgb(0.75, 0.60, 0.10, x) + (rgb(0.55, 0.16, 0.42, x) - rgb(0.75, 0.60, 0.10, x)) * setting.chance(16)[:, None]
    )
    grass = grass + (petal - grass) * (spot * blooms * smoothstep(4.5, 2.0, z))[:, None]
    flat = smoothstep(0.52, 0.78, norm + 0.10 * grain)
    ground = rock + (grass - rock) * (alp * flat)[:, None]
    needles = rgb(0.028, 0.058, 0.030, x) * (1.0 - cold)[:, None] + rgb(0.07, 0.09, 0.10, x) * cold[:, None]
    crowns = needles + (leaves - needles) * (0.25 + 0.5 * setting.chance(15))[:, None]
    crowns = crowns * (0.55 + 0.7 * tips.abs())[:, None]
    ground = ground + (crowns - ground) * wood[:, None]
    shore = smoothstep(0.10, 0.0, height - water) * smoothstep(1.5, 3.0, z)
    ground = ground + (rgb(0.26, 0.23, 0.18, x) - ground) * (shore * 0.6)[:, None]
    line = 0.6 + setting.snow_line * (1.6 + 6.6 * setting.mountain_height)
    holds = smoothstep(0.30, 0.62, norm + 0.16 * grain)
    high = smoothstep(-0.35, 0.35, height - line + 0.5 * patches + 0.5 * grain) * holds
    low = cold * (0.35 + 0.65 * holds) * smoothstep(0.0, 0.05, height - water)
    white = torch.maximum(high, low) * (1.0 - 0.72 * wood)
    snow = rgb(0.66, 0.71, 0.78, x) * (0.92 + 0.10 * grain)[:, None]
    return ground + (snow - ground) * white[:, None], white


def skyline(land: Terrain) -> torch.Tensor:
    """The highest tangent that land and water up to each distance reach; ``(n, W, K)``."""
    return torch.cummax((torch.maximum(land.height, land.water) - EYE) / land.distance, 2).values


def mirrored_skyline(land: Terrain) -> torch.Tensor:
    """The same for the land's image in the water, upside down; ``(n, W, K)``.

    A level mirror shows what an eye as far below it would see. The near bank is before the mirror and has no image.
    """
    rise = (land.height + EYE - 2.0 * land.water) / land.distance
    seen = (land.height > land.water) & (land.distance > 3.4)
    return torch.cummax(torch.where(seen, rise, -1.0), 2).values
