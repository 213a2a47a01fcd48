"""The scene: four ridges in front of a sky with a sun, drawn by the layers of a StyleGAN2.

Coordinates are x to the right and y downwards, -1 .. 1. A hill is where its field g is positive: g = y minus the
height of its ridge, which is a smooth wave plus tents, each folded out of the last one at twice the resolution (the
way Takagi's curve is made). The sun is where radius - distance is positive. Until 64 x 64 all fields are homogeneous
of degree one in the constant, so that the loss at the zero-padded borders leaves their zero lines where they are;
there they are clamped into flat shapes, sharpened again at each doubling of the resolution.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bundled_model.layers import BOX, GAIN, NULL, POINT, SOFT, Array, Layer, Style, Term, through
from bundled_model.palette import AXES

HILLS = 4
HEIGHTS = (-0.03, 0.16, 0.34, 0.5)
"""Height of each ridge in y, the farthest first."""

WAVES = 3
RAYS = 6
SIDES = np.array([1.6, 1.0, 1.0, 1.6])
"""The constant is brighter at the sides, because the zero-padded border takes light away there."""
CLAMP = 2.0
FLAT = CLAMP
SHAPES = ("ring", "sun", *(f"hill{k}" for k in range(HILLS)))
SUN, RING, GLOW = 0.10, 0.16, 0.5
WIDE = 8.0
"""Directions are ranked by how far they move styles: this lets a ridge weigh about as much as a colour."""
OLD, LIFT = 0.35, 0.3
LEVEL = 0.14
"""Where in a soft edge the sharp one is put, of FLAT."""
LEAK = 0.2 * GAIN * LEVEL * SOFT.sum() / math.sqrt(np.square(SOFT).sum() * (1.0 + LEVEL**2))
SHARE = 1.0 / (1.0 + LEAK)
"""A sharpened shape goes from -LEAK to 1, of FLAT; this brings it back to 0 .. 1."""
DUSK_OLD = {128: 0.35, 256: 0.1}
EDGE = {128: 0.18, 256: 0.12}
EACH = 0.9999 / (3.0 * math.sqrt(len(SHAPES)))
WIDTHS = {4: 48, 8: 48, 16: 48, 32: 48, 64: 48, 128: 32, 256: 16}
SHARP = {128: (SHAPES, SHAPES, SHAPES), 256: (SHAPES, SHAPES[2:])}
"""Shapes that are sharpened in the mean colours, then along the first, second ... axis of the palette."""


def constant(rng: np.random.Generator) -> tuple[list[str], Array]:
    """Return names and values (width, 4, 4) of the learned constant."""
    level = np.ones((4, 4))
    x, y = level * _controls(lambda t: t, sides=True), level * _controls(lambda t: t)[:, None]
    fields: dict[str, Array] = {"one": np.ones((4, 4)), "y": y, "x.sun": x, "y.sun": y}
    # More than the border takes away at the sides and, behind the hills, at the bottom.
    fields["dusk"] = np.outer([0.05, 0.38, 0.8, 2.0], [1.0, 1.0, 1.0, 1.0])
    fields |= {"one.x": np.ones((4, 4)), "one.y": np.ones((4, 4))}
    for k in range(HILLS):
        fields[f"one.{k}"] = np.ones((4, 4))
        for j in range(WAVES):
            phase = rng.uniform(0.0, 2.0 * math.pi)
            bend = rng.uniform(-0.5, 0.5)
            fields[f"wave{k}.{j}"] = np.sin(math.pi * (0.5 + 0.5 * j) * x + phase + bend * y)
        fields[f"fold{k}"] = np.sin(math.pi * 1.2 * x + rng.uniform(0.0, 2.0 * math.pi)) + 0.4 * y
    values = np.zeros((WIDTHS[4], 4, 4))
    for index, value in enumerate(fields.values()):
        values[index] = value * SIDES
    return [*fields, *[NULL] * (WIDTHS[4] - len(fields))], values


def _controls(target: Callable[[Array], Array], *, sides: bool = False) -> Array:
    """Return the four values that, upsampled, come nearest to `target` times what becomes of four ones."""
    spread = np.eye(4)
    while len(spread) < 256:
        padded = np.pad(spread, ((1, 1), (0, 0)))
        even, odd = 0.75 * padded[1:-1] + 0.25 * padded[:-2], 0.75 * padded[1:-1] + 0.25 * padded[2:]
        spread = np.stack([even, odd], axis=1).reshape(-1, 4)
    place = (np.arange(256) + 0.5) / 128.0 - 1.0
    if sides:
        spread = spread * SIDES
    care = np.where(np.abs(place) < 0.65, 1.0, 0.15)
    values: Array = np.linalg.lstsq(care[:, None] * spread, care * spread.sum(axis=1) * target(place), rcond=None)[0]
    return values


def layers(names: list[str]) -> dict[str, Layer]:
    """Return the thirteen convolutions by name, given the names of the constant's channels."""
    made: dict[str, Layer] = {}
    for name, write in (
        ("b4.conv1", _place),
        ("b8.conv0", _fold(1)),
        ("b8.conv1", _add(1)),
        ("b16.conv0", _fold(2)),
        ("b16.conv1", _add(2)),
        ("b32.conv0", _fold(3)),
        ("b32.conv1", _shapes),
        ("b64.conv0", _sharpen),
        ("b64.conv1", _overlap),
        ("b128.conv0", _again),
        ("b128.conv1", _difference(128)),
        ("b256.conv0", _again),
        ("b256.conv1", _difference(256)),
    ):
        layer = Layer(names, {})
        write(layer)
        made[name] = layer
        names = layer.names(WIDTHS[int(name[1:].split(".")[0])])
    return made


