"""A picture of the world: sky, land, water, trees and grass laid over one another, and developed like a film."""

from dataclasses import dataclass, replace

import torch
from torch.nn.functional import avg_pool2d

from gpu_backend.training.world.factors import FACTORS, Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.look import fog, look
from gpu_backend.training.world.noise import smoothstep
from gpu_backend.training.world.sky import air, sky
from gpu_backend.training.world.terrain import Terrain, skyline, step_at, terrain
from gpu_backend.training.world.trees import TREE_ROWS, grass, tree_row
from gpu_backend.training.world.view import View, doubled
from gpu_backend.training.world.water import water


@dataclass(frozen=True)
class Scene:
    """A picture and what of it is what.

    Parameters
    ----------
    picture : torch.Tensor
        ``(n, 3, R, R) float32`` in -1..1.
    land, water, snow : torch.Tensor
        ``(n, R, R)``: share of each pixel that shows it.
    """

    picture: torch.Tensor
    land: torch.Tensor
    water: torch.Tensor
    snow: torch.Tensor


def _over(picture: torch.Tensor, rows: slice, colour: torch.Tensor, cover: torch.Tensor) -> torch.Tensor:
    """Lay ``colour`` ``(n, 3, W, h)`` over some rows of a picture, or ``(n, W, h)`` over those of a mask."""
    part = picture[..., rows]
    if picture.ndim == 4:
        cover = cover[:, None]
    return torch.cat((picture[..., : rows.start], part + (colour - part) * cover, picture[..., rows.stop :]), -1)


def _halved_land(land: Terrain) -> Terrain:
    """Every other column of the land, for the coarse view."""
    return replace(land, height=land.height[:, ::2], colour=land.colour[:, :, ::2], white=land.white[:, ::2])


def scene(factors: torch.Tensor, seeds: torch.Tensor, resolution: int) -> Scene:
    """Draw pictures and say what is where; the arguments are those of `draw`, on one device."""
    setting = Setting.of(factors, seeds)
    # Four samples a pixel; small pictures are sampled as finely as the next larger ones, so that they look alike.
    fine = 4 if resolution <= 64 else 2
    samples = resolution * fine
    view, light = View.of(setting, samples), Light.of(setting)
    coarse = view.coarse()
    steps = min(max(samples * 5 // 8, 160), 320)
    land = terrain(setting, light, view, steps)
    count, nowhere = factors.shape[0], torch.zeros_like(view.across[:, :1])
    looks = view.up.expand(count, samples, samples).contiguous()
    seen = look(land, skyline(land), looks)
    horizon = air(light, view.across, nowhere + 0.035, glow=0.12)
    ambient = 0.8 * air(light, nowhere, nowhere + 0.6) + 0.2 * horizon.mean(2, keepdim=True)

    # Sky and water are smooth: a quarter of the samples does.
    rows, half = view.rows(0.0, 9.0), view.rows(0.0, 9.0).start // 2
    above = sky(setting, light, coarse, coarse.across, coarse.up[:, :, half:].clamp(min=0.0))
    picture = torch.cat((horizon.expand(-1, -1, -1, rows.start), doubled(above)), 3)
    picture = picture + (fog(setting, seen.colour, horizon, seen.distance) - picture) * seen.land[:, None]

    rows = slice(0, view.rows(-9.0, 0.0).stop)
    depth = (land.water - seen.height)[..., rows]
    wet = (depth / (0.0035 * seen.distance[..., rows]) + 0.5).clamp(0.0, 1.0) * seen.land[..., rows]
    low = replace(coarse, up=coarse.up[..., : rows.stop // 2])
    ground, depth = seen.colour[..., : rows.stop : 2][:, :, ::2], depth[:, ::2, ::2]
    surface = water(setting, light, ambient, horizon[:, :, ::2], low, _halved_land(land), ground, depth)
    picture = _over(picture, rows, doubled(surface), wet)
    wet = torch.nn.functional.pad(wet, (0, samples - rows.stop))

    hidden = torch.zeros_like(looks)
    for distance in TREE_ROWS:
        step = step_at(distance, steps)
        rows = view.rows(-1.1 / distance, 1.0 / distance)
        feet = land.height[:, :, step : step + 1]
        cover, colour = tree_row(setting, light, ambient, view, feet, land.water, distance, view.up[..., rows])
        behind = (seen.distance > distance * 0.985).float() * seen.land + 1.0 - seen.land
        cover = cover * behind[..., rows]
        picture = _over(picture, rows, fog(setting, colour, horizon, torch.full_like(cover, distance)), cover)
        hidden = _over(hidden, rows, torch.ones_like(cover), cover)
    rows = view.rows(-9.0, -0.10)
    cover, colour = grass(setting, light, ambient, view, view.up[..., rows])
    picture = _over(picture, rows, colour, cover)
    hidden = _over(hidden, rows, torch.ones_like(cover), cover)

    dry = seen.land * (1.0 - wet)
    masks = torch.stack((seen.land, wet * (1.0 - hidden), seen.white * dry * (1.0 - hidden)), 1)
    whole = avg_pool2d(torch.cat((_developed(setting, picture), masks), 1), fine).transpose(2, 3).flip(2)
    return Scene((whole[:, :3] * 2.0 - 1.0).contiguous(), whole[:, 3], whole[:, 4], whole[:, 5])


def _developed(setting: Setting, light: torch.Tensor) -> torch.Tensor:
    """From linear light to values 0..1 for a screen: white balance, exposure, a film's curve, sRGB.

    The curve is Narkowicz's fit of the ACES film (2016), softened at its shoulder.
    """
    balance = torch.exp(setting.warmth[:, None] * rgb(0.22, 0.02, -0.26, light))
    adapted = 1.0 + 1.1 * smoothstep(0.15, -0.2, setting.sun_height)
    light = light * balance * (torch.exp2(0.9 * setting.exposure) * 0.60 * adapted)[:, None]
    film = (light * (2.51 * light + 0.03)) / (light * (2.43 * light + 0.59) + 0.14)
    film = film.clamp(0.0, 1.0)
    return torch.where(film < 0.0031308, film * 12.92, 1.055 * film.clamp(min=1e-6) ** (1.0 / 2.4) - 0.055)


def draw(factors: torch.Tensor, seeds: torch.Tensor, resolution: int, *, device: torch.device | str) -> torch.Tensor:
    """Draw landscapes.

    Parameters
    ----------
    factors : torch.Tensor
        ``(n, len(FACTORS))``, each in its factor's range.
    seeds : torch.Tensor
        ``(n,)`` whole numbers: ridges, clouds and trees of each picture.
    resolution : int
        Width and height.
    device : torch.device or str
        Where to draw.

    Returns
    -------
    torch.Tensor
        ``(n, 3, resolution, resolution) float32`` in -1..1 on ``device``. The same arguments give the same pictures.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    if factors.ndim != 2 or factors.shape[1] != len(FACTORS) or seeds.shape != factors.shape[:1]:
        raise ValueError(
            f"Expected factors (n, {len(FACTORS)}) and seeds (n,), got {tuple(factors.shape)} and {tuple(seeds.shape)}."
        )
    with torch.no_grad():
        return scene(factors.to(device), seeds.to(device, torch.int64), resolution).picture
