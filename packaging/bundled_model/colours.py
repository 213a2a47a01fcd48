"""toRGB: which colour each shape adds, and which controls move it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bundled_model.layers import GAIN, Array, Style
from bundled_model.palette import AXES, palette_axes
from bundled_model.scene import EDGE, FLAT, HILLS, LIFT, SHAPES

COLOUR_STEP = 1.0
"""How far one standard deviation of a colour control moves a style."""


def added_colours(palette: Array) -> dict[str, Array]:
    """Return what each shape adds to what stands behind it, from a palette (parts, 3) or from one axis of it."""
    top, horizon, ring, sun, *hills = palette
    middle = 0.45 * top + 0.55 * horizon
    added = {"flat": top, "dusk": horizon - top, "ring": ring - middle, "sun": sun - ring}
    behind = horizon + sun - middle
    for k in range(HILLS):
        added[f"hill{k}"] = hills[k] - behind
        behind = hills[k] + FLAT * MIST[k] * (horizon - hills[k]) * MIST_SHARE
    return added


def picture_layer(resolution: int, names: list[str]) -> tuple[Array, Array, Mapping[str, Style]]:
    """Return weight (3, channels), bias (3,) and styles of the toRGB at `resolution`; all zero below 64."""
    weight = np.zeros((3, len(names)))
    styles: dict[str, Style] = {}
    scale = np.sqrt(len(names))
    mean, axes = palette_axes()

    def add(name: str, colour: Array, style: Style) -> None:
        weight[:, names.index(name)] += scale * colour
        styles[name] = style

    if resolution < 64:
        return weight, np.zeros(3), {name: Style(0.0) for name in names}
    for copy in range(AXES + 1 if resolution < 256 else 2):
        added = added_colours(mean if copy == 0 else axes[copy - 1])
        style = Style(1.0) if copy == 0 else Style(0.0, {f"colour {copy}": COLOUR_STEP})
        size = 1.0 if copy == 0 else 1.0 / COLOUR_STEP
        if resolution == 64:
            add(f"flat.{copy}", size * added["flat"] / FLAT, style)
            add(f"dusk.{copy}", size * added["dusk"] / FLAT, style)
            for shape in SHAPES:
                add(f"{shape}.{copy}", size * added[shape] / FLAT, style)
        else:
            unit = size / (FLAT * LIFT * GAIN)
            for shape in SHAPES:
                add(f"{shape}.more{copy}", unit * added[shape], style)
            add(f"flat.more{copy}", unit * added["flat"], style)
            if copy < (1 if resolution == 256 else 2):
                edge = size * added["dusk"] / (3.0 * FLAT * EDGE[resolution])
                add(f"dusk.whole{copy}", edge, style)
                add(f"dusk.inner{copy}", -edge, style)
            lifted = sum((added[shape] for shape in SHAPES), added["flat"])
            add(f"flat.{copy}", -unit * LIFT * GAIN * lifted, style)
    if resolution == 64:
        top, horizon, _ring, sun, *hills = mean
        for k in range(HILLS):
            add(f"mist{k}", MIST[k] * (horizon - hills[k]), Style(1.0, {"mist": 0.35}))
        add("glow", GLOW_LIGHT * (sun - top), Style(1.0, {"glow": 0.4}))
    return weight, np.zeros(3), styles


MIST = (0.14, 0.10, 0.06, 0.03)
GLOW_LIGHT = 0.06
MIST_SHARE = 0.8