def _place(layer: Layer) -> None:
    """4 x 4: where the ridges and the sun stand."""
    styles: dict[str, Style] = {
        "one.x": _wide(0.0, {"sun across": 0.34}),
        "one.y": _wide(-0.30, {"sun height": 0.11}),
    }
    layer.keep("one", "dusk")
    layer.signed("xs", [Term("x.sun", 0.6), Term("one.x", -0.6 / WIDE)])
    layer.signed("ys", [Term("y.sun", 0.6), Term("one.y", -0.6 / WIDE)])
    for k in range(HILLS):
        styles[f"one.{k}"] = _wide(HEIGHTS[k], {f"ridge {k}": 0.07, "horizon": 0.1 if k < 3 else 0.06})
        swing = 0.16 + 0.03 * k
        for j in range(WAVES):
            styles[f"wave{k}.{j}"] = _wide(0.0, {f"wave {k}.{j}": swing / (1 + 0.4 * j)})
        waves = [Term(f"wave{k}.{j}", 0.5 / WIDE) for j in range(WAVES)]
        layer.signed(f"g{k}", [Term("y", 0.5), Term(f"one.{k}", -0.5 / WIDE), *waves], loud=True)
        folds = [Term(f"fold{k}", 0.5), Term(f"wave{k}.0", 0.6 / WIDE), Term(f"wave{k}.1", 0.6 / WIDE)]
        layer.signed(f"f{k}", folds, loud=True)
    layer.styles = styles


def _wide(mean: float, slopes: dict[str, float]) -> Style:
    """Return a style that is `WIDE` times as large; its weights are as much smaller, so that nothing else changes."""
    return Style(WIDE * mean, {control: WIDE * slope for control, slope in slopes.items()})


def _carry(layer: Layer) -> None:
    layer.keep("one", "dusk")
    layer.keep_signed("xs", "ys", *(f"g{k}" for k in range(HILLS)))


def _fold(level: int) -> Callable[[Layer], None]:
    """Up: fold each hill's wave where it crosses a movable level."""

    def write(layer: Layer) -> None:
        _carry(layer)
        for k in range(HILLS):
            shift = Term("one", 0.12 * (1.0 if (k + level) % 2 else -1.0))
            layer.signed(f"f{k}", [*through(f"f{k}", 0.62), shift])
            if level > 1:
                layer.signed(f"g{k}", through(f"g{k}", 1.0), loud=True)
        if level == 3:
            for ray in range(RAYS):
                angle = math.pi * (ray + 0.5) / RAYS
                terms = [*through("xs", 0.5 * math.cos(angle)), *through("ys", 0.5 * math.sin(angle))]
                layer.signed(f"ray{ray}", terms)
        layer.styles = {f"f{k}{sign}": Style(1.0, {f"fold {level}": 0.0}) for k in range(HILLS) for sign in "+-"}

    return write


def _add(level: int) -> Callable[[Layer], None]:
    """Add the tents |f| to the ridges, and go on with the tent as the next wave."""

    def write(layer: Layer) -> None:
        _carry(layer)
        rough = 0.26 / level
        for k in range(HILLS):
            tent = [Term(f"f{k}+", rough), Term(f"f{k}-", rough), Term("one", -0.35 * rough)]
            layer.signed(f"g{k}", [*through(f"g{k}", 0.7), *tent], loud=True)
            layer.signed(f"f{k}", [Term(f"f{k}+", 0.62), Term(f"f{k}-", 0.62), Term("one", -0.3)], loud=True)
        layer.styles = {
            f"f{k}{sign}": Style(1.0, {f"relief {level}": 0.3, f"relief {level}.{k}": 0.4})
            for k in range(HILLS)
            for sign in "+-"
        }

    return write


