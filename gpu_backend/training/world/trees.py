"""Trees on the land, and grass in the foreground."""

import torch

from gpu_backend.training.world.factors import Setting
from gpu_backend.training.world.light import Light, rgb
from gpu_backend.training.world.noise import gradient_noise, hashed, line_noise, smoothstep
from gpu_backend.training.world.numbers import number, numbers
from gpu_backend.training.world.parts import Run, as_is
from gpu_backend.training.world.terrain import vegetation, winter
from gpu_backend.training.world.view import EYE, View

#: Distances of the rows of trees, from far to near.
TREE_ROWS = (5.6, 3.7, 2.05)
FARTHEST_ROW = TREE_ROWS[0]
GRASS_ROWS = 3


def tree_row(
    setting: Setting,
    light: Light,
    ambient: torch.Tensor,
    view: View,
    ground: torch.Tensor,
    water: torch.Tensor,
    distance: torch.Tensor,
    up: torch.Tensor,
    eye: torch.Tensor | float = EYE,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One row of trees at one distance.

    Parameters
    ----------
    ground : torch.Tensor
        ``(n, W, 1)``: heights of the land at this distance.
    distance : torch.Tensor
        ``()``: one of `TREE_ROWS`.
    up : torch.Tensor
        ``(n, 1 or W, H)``: where to look.
    eye : torch.Tensor or float
        Height of the eye: its mirror image's for a reflection.

    Returns
    -------
    tuple of torch.Tensor
        What the trees cover, ``(n, W, H)`` 0..1, and their colour, ``(n, 3, W, H)`` linear.
    """
    keys, salt = setting.seeds, 200 + torch.round(distance * 10.0).to(torch.int64)
    across, columns = view.across, view.across.shape[1]
    room = 0.34 / distance
    cold = winter(setting)
    _, leaves = vegetation(setting)
    offset = 97.0 * setting.chance(salt)
    cell = torch.floor(across / room + offset)
    rough = gradient_noise(across * (16.0 * distance) + offset, up * (16.0 * distance), keys, salt + 1)
    rough = rough + 0.6 * gradient_noise(across * (41.0 * distance), up * (41.0 * distance), keys, salt + 2)
    conifers = smoothstep(0.2, 0.8, setting.chance(salt + 3)) * 1.2 - 0.1
    covered = torch.zeros_like(rough)
    colour = torch.zeros_like(rough)[:, None].expand(-1, 3, -1, -1)
    right, high, _ = light.slope
    # The trees in this place and on both sides of it, (n, 3, W, 1): all that does not change along a trunk.
    beside = numbers((-1.0, 1.0, 0.0), across.device)[None, :, None, None]
    mine, each = cell[:, None] + beside, keys[:, None]
    name = mine.to(torch.int32)
    centres = (mine + 0.5 - offset[:, None] + (hashed(name, each, salt + 4) - 0.5) * 0.8) * room
    column = ((centres / (view.pitch * columns) + 0.5) * columns).to(torch.int64).clamp(0, columns - 1)
    feet = torch.gather(ground[:, None].expand(-1, 3, -1, -1), 2, column)
    clump = 0.5 + 0.5 * line_noise(centres * distance * 0.55, each, salt + 5)
    frame = torch.where(distance < 3.0, 0.55 + 0.45 * smoothstep(0.05, 0.5, centres.abs()), 1.0)
    demand = setting.tree_density[:, None] * (0.45 + 1.1 * clump) * frame
    growth = smoothstep(0.0, 0.16, demand - hashed(name, each, salt + 6)) * smoothstep(
        0.02, 0.06, feet - water[:, None]
    )
    sizes = (0.34 + 0.42 * hashed(name, each, salt + 7)) * (0.35 + 0.65 * growth) / distance
    kinds = smoothstep(0.45, 0.55, conifers[:, None] + 0.4 * (hashed(name, each, salt + 8) - 0.5))
    hues = hashed(name, each, salt + 9) - 0.5
    trees = zip(*(value.unbind(1) for value in (centres, feet, sizes, growth, kinds, hues)), strict=True)
    for centre, foot, size, grown, pointed, hue in trees:
        aside = (across - centre) / size
        rise = (up - (foot - eye) / distance) / size + 0.01
        tier = rise * 8.0 + aside.abs() * 3.0
        tier = tier - tier.floor()
        cone = 0.21 * (1.02 - rise) * (1.05 - 0.42 * tier) - aside.abs() + 0.035 * rough
        cone = torch.where(rise > 0.07, cone, -1.0)
        crown = 1.0 - torch.sqrt((aside / 0.36) ** 2 + ((rise - 0.62) / 0.37) ** 2 + 1e-6)
        crown = (crown + (0.42 + 0.5 * cold) * rough - 0.28 * cold) * 0.34
        trunk = 0.022 * (1.25 - rise) + 0.004 * rough - aside.abs()
        trunk = torch.where((rise > 0.0) & (rise < 0.7), trunk, -1.0)
        body = crown + (cone - crown) * pointed
        sharp = size / view.pitch
        leaf = (body * sharp + 0.5).clamp(0.0, 1.0)
        shape = torch.maximum(leaf, (trunk * sharp + 0.5).clamp(0.0, 1.0)) * grown
        lit = (0.42 + 1.5 * right * aside + high * (0.75 * rise - 0.30) + 0.30 * rough).clamp(0.04, 1.1)
        green = leaves * torch.exp(hue[:, None] * rgb(0.5, 0.75, 0.2, rough))
        needle = rgb(0.030, 0.062, 0.034, rough) * torch.exp(hue[:, None] * 0.6)
        snowy = (cold * smoothstep(-0.1, 0.5, rough + 0.5 * lit))[:, None] * rgb(0.7, 0.75, 0.82, rough)
        tree = green + (needle + snowy * 0.6 - green) * pointed[:, None]
        tree = rgb(0.045, 0.036, 0.030, rough) + (tree - rgb(0.045, 0.036, 0.030, rough)) * leaf[:, None]
        tree = tree * (light.lamp * lit[:, None] + ambient)
        colour = colour + (tree - colour) * shape[:, None]
        covered = covered + (1.0 - covered) * shape
    return covered, colour / covered[:, None].clamp(min=1e-3)


def grass(
    setting: Setting, light: Light, ambient: torch.Tensor, view: View, up: torch.Tensor, run: Run = as_is
) -> tuple[torch.Tensor, torch.Tensor]:
    """Grass in the foreground: cover ``(n, W, H)`` and colour ``(n, 3, W, H)`` for the rows ``up`` ``(n, 1, H)``."""
    covered = torch.zeros_like(view.across * up)
    colour = torch.zeros_like(covered)[:, None].expand(-1, 3, -1, -1).contiguous()
    for row in range(GRASS_ROWS):
        which = number(float(row), up.device)
        covered, colour = run(_blades, setting, light, ambient, view, up, which, covered, colour)
    return covered, colour / covered[:, None].clamp(min=1e-3)


def _blades(
    setting: Setting,
    light: Light,
    ambient: torch.Tensor,
    view: View,
    up: torch.Tensor,
    row: torch.Tensor,
    covered: torch.Tensor,
    colour: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """A row of trees, ``()`` from 0, behind the existing rows; colours are weighted by their cover."""
    keys, across = setting.seeds, view.across
    meadow, _ = vegetation(setting)
    cold = winter(setting)
    bottom = view.up[:, :, :1]
    lean = (setting.chance(90) - 0.5) * 0.9
    tilt = (setting.chance(91) - 0.5) * 0.10
    base = bottom - 0.09 + setting.foreground * (0.185 + tilt * across + 0.05 * line_noise(across * 2.2, keys, 92))
    salt = 100 + 20 * row.to(torch.int64)
    room = 0.017 * torch.exp2(0.4785 * row)
    offset = 31.0 * setting.chance(salt)
    cell = torch.floor(across / room + offset)
    low = base - 0.022 * row
    beside = numbers((-2.0, 2.0, -1.0, 1.0, 0.0), across.device)[None, :, None, None]
    mine, each = cell[:, None] + beside, keys[:, None]
    name = mine.to(torch.int32)
    roots = (mine + hashed(name, each, salt + 1) - offset[:, None]) * room
    lengths = (0.05 + 0.12 * hashed(name, each, salt + 2) ** 2) * (0.25 + 0.9 * setting.foreground[:, None])
    lengths = lengths * (0.7 + 0.5 * line_noise(roots * 4.0, each, salt + 3)) * (1.0 + 0.25 * row)
    bends = (hashed(name, each, salt + 4) - 0.5 + 0.6 * lean[:, None]) * 0.55
    hues = hashed(name, each, salt + 5) - 0.5
    for root, length, bend, hue in zip(*(value.unbind(1) for value in (roots, lengths, bends, hues)), strict=True):
        rise = (up - low) / length
        centre = root + bend * length * rise.clamp(min=0.0) ** 2
        wide = (0.0030 + 0.0014 * row) * (1.0 - rise.clamp(0.0, 1.0) ** 2)
        blade = ((wide - (across - centre).abs()) / view.pitch + 0.5).clamp(0.0, 1.0)
        blade = blade * smoothstep(1.0, 0.97, rise) * smoothstep(0.0, 0.2, setting.foreground)
        shade = (0.25 + 0.75 * rise.clamp(0.0, 1.0)) * (0.85 - 0.16 * row)
        green = meadow * torch.exp(hue[:, None] * rgb(0.9, 0.5, 0.3, covered)) * (1.0 - 0.45 * cold)[:, None]
        leaf = green * (light.lamp * 0.55 + ambient) * shade[:, None]
        colour = colour + (leaf - colour) * blade[:, None]
        covered = covered + (1.0 - covered) * blade
    ground = ((low - up) / view.pitch + 0.5).clamp(0.0, 1.0)
    dark = meadow * (light.lamp * 0.30 + ambient * 0.6) * 0.5
    colour = colour + (dark - colour) * (ground * (1.0 - covered))[:, None]
    return torch.maximum(covered, ground), colour
