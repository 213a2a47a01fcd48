"""toRGB: which colour each shape adds, and which controls move it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bundled_model.layers import GAIN, Array, Style
from bundled_model.palette import AXES, palette_axes
from bundled_model.scene import EDGE, FLAT, HILLS, LIFT, SHAPES

COLOUR_STEP = 0.6
"""How far one standard deviation of a colour control moves a style."""

MIST = (0.14, 0.10, 0.06, 0.03)
"""How far each hill fades towards the horizon's colour below its ridge, over FLAT."""
MIST_SHARE = 0.8
"""How much of that is there where the next hill begins."""
GLOW_LIGHT = 0.06


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
    for copy in range(AXES + 1):
        added = added_colours(mean if copy == 0 else axes[copy - 1])
        style = Style(1.0) if copy == 0 else Style(0.0, {f"colour {copy}": COLOUR_STEP})
        size = 1.0 if copy == 0 else 1.0 / COLOUR_STEP
        if resolution == 64:
            for name in ("flat", "dusk", *SHAPES):
                add(f"{name}.{copy}", size * added[name] / FLAT, style)
            continue
        unit = size / (FLAT * LIFT * GAIN)
        sharp = [name for name in ("flat", *SHAPES) if f"{name}.more{copy}" in names]
        for name in sharp:
            add(f"{name}.more{copy}", unit * added[name], style)
        if sharp:
            if copy == 0:
                style = Style(1.0, {f"exposure {resolution}": 0.012})
            add(f"flat.{copy}", -size / FLAT * np.sum([added[name] for name in sharp], axis=0), style)
        if copy == 0:
            edge = added["dusk"] / (3.0 * FLAT * EDGE[resolution])
            add("dusk.whole0", edge, Style(1.0))
            add("dusk.inner0", -edge, Style(1.0))
    if resolution == 64:
        top, horizon, _ring, sun, *hills = mean
        for k in range(HILLS):
            add(f"mist{k}", MIST[k] * (horizon - hills[k]), Style(1.0, {"mist": 0.35}))
        add("glow", GLOW_LIGHT * (sun - top), Style(1.0, {"glow": 0.4}))
    return weight, np.zeros(3), styles
