"""Local edits of a session: bent channels of layers, and style channels; with blends, what the renderer gets of them.

Frozen values and pure functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from explorer_app.session.local_blends import LocalBlend, mixed_masked_blends, resolve_blends
from explorer_app.session.mixing import by_key, mixed_number
from gpu_backend import (
    BEND_REST,
    MAX_BENDS,
    MAX_STYLE_OFFSETS,
    Bend,
    BendKind,
    LocalEdits,
    ModelFacts,
    StyleOffset,
    Truncation,
    dataclass,
)

KIND_NAMES: dict[BendKind, str] = {
    "gain": "Gain",
    "ablate": "Ablate",
    "threshold": "Threshold",
    "move": "Move",
    "turn": "Turn",
    "scale": "Scale",
}

QUANTITIES: dict[str, tuple[BendKind, str]] = {
    "gain": ("gain", "amount"),
    "ablate": ("ablate", "amount"),
    "threshold": ("threshold", "amount"),
    "right": ("move", "amount"),
    "down": ("move", "down"),
    "turn": ("turn", "amount"),
    "scale": ("scale", "amount"),
}
"""Name of a number of a bend, which ends its path -> the kind that has it, and its field."""


NO_TRUNCATION = Truncation()


@dataclass(frozen=True, slots=True)
class LayerBend:
    """One bend.

    Attributes
    ----------
    number
        Names it in paths of parameters: ``bend/3/gain``. No other bend of the session has it.
    layer, kind, amount, channels, down
        As in `gpu_backend.Bend`.
    is_on
        Whether it acts.
    label
        What the user calls it; empty for the default.
    """

    number: int
    layer: str
    kind: BendKind
    amount: float
    channels: tuple[int, ...] = ()
    down: float = 0.0
    is_on: bool = True
    label: str = ""

    @property
    def name(self) -> str:
        """The user's name, else kind and layer."""
        return self.label or f"{KIND_NAMES[self.kind]} {self.layer}"

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of its numbers, as in `QUANTITIES`."""
        return tuple(name for name, (kind, _) in QUANTITIES.items() if kind == self.kind)


@dataclass(frozen=True, slots=True)
class StyleChannel:
    """One channel of a layer's style, as a slider.

    Attributes
    ----------
    layer, channel, amount
        As in `gpu_backend.StyleOffset`.
    reach
        End of its slider.
    label
        What the user calls it; empty for the default.
    """

    layer: str
    channel: int
    amount: float = 0.0
    reach: float = 1.0
    label: str = ""

    @property
    def key(self) -> tuple[str, int]:
        """What names it in a session."""
        return self.layer, self.channel

    @property
    def path(self) -> str:
        """Path of its amount."""
        return f"style/{self.layer}/{self.channel}"

    @property
    def name(self) -> str:
        """The user's name, else layer and channel."""
        return self.label or f"{self.layer} · {self.channel}"


def resolve_edits(
    bends: Iterable[LayerBend],
    channels: Iterable[StyleChannel],
    blends: Iterable[LocalBlend] = (),
    truncation: Truncation = NO_TRUNCATION,
) -> LocalEdits:
    """Return what the renderer does. An amount at rest still counts: a drag through it keeps the plan."""
    return LocalEdits(
        tuple(Bend(item.layer, item.kind, item.amount, item.channels, item.down) for item in bends if item.is_on),
        tuple(StyleOffset(item.layer, item.channel, item.amount) for item in channels),
        resolve_blends(blends, truncation),
    )


def bends_of(edits: LocalEdits) -> tuple[LayerBend, ...]:
    """Return the bends of a request, numbered in order."""
    return tuple(
        LayerBend(number, item.layer, item.kind, item.amount, item.channels, item.down)
        for number, item in enumerate(edits.bends, 1)
    )


def style_channels_of(edits: LocalEdits) -> tuple[StyleChannel, ...]:
    """Return the style channels of a request; several offsets of a channel are added."""
    sums: dict[tuple[str, int], float] = {}
    for item in edits.style_offsets:
        sums[item.layer, item.channel] = sums.get((item.layer, item.channel), 0.0) + item.amount
    return tuple(
        StyleChannel(layer, channel, amount, reach=max(1.0, abs(amount))) for (layer, channel), amount in sums.items()
    )


# -- models ----------------------------------------------------------------------------------------------------------


def bendable_layers(facts: ModelFacts) -> dict[str, int]:
    """Return the layers that can be bent, and their numbers of channels: all but toRGB and skips."""
    layers = {layer.name: layer.channels for layer in facts.layers}
    if facts.family in ("StyleGAN3", "StyleGAN-XL"):
        return dict(list(layers.items())[:-1])
    return {name: count for name, count in layers.items() if not name.endswith((".torgb", ".skip"))}