def _shapes(layer: Layer) -> None:
    """32 x 32: the last tents, the sun's distance, the gradient of the sky."""
    rough = 0.07
    for k in range(HILLS):
        tent = [Term(f"f{k}+", rough), Term(f"f{k}-", rough), Term("one", -0.3 * rough)]
        layer.signed(f"g{k}", [*through(f"g{k}", 0.68), *tent])
    distance = [Term(f"ray{ray}{sign}", -0.22) for ray in range(RAYS) for sign in "+-"]
    layer.signed("s", [Term("one", SUN), *distance])
    layer.signed("r", [Term("one", RING), *distance])
    layer.signed("glow", [Term("one", GLOW), *distance])
    layer.keep("dusk")
    layer.flat("flat", FLAT)
    layer.styles = {f"f{k}{sign}": Style(1.0, {"relief 3": 0.5}) for k in range(HILLS) for sign in "+-"}


def _positive(name: str, amount: float, kernel: Array = POINT) -> list[Term]:
    """Return the terms that are f where f is above zero and nothing elsewhere."""
    return [Term(f"{name}+", amount, kernel), Term(f"{name}-", 0.2 * amount, kernel)]


def _sharpen(layer: Layer) -> None:
    """64 x 64: what is above zero, steep for shapes and soft for mist, glow and dusk."""
    layer.flat("flat", FLAT)
    for shape, source in (*((f"hill{k}", f"g{k}") for k in range(HILLS)), ("sun", "s"), ("ring", "r")):
        layer.outputs[shape] = _positive(source, 1.0, BOX)
        layer.loud.add(shape)
    for k in range(HILLS):
        layer.outputs[f"mist{k}"] = _positive(f"g{k}", 0.9)
    layer.outputs["glow"] = _positive("glow", 0.9)
    layer.outputs["dusk"] = [Term("dusk", 0.24, BOX)]


def _overlap(layer: Layer) -> None:
    """64 x 64: each shape joined with all that stand in front of it, so that their colours can be differences."""
    for copy in range(AXES + 1):
        for index, shape in enumerate(SHAPES):
            name = f"{shape}.{copy}"
            layer.outputs[name] = [Term(front, EACH, BOX) for front in SHAPES[index:]]
        layer.flat(f"flat.{copy}", FLAT)
        layer.outputs[f"dusk.{copy}"] = [Term("dusk", 1.0 / GAIN), *_behind(range(HILLS))]
    for k in range(HILLS):
        layer.outputs[f"mist{k}"] = [Term(f"mist{k}", 1.0 / GAIN), *_behind(range(k + 1, HILLS))]
    layer.keep("glow")


def _behind(hills: range) -> list[Term]:
    """Return terms that bring a soft field to its full value behind hills, where the border may have dimmed it."""
    return [Term(f"hill{k}", 0.09, SOFT) for k in hills]


def _again(layer: Layer) -> None:
    """Up: the shapes as they are, and sharpened."""
    for shape in SHAPES:
        layer.outputs[f"{shape}.old"] = [Term(f"{shape}.0", OLD)]
        layer.outputs[shape] = [Term(f"{shape}.0", 1.0, SOFT), Term("flat.0", -LEVEL, SOFT)]
        layer.loud.add(shape)
    layer.outputs["flat.old"] = [Term("flat.0", OLD)]
    if "dusk.0" in layer.sources:
        layer.outputs["dusk.old"] = [Term("dusk.0", DUSK_OLD[128])]
    else:
        size = DUSK_OLD[256] / EDGE[128]
        layer.outputs["dusk.old"] = [Term("dusk.whole0", size * 4.0 / 3.0), Term("dusk.inner0", -size / 3.0)]
    layer.flat("flat", FLAT)


def _difference(resolution: int) -> Callable[[Layer], None]:
    """Write what the sharp shapes have more than the upsampled ones, lifted above zero, for toRGB to add."""

    def write(layer: Layer) -> None:
        for copy, shapes in enumerate(SHARP[resolution]):
            for shape in shapes:
                before = Term(f"{shape}.old", -LIFT / (OLD * GAIN))
                after = [Term(shape, LIFT * SHARE), Term("flat", LIFT * (1.0 - SHARE))]
                layer.outputs[f"{shape}.more{copy}"] = [*after, before, Term("flat", LIFT)]
            layer.flat(f"flat.{copy}", FLAT)
        layer.outputs["flat.more0"] = [Term("flat", 2.0 * LIFT), Term("flat.old", -LIFT / (OLD * GAIN))]
        # The border lost a quarter of the sky's gradient: whole - inner is what there is of it at the border, nearly,
        # and nothing elsewhere.
        size = EDGE[resolution]
        whole = Term("dusk.old", size / (GAIN * GAIN * DUSK_OLD[resolution]))
        shade = 3.0 * size / GAIN
        edge = [Term("flat", -shade), Term("flat.old", shade / (GAIN * OLD))]
        layer.outputs["dusk.whole0"] = [whole]
        layer.outputs["dusk.inner0"] = [whole, *edge]
        if resolution < max(WIDTHS):
            for shape in SHAPES:
                layer.outputs[f"{shape}.0"] = [Term(shape, SHARE / GAIN), Term("flat", (1.0 - SHARE) / GAIN)]

    return write
