"""Whether a plan keeps the second latents of masked blends for later runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpu_backend.plan.arena import buffer_nbytes
from gpu_backend.plan.plan import Plan, PlanKey

MOST_KEPT_NBYTES = 896 << 20
"""Of one plan. A StyleGAN2 of 1024 x 1024 and the usual widths keeps 280 MB in fp16 for each blend of all rows, and
twice that in fp32; a StyleGAN3-T keeps 650 MB in fp16. What would keep more, as a StyleGAN3-R of that side (1.3 GB), a
StyleGAN3-T or two blends of that StyleGAN2 in fp32, runs its second latents in every frame."""


def key_that_keeps(key: PlanKey, build: Callable[[PlanKey], Plan]) -> PlanKey:
    """Return the key of the plan that keeps second latents, or the same if it has none or too much to keep.

    It depends on nothing but the key and the network, so that equal requests run the same kernels.
    """
    if key.edits.keeps_second or not key.edits.blends:
        return key
    keeping = replace(key, edits=replace(key.edits, keeps_second=True))
    return keeping if kept_nbytes(build(keeping)) <= MOST_KEPT_NBYTES else key


def kept_nbytes(plan: Plan) -> int:
    """Return the memory of what a plan keeps, in bytes."""
    return sum(buffer_nbytes(buffer) for buffer in plan.buffers if buffer.role == "kept")
