"""Type errors of recipes: a sentence for the mistakes that dataclasses let pass."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.latent.rows import Blend
from gpu_backend.plain_text import type_with_article
from gpu_backend.recipe import (
    Arc,
    Bend,
    DirectionAmount,
    Latent,
    LocalEdits,
    MaskedBlend,
    MixSource,
    Point,
    Recipe,
    StyleOffset,
    Truncation,
)


def check_blend(blend: object) -> None:
    """Raise TypeError if a blend is not made of (recipe, weight) pairs."""
    if not isinstance(blend, Sequence):
        raise TypeError(f"A blend is a sequence of (recipe, weight) pairs, not {type_with_article(blend)}.")
    for item in blend:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Recipe)):
            raise TypeError(f"A blend has (recipe, weight) pairs, but one item is {_item(item)}.")


def check_recipes(blend: Blend) -> None:
    """Raise TypeError if a weight is no number, or a part of a recipe has another type.

    Called once rows could not be computed: for every frame of a gesture, it would take a tenth of the time of its rows.
    """
    for recipe, weight in blend:
        given: object = weight
        if not hasattr(given, "__float__"):
            raise TypeError(f"The weight of a recipe is a number, not {given!r:.40}.")
        _check_recipe(recipe)


def check_edit_types(edits: LocalEdits) -> None:
    """Raise TypeError if the edits of a request are no tuples of their types."""
    _check_items(edits.bends, Bend, "The bends of edits")
    _check_items(edits.style_offsets, StyleOffset, "The style offsets of edits")
    _check_items(edits.blends, MaskedBlend, "The blends of edits")
    for blend in edits.blends:
        given: object = blend.recipe
        if not isinstance(given, Recipe):
            raise TypeError(f"The second latent of a blend is a Recipe, not {type_with_article(given)}.")
        _check_recipe(given)


def _check_recipe(recipe: Recipe) -> None:
    truncation: object = recipe.truncation
    if not isinstance(truncation, Truncation):
        raise TypeError(f"The truncation of a recipe is a Truncation, not {type_with_article(truncation)}.")
    latents: list[object] = [recipe.latent]
    while latents:
        latent = latents.pop()
        if not isinstance(latent, Latent):
            raise TypeError(f"The latent of a recipe is a Latent, not {type_with_article(latent)}.")
        point = latent.point
        for end in (point.first, point.second) if isinstance(point, Arc) else (point,):
            if isinstance(end, Point):
                _check_pairs(end.seeds, "The seeds of a point", "(seed, weight)")
        _check_pairs(latent.classes, "The classes of a latent", "(class, weight)")
        _check_items(latent.directions, DirectionAmount, "The directions of a latent")
        _check_items(latent.mix, MixSource, "The mix sources of a latent")
        latents.extend(source.latent for source in latent.mix)


def _check_pairs(pairs: object, what: str, kind: str) -> None:
    if not isinstance(pairs, tuple):
        raise TypeError(f"{what} are a tuple of {kind} pairs, not {type_with_article(pairs)}.")
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(f"{what} are {kind} pairs, but one is {_item(pair)}.")


def _check_items(items: object, kind: type, what: str) -> None:
    if not isinstance(items, tuple):
        raise TypeError(f"{what} are a tuple of {kind.__name__}, not {type_with_article(items)}.")
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"{what} are a tuple of {kind.__name__}, but one item is {_item(item)}.")


def _item(item: object) -> str:
    return f"a tuple of {len(item)}" if isinstance(item, tuple) else type_with_article(item)
