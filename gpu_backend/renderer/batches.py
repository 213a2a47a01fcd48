"""Grouping of requests into batches that share a plan, noise, transform and edits."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.plan.plan import PlanKey
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.request import RenderRequest

BATCH_SIZES = (8, 4, 2)
"""Frames of one run on a GPU. There are few sizes, because each needs its own plan, graph and kernels."""

BATCH_PIXELS = 8 << 20
"""Maximum number of pixels of one run, over all its pictures; bounds the memory of its plan."""


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Frames of one run: `places` are indices of requests; `key` is the plan key of a single frame."""

    key: PlanKey
    places: tuple[int, ...]


def group_frames(requests: Sequence[RenderRequest], keys: Sequence[PlanKey], batch_size: int) -> list[FrameGroup]:
    """Return the runs that render the requests, each with `batch_size` frames or with one.

    Frames share a run if they have the same plan key, noise, transform, edits and outputs, because these belong to the
    whole batch. Taps and measured frames are rendered singly. A remainder of fewer than `batch_size` frames is rendered
    singly too, because a plan for its size would cost more than it saves.

    Parameters
    ----------
    keys
        The single-frame plan key of each request.
    """
    alike: dict[object, list[int]] = {}
    for place, (request, key) in enumerate(zip(requests, keys, strict=True)):
        is_alone = request.tap is not None or request.measure_steps
        alike.setdefault(
            place if is_alone else (key, request.noise, request.transform, request.edits, request.wants_image), []
        ).append(place)
    groups = []
    for places in alike.values():
        whole = len(places) - len(places) % batch_size
        runs = [places[first : first + batch_size] for first in range(0, whole, batch_size)]
        groups += [FrameGroup(keys[run[0]], tuple(run)) for run in (*runs, *([place] for place in places[whole:]))]
    return sorted(groups, key=lambda group: group.places)


def batch_size_for(side: int, *, largest: int) -> int:
    """Return the batch size for frames of side x side pixels; 1 if no batch fits the limits."""
    return next((size for size in BATCH_SIZES if size <= largest and size * side * side <= BATCH_PIXELS), 1)
