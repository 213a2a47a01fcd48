"""From a plan to launches: `gpu_backend.plan.fusion` says which steps are one kernel, the table of operations how.

Each fused step becomes its operation's fused launches; a run of steps may be one launch (`GpuOp.fused_run`). It becomes
the plain ones in plans for fp32, where the operation refuses the step, and where a kernel failed on this GPU. Both
share the layout of every region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from numpy.typing import NDArray

from gpu_backend.cuda.launches.gpu_op import Fused, LoweringContext, Refused
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.launches.zero_copy import host_slot, zero_copy
from gpu_backend.cuda.schedule import Built, Constant, Launch, Region, Schedule
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Weights
from gpu_backend.plan.arena import ALIGNMENT, place
from gpu_backend.plan.fusion import FusedStep, fuse, kept_regions
from gpu_backend.plan.plan import Buffer, BufferRole, Plan, Step

_ROLES: dict[BufferRole, Literal["input", "scratch", "output"]] = {
    "input": "input",
    "intermediate": "scratch",
    "output": "output",
}

_LAST = ("pixels", "flags")
"""The outputs behind all others, in this order."""


def lower(
    plan: Plan,
    weights: Weights,
    target: Target,
    *,
    plain: Mapping[str, str] | None = None,
    everything_plain: bool = False,
) -> Schedule:
    """Return the launches of a plan on a GPU.

    Parameters
    ----------
    plain
        Digests of kernel recipes that failed, and why: plain kernels take their place.
    everything_plain
        No fused kernel at all; plans for fp32, the exact reference, are always so.
    """
    pieces = [Built((), (), _declared(plan))]
    regions: dict[str, Region] = {}
    starts: dict[str, NDArray[Any]] = {}
    context = LoweringContext(plan, weights, target, regions, plain or {})
    steps = fuse(plan, up_convs_read_fp8=target.up_convs_read_fp8)
    kept_steps = {id(step) for step in plan.steps[: plan.kept_steps]}
    kept_launches = 0
    is_plain = everything_plain or plan.key.precision == "fp32"
    while steps:
        step = steps[0]
        if step.main.samples not in (0, context.batch):
            context = replace(context, samples=step.main.samples)
        op = GPU_OPS[step.main.op]
        count, choice = (1, Refused()) if is_plain else choose_run(steps, context)
        built = choice.build() if isinstance(choice, Fused) else op.plain(step, context, choice.reason)
        ops = {item.layer: item.op for item in (*step.absorbed, step.main)}
        launches = tuple(replace(item, op=ops.get(item.layer, step.main.op)) for item in built.launches)
        pieces.append(replace(built, launches=launches))
        if id(step.main) in kept_steps:
            kept_launches += len(launches)
        regions.update((region.name, region) for region in built.regions)
        for one in steps[:count]:
            starts.update(GPU_OPS[one.main.op].starts(one, context))
        steps = steps[count:]
    built = Built.joined(pieces)
    whole = None if is_plain else zero_copy(built.launches, target)
    if whole is not None and whole.recipe.digest in context.failed:
        whole = None
    return _placed(plan, built, starts, whole, kept_launches)


def choose_run(steps: Sequence[FusedStep], context: LoweringContext) -> tuple[int, Fused | Refused]:
    """Return how many steps, from the first on, are lowered together, and their launches or why the first is plain."""
    run = GPU_OPS[steps[0].main.op].fused_run(steps, context)
    if run is not None and not any(recipe.digest in context.failed for recipe in run[1].recipes):
        return run
    return 1, choose(steps[0], context)


def choose(step: FusedStep, context: LoweringContext) -> Fused | Refused:
    """Return the fused launches of a step, or why it runs plain."""
    choice = GPU_OPS[step.main.op].fused(step, context)
    if isinstance(choice, Fused) and context.failed:
        reason = next((why for recipe in choice.recipes if (why := context.failed.get(recipe.digest))), "")
        return Refused(reason) if reason else choice
    return choice


def _declared(plan: Plan) -> tuple[Region, ...]:
    """Return the regions that no launch declares: a mapping plan's buffers; inputs and flags of a synthesis plan."""
    if plan.key.part == "mapping":
        return tuple(Region(item.name, item.shape, item.dtype, _ROLES[item.role]) for item in plan.buffers)
    inputs = (Region(item.name, item.shape, item.dtype, "input") for item in plan.buffers if item.role == "input")
    # The styles clear a flag for each of their samples, those of second latents included.
    samples = max((step.samples for step in plan.steps), default=0) or plan.key.batch
    return *inputs, Region("flags", (samples,), "uint32", "output")


def _placed(
    plan: Plan, built: Built, starts: Mapping[str, NDArray[Any]], whole: Launch | None, kept_launches: int
) -> Schedule:
    """Place every region in one allocation: persistent regions first, inputs together, then scratch by lifetime.

    The flags come right behind the pixels, so that one copy brings both; the host slot right before the rows of w.
    """
    lasting = kept_regions(plan)
    regions = sorted(
        (
            replace(region, role="lasting") if region.name in lasting else region
            for region in _merged(built.regions if whole is None else (host_slot(), *built.regions))
        ),
        key=lambda region: _LAST.index(region.name) if region.name in _LAST else -1,
    )
    end = 0
    placed: list[Region] = []
    for role in ("input", "zeroed", "kept", "lasting", "output"):
        for region in regions:
            if region.role == role:
                placed.append(replace(region, offset=end))
                end += _aligned(region.nbytes)
    scratch = [Buffer(item.name, item.shape, item.dtype, "intermediate") for item in regions if item.role == "scratch"]
    launches = built.launches if whole is None else (*built.launches, whole)
    buffers, arena_nbytes = place(scratch, [_step_of(launch) for launch in launches])
    placed += [Region(item.name, item.shape, item.dtype, "scratch", end + item.offset) for item in buffers]
    return Schedule(
        plan,
        tuple(placed),
        _unique(built.constants),
        built.launches,
        end + arena_nbytes,
        starts,
        whole,
        kept_launches,
    )


def _merged(regions: tuple[Region, ...]) -> tuple[Region, ...]:
    """Each region once; of those that several launches share, the largest."""
    merged: dict[str, Region] = {}
    for region in regions:
        held = merged.get(region.name)
        if held is None or held.nbytes < region.nbytes:
            merged[region.name] = region
    return tuple(merged.values())


def _unique(constants: tuple[Constant, ...]) -> tuple[Constant, ...]:
    return tuple({constant.key: constant for constant in constants}.values())


def _step_of(launch: Launch) -> Step:
    """A launch as the arena sees it: the regions that it names."""
    return Step(launch.layer, launch.label, None, launch.region_names, ())


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
