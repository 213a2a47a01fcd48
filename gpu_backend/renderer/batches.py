"""Which requests are rendered together: frames whose plan, noise and transform are the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_backend.plan.plan import PlanKey
from gpu_backend.request import RenderRequest

BATCH_SIZES = (8, 4, 2)
"""Frames of one run, on a GPU. Few sizes, because each has a plan, a graph and kernels of its own."""

BATCH_PIXELS = 8 << 20
"""Pixels that the pictures of one run may have together, which bounds the memory of its plan."""


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Frames of one run: `places` in the sequence of requests, and the plan key of a single one of them."""

    key: PlanKey
    places: tuple[int, ...]


def group_frames(requests: Sequence[RenderRequest], keys: Sequence[PlanKey], batch_size: int) -> list[FrameGroup]:
    """Return the runs that render requests, each of `batch_size` frames or of one.

    Frames share a run if they have the same plan key, noise and transform, which are inputs of the whole batch. Layers
    and measured frames get a run each. Fewer than `batch_size` frames get a run each too: a plan for their number
    would cost more to make than it saves.

    Parameters
    ----------
    keys
        The plan key of each request alone.
    """
    alike: dict[object, list[int]] = {}
    for place, (request, key) in enumerate(zip(requests, keys, strict=True)):
        is_alone = request.tap is not None or request.measure_steps
        alike.setdefault(place if is_alone else (key, request.noise, request.transform), []).append(place)
    groups = []
    for places in alike.values():
        whole = len(places) - len(places) % batch_size
        runs = [places[first : first + batch_size] for first in range(0, whole, batch_size)]
        groups += [FrameGroup(keys[run[0]], tuple(run)) for run in (*runs, *([place] for place in places[whole:]))]
    return sorted(groups, key=lambda group: group.places)


def batch_size_for(side: int, *, largest: int) -> int:
    """Return how many frames of side x side pixels a run renders: 1 where no batch fits the limits."""
    return next((size for size in BATCH_SIZES if size <= largest and size * side * side <= BATCH_PIXELS), 1)
