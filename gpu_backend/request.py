"""`RenderRequest`: the recipe of one picture, what it refers to and how much it may hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpu_backend.errors import RequestError
from gpu_backend.limits import MAX_BENDS, MAX_BLENDS, MAX_STYLE_OFFSETS, RecipeBudget
from gpu_backend.picture_mask import PictureMask
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.recipe import NO_EDITS, Arc, Latent, LocalEdits, Noise, Point, Recipe, StoredLatent, Tap

StoredPart = StoredLatent | PictureMask
"""What a file contains once and refers to by its digest: rows of w, masks of blends."""

StoredParts = Mapping[str, StoredPart]
"""Stored parts by digest."""


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """A request for one picture.

    Attributes
    ----------
    model_id
        SHA-256 of the model file. A renderer refuses requests for another model.
    blend
        (recipe, weight) pairs, summed in w row by row: one pair for a still picture, several on a path.
    noise
        Settings of the noise inputs.
    transform
        Nine numbers, row-major 3 x 3, for networks with a transform input (see `Transform.matrix`); None selects the
        model's stored transform.
    resolution
        Resolution of an early exit (a draft, a thumbnail); None means full.
    tap
        Show this layer instead of the picture; later layers do not run.
    measure_steps
        Time each step of the plan for this frame.
    wants_tap_values
        Return the values of the first channel that the tap shows.
    wants_image
        Return the picture as floats too, before it is clamped and rounded; a tap has none.
    edits
        Changes inside the network: bent channels, offsets of styles, blends with other latents.
    """

    model_id: str
    blend: tuple[tuple[Recipe, float], ...] = ((Recipe(), 1.0),)
    noise: Noise = Noise()
    transform: tuple[float, ...] | None = None
    resolution: int | None = None
    measure_steps: bool = False
    tap: Tap | None = None
    wants_tap_values: bool = False
    wants_image: bool = False
    edits: LocalEdits = NO_EDITS


def stored_in(latents: Iterable[Latent]) -> dict[str, StoredPart]:
    """Return the stored latents of latents and their mix sources, by digest."""
    found: dict[str, StoredPart] = {}
    for latent in latents:
        if isinstance(latent.point, StoredLatent):
            found[latent.point.digest] = latent.point
        found.update(stored_in(source.latent for source in latent.mix))
    return found


def stored_in_edits(edits: LocalEdits) -> dict[str, StoredPart]:
    """Return the masks and the stored latents of blends, by digest."""
    found = stored_in(blend.recipe.latent for blend in edits.blends)
    found.update((blend.mask.digest, blend.mask) for blend in edits.blends)
    return found


def spend_blend(blend: Sequence[tuple[Recipe, float]], budget: RecipeBudget) -> None:
    """Charge the recipes of a blend to the budget. Raises RequestError if it is exceeded."""
    for recipe, _ in blend:
        spend_latent(recipe.latent, budget)


def spend_latent(latent: Latent, budget: RecipeBudget, depth: int = 0) -> None:
    """Charge a latent at nesting depth `depth` to the budget. Raises RequestError if it is exceeded."""
    seeds = seed_count(latent.point)
    budget.spend(seeds=seeds, sources=len(latent.mix), directions=len(latent.directions), depth=depth)
    for source in latent.mix:
        spend_latent(source.latent, budget, depth + 1)


def seed_count(point: Point | Arc | StoredLatent) -> int:
    """Return the number of seeds that a point names; both ends of an arc count."""
    if isinstance(point, Arc):
        return len(point.first.seeds) + len(point.second.seeds)
    return 0 if isinstance(point, StoredLatent) else len(point.seeds)


def check_edit_counts(edits: LocalEdits) -> None:
    """Raise RequestError if there are more edits than files may hold."""
    if len(edits.bends) > MAX_BENDS:
        raise RequestError(f"A picture may have {MAX_BENDS} bends, but has {len(edits.bends)}.")
    if len(edits.style_offsets) > MAX_STYLE_OFFSETS:
        raise RequestError(
            f"A picture may have {MAX_STYLE_OFFSETS} style channels, but has {len(edits.style_offsets)}."
        )
    if len(edits.blends) > MAX_BLENDS:
        raise RequestError(f"A picture may have {MAX_BLENDS} blends, but has {len(edits.blends)}.")