def style_lengths(facts: ModelFacts) -> dict[str, int]:
    """Return the layers with a style and its length: in StyleGAN1 two per channel, otherwise one per input channel."""
    bendable = bendable_layers(facts)
    if facts.family == "StyleGAN1":
        return {name: 2 * count for name, count in bendable.items()}
    lengths: dict[str, int] = {}
    before: int | None = None
    for layer in facts.layers:
        if layer.name == "input":
            before = layer.channels
        elif not layer.name.endswith(".skip"):
            lengths[layer.name] = layer.channels if before is None else before
            before = layer.channels if layer.name in bendable else before
    return lengths


def fit_bends(bends: tuple[LayerBend, ...], facts: ModelFacts) -> tuple[LayerBend, ...]:
    """Return the bends that a model can have, with the channels that it has; the same object if all fit."""
    layers = bendable_layers(facts)
    fitted = []
    for bend in bends:
        channels = tuple(channel for channel in bend.channels if channel < layers.get(bend.layer, 0))
        if bend.layer in layers and (channels or not bend.channels):
            fitted.append(bend if channels == bend.channels else replace(bend, channels=channels))
    return bends if tuple(fitted) == bends else tuple(fitted)


def fit_style_channels(channels: tuple[StyleChannel, ...], facts: ModelFacts) -> tuple[StyleChannel, ...]:
    """Return the style channels that a model has."""
    lengths = style_lengths(facts) if channels else {}
    return tuple(item for item in channels if item.channel < lengths.get(item.layer, 0))


# -- between sessions ------------------------------------------------------------------------------------------------


def mixed_bends(
    chosen: Mapping[int, Sequence[LayerBend]], weights: Mapping[int, float], before: int
) -> tuple[LayerBend, ...]:
    """Return the bends between states, by number; one that a state lacks is at rest there.

    The bend of a number that is of another kind, layer or channels in some state is that of the state `before`.
    """
    made = []
    for found in by_key(chosen, lambda bend: bend.number):
        first = found.get(before, next(iter(found.values())))
        if any(_shape(item) != _shape(first) for item in found.values()):
            made += [found[before]] if before in found else []
            continue
        amounts = {index: found[index].amount if _acts(found, index) else BEND_REST[first.kind] for index in chosen}
        downs = {index: found[index].down if _acts(found, index) else 0.0 for index in chosen}
        is_on = any(item.is_on for item in found.values())
        amount = mixed_amount(first.kind, amounts, weights) if is_on else first.amount
        down = mixed_number(downs, weights) if is_on else first.down
        made.append(replace(first, amount=amount, down=down, is_on=is_on))
    return tuple(made[:MAX_BENDS])


def mixed_style_channels(
    chosen: Mapping[int, Sequence[StyleChannel]], weights: Mapping[int, float]
) -> tuple[StyleChannel, ...]:
    """Return the style channels between states; one that a state lacks is 0 there."""
    models: dict[tuple[str, int], StyleChannel] = {}
    amounts: dict[tuple[str, int], dict[int, float]] = {}
    for index, channels in chosen.items():
        for item in channels:
            models.setdefault(item.key, item)
            amounts.setdefault(item.key, dict.fromkeys(chosen, 0.0))[index] = item.amount
    made = (replace(item, amount=mixed_number(amounts[key], weights)) for key, item in models.items())
    return tuple(made)[:MAX_STYLE_OFFSETS]


def mixed_edits(chosen: Mapping[int, LocalEdits], weights: Mapping[int, float], before: int) -> LocalEdits:
    """Return the edits of a picture between keyframes: bends in the same place of the list are the same bend."""
    if len(set(chosen.values())) == 1:
        return next(iter(chosen.values()))
    bends = mixed_bends({index: bends_of(edits) for index, edits in chosen.items()}, weights, before)
    channels = mixed_style_channels({index: style_channels_of(edits) for index, edits in chosen.items()}, weights)
    blends = mixed_masked_blends({index: edits.blends for index, edits in chosen.items()}, weights, before)
    return replace(resolve_edits(bends, channels), blends=blends)


def mixed_amount(kind: BendKind, values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return the amount of a bend between others; scales go by factors."""
    if kind == "scale" and min(values.values()) > 0.0:
        return math.exp(mixed_number({index: math.log(value) for index, value in values.items()}, weights))
    return mixed_number(values, weights)


def _shape(bend: LayerBend) -> tuple[object, ...]:
    return bend.layer, bend.kind, bend.channels


def _acts(found: Mapping[int, LayerBend], index: int) -> bool:
    return index in found and found[index].is_on
