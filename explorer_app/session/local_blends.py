"""Blends of a session's picture with second latents under masks. Frozen values and pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from explorer_app.session.mixing import by_key, mixed_number
from gpu_backend import (
    MASK_SIDE,
    MAX_BLENDS,
    Latent,
    MaskedBlend,
    PictureMask,
    Recipe,
    RowRange,
    Truncation,
    dataclass,
    layer_mask,
)

DEFAULT_SOFTNESS = 0.1


@dataclass(frozen=True, slots=True)
class LocalBlend:
    """One blend.

    Attributes
    ----------
    number
        Names it in paths of parameters: ``blend/3/strength``. No other blend of the session has it.
    latent
        The second latent; the session's truncation acts on it too.
    mask
        Where it shows; None as long as nothing is painted, and then it does not act.
    rows, strength, softness
        As in `gpu_backend.MaskedBlend`.
    is_on
        Whether it acts.
    label
        What the user calls it; empty for the default.
    """

    number: int
    latent: Latent = Latent()
    mask: PictureMask | None = None
    rows: RowRange = RowRange()
    strength: float = 1.0
    softness: float = DEFAULT_SOFTNESS
    is_on: bool = True
    label: str = ""

    @property
    def name(self) -> str:
        """The user's name, else its number."""
        return self.label or f"Blend {self.number}"

    @property
    def acts(self) -> bool:
        """Whether a picture has it, at any strength."""
        return self.is_on and self.mask is not None


def blend_at(blends: Iterable[LocalBlend], x: float, y: float, rows: RowRange, num_ws: int) -> LocalBlend | None:
    """Return the blend whose second picture shows most at a place; None where the first one does.

    Parameters
    ----------
    x, y
        In widths of the picture, 0..1.
    rows
        A blend counts that has most of these rows: others change only colours, or only the arrangement.
    num_ws
        Of the model.
    """
    wanted = [row for row in range(num_ws) if rows.holds(row)]
    column, line = (min(max(int(at * MASK_SIDE), 0), MASK_SIDE - 1) for at in (x, y))
    shares: list[tuple[float, LocalBlend | None]] = [(1.0, None)]
    for blend in blends:
        if blend.mask is None or not blend.is_on or 2 * sum(map(blend.rows.holds, wanted)) <= len(wanted):
            continue
        share = blend.strength * float(layer_mask(blend.mask, MASK_SIDE, 1.0, blend.softness)[line, column])
        shares = [*((other * (1.0 - share), item) for other, item in shares), (share, blend)]
    return max(shares, key=lambda pair: pair[0])[1]


def resolve_blends(blends: Iterable[LocalBlend], truncation: Truncation) -> tuple[MaskedBlend, ...]:
    """Return what the renderer does. One of strength 0 still counts: a drag through it keeps the plan."""
    return tuple(
        MaskedBlend(Recipe(item.latent, truncation), item.mask, item.rows, item.strength, item.softness)
        for item in blends
        if item.is_on and item.mask is not None
    )


def blends_of(blends: Iterable[MaskedBlend]) -> tuple[LocalBlend, ...]:
    """Return the blends of a request, numbered in order; the session's truncation replaces theirs."""
    return tuple(
        LocalBlend(number, item.recipe.latent, item.mask, item.rows, item.strength, item.softness)
        for number, item in enumerate(blends, 1)
    )


def mixed_local_blends(
    chosen: Mapping[int, Sequence[LocalBlend]], weights: Mapping[int, float], before: int
) -> tuple[LocalBlend, ...]:
    """Return the blends between states, by number; one that a state lacks has no strength there.

    The blend of a number whose latent, mask or rows differ between states is that of the state `before`.
    """
    made: list[LocalBlend] = []
    for found in by_key(chosen, lambda blend: blend.number):
        acting = {index: blend for index, blend in found.items() if blend.acts}
        if acting:
            made += _mixed(acting, chosen, weights, before, lambda item: (item.latent, item.mask, item.rows))
        else:
            made.append(found.get(before, next(iter(found.values()))))
    return tuple(made)[:MAX_BLENDS]


def mixed_masked_blends(
    chosen: Mapping[int, Sequence[MaskedBlend]], weights: Mapping[int, float], before: int
) -> tuple[MaskedBlend, ...]:
    """Return the blends of a picture between keyframes: those in the same place of the list are the same blend."""
    made: list[MaskedBlend] = []
    for place in range(max(map(len, chosen.values()), default=0)):
        found = {index: blends[place] for index, blends in chosen.items() if place < len(blends)}
        made += _mixed(found, chosen, weights, before, lambda item: (item.recipe, item.mask, item.rows))
    return tuple(made)


_Blend = TypeVar("_Blend", LocalBlend, MaskedBlend)


def _mixed(
    found: Mapping[int, _Blend],
    chosen: Iterable[int],
    weights: Mapping[int, float],
    before: int,
    shape: Callable[[_Blend], object],
) -> list[_Blend]:
    """Return one blend between states, in a list that is empty if it is not one."""
    first = found.get(before, next(iter(found.values())))
    if any(shape(item) != shape(first) for item in found.values()):
        return [found[before]] if before in found else []
    strengths = {index: found[index].strength if index in found else 0.0 for index in chosen}
    softnesses = {index: found[index].softness if index in found else first.softness for index in chosen}
    return [replace(first, strength=_between(strengths, weights), softness=_between(softnesses, weights))]


def _between(values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return a weighted sum within 0..1, which rounding must not leave."""
    return min(max(mixed_number(values, weights), 0.0), 1.0)
