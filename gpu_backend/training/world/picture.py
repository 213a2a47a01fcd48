"""A picture of the world: sky, land, water, trees and grass laid over one another, and developed like a film."""

from dataclasses import dataclass, replace

import torch
from torch.nn.functional import avg_pool2d

from gpu_backend.training.world.factors import FACTORS, Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.look import VisibleLand, fog, look
from gpu_backend.training.world.noise import smoothstep
from gpu_backend.training.world.numbers import number
from gpu_backend.training.world.parts import Run, as_is
from gpu_backend.training.world.sky import air, sky
from gpu_backend.training.world.terrain import Terrain, skyline, step_at, terrain
from gpu_backend.training.world.trees import TREE_ROWS, grass, tree_row
from gpu_backend.training.world.view import View, doubled
from gpu_backend.training.world.water import water


@dataclass(frozen=True)
class Scene:
    """A picture and its segmentation.

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


def _over(picture: torch.Tensor, start: int, stop: int, colour: torch.Tensor, cover: torch.Tensor) -> torch.Tensor:
    """Blend ``colour`` ``(n, 3, W, h)`` over some rows of a picture, or ``(n, W, h)`` over rows of a mask."""
    part = picture[..., start:stop]
    if picture.ndim == 4:
        cover = cover[:, None]
    return torch.cat((picture[..., :start], part + (colour - part) * cover, picture[..., stop:]), -1)


def _halved_land(land: Terrain) -> Terrain:
    """Every other column of the land, for the coarse view."""
    return replace(land, height=land.height[:, ::2], colour=land.colour[:, :, ::2], white=land.white[:, ::2])


def scene(factors: torch.Tensor, seeds: torch.Tensor, resolution: int, run: Run = as_is) -> Scene:
    """Draw pictures with their segmentation; the arguments are the same as of `draw`, on one device."""
    setting = Setting.of(factors, seeds)
    # Four samples a pixel. Small pictures are sampled as finely as the next larger ones, so that both look the same.
    fine = 4 if resolution <= 64 else 2
    samples = resolution * fine
    view, light = View.of(setting, samples), run(Light.of, setting)
    coarse = view.coarse()
    steps = min(max(samples * 5 // 8, 160), 320)
    land = run(terrain, setting, light, view, steps)
    looks = view.up.expand(factors.shape[0], samples, samples).contiguous()
    seen = run(look, land, run(skyline, land), looks)
    horizon, ambient = run(_around, light, view.across)

    # Sky and water are smooth: a quarter of the samples is enough.
    rows, half = view.rows(0.0, 9.0), view.rows(0.0, 9.0).start // 2
    above = run(sky, setting, light, coarse, coarse.across, coarse.up[:, :, half:].clamp(min=0.0))
    picture = run(_land_before_sky, setting, seen, horizon, above, rows.start)

    rows = slice(0, view.rows(-9.0, 0.0).stop)
    depth, wet = run(_flooded, seen, land.water, rows.stop)
    low = replace(coarse, up=coarse.up[..., : rows.stop // 2])
    ground = seen.colour[..., : rows.stop : 2][:, :, ::2]
    surface = water(setting, light, ambient, horizon[:, :, ::2], low, _halved_land(land), ground, depth, run)
    picture = run(_over, picture, rows.start, rows.stop, doubled(surface), wet)
    wet = torch.nn.functional.pad(wet, (0, samples - rows.stop))

    hidden = torch.zeros_like(looks)
    for distance in TREE_ROWS:
        step, place = step_at(distance, steps), number(distance, looks.device)
        rows = view.rows(-1.1 / distance, 1.0 / distance)
        feet = land.height[:, :, step : step + 1]
        trees = run(tree_row, setting, light, ambient, view, feet, land.water, place, view.up[..., rows])
        cover, colour = run(_not_behind, setting, horizon, seen, place, rows.start, rows.stop, *trees)
        picture = run(_over, picture, rows.start, rows.stop, colour, cover)
        hidden = run(_over, hidden, rows.start, rows.stop, torch.ones_like(cover), cover)
    rows = view.rows(-9.0, -0.10)
    cover, colour = grass(setting, light, ambient, view, view.up[..., rows], run)
    picture = run(_over, picture, rows.start, rows.stop, colour, cover)
    hidden = run(_over, hidden, rows.start, rows.stop, torch.ones_like(cover), cover)
    return run(_finished, setting, picture, seen, wet, hidden, fine)


def _around(light: Light, across: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Colour of the sky along the horizon, ``(n, 3, W, 1)``, and the light from everywhere, ``(n, 3, 1, 1)``."""
    nowhere = torch.zeros_like(across[:, :1])
    horizon = air(light, across, nowhere + 0.035, glow=0.12)
    return horizon, 0.8 * air(light, nowhere, nowhere + 0.6) + 0.2 * horizon.mean(2, keepdim=True)


def _land_before_sky(
    setting: Setting, seen: VisibleLand, horizon: torch.Tensor, above: torch.Tensor, start: int
) -> torch.Tensor:
    picture = torch.cat((horizon.expand(-1, -1, -1, start), doubled(above)), 3)
    return picture + (fog(setting, seen.colour, horizon, seen.distance) - picture) * seen.land[:, None]


def _flooded(seen: VisibleLand, level: torch.Tensor, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Depth of the land below the water at every other sample, and which parts of the rows up to ``stop`` are wet."""
    depth = level - seen.height[..., :stop]
    wet = (depth / (0.0035 * seen.distance[..., :stop]) + 0.5).clamp(0.0, 1.0) * seen.land[..., :stop]
    return depth[:, ::2, ::2], wet


def _not_behind(
    setting: Setting,
    horizon: torch.Tensor,
    seen: VisibleLand,
    distance: torch.Tensor,
    start: int,
    stop: int,
    cover: torch.Tensor,
    colour: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cover and colour, seen through the air, of trees at a distance, where no land hides them."""
    land = seen.land[..., start:stop]
    shown = (seen.distance[..., start:stop] > distance * 0.985).float() * land + 1.0 - land
    return cover * shown, fog(setting, colour, horizon, distance.expand_as(cover))


def _finished(
    setting: Setting, picture: torch.Tensor, seen: VisibleLand, wet: torch.Tensor, hidden: torch.Tensor, fine: int
) -> Scene:
    dry = seen.land * (1.0 - wet)
    masks = torch.stack((seen.land, wet * (1.0 - hidden), seen.white * dry * (1.0 - hidden)), 1)
    whole = avg_pool2d(torch.cat((_developed(setting, picture), masks), 1), fine).transpose(2, 3).flip(2)
    return Scene((whole[:, :3] * 2.0 - 1.0).contiguous(), whole[:, 3], whole[:, 4], whole[:, 5])


def _developed(setting: Setting, light: torch.Tensor) -> torch.Tensor:
    """Convert linear light to display values 0..1: white balance, exposure, filmic tone curve, sRGB.

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
