"""No two buffers that are alive at one step share a byte, whatever the plan looks like."""

import numpy as np
from hypothesis import given, settings, strategies as st

from gpu_backend.plan.arena import ALIGNMENT, buffer_nbytes, lifetimes, place
from gpu_backend.plan.plan import NOT_EDITED, Buffer, Plan, PlanEdits, Step
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.recipe import RowRange
from tests.helpers.networks import NetworkOptions, make_spec
from tests.helpers.strategies import examples


@st.composite
def steps_and_buffers(draw: st.DrawFn) -> tuple[list[Buffer], list[Step]]:
    """A random program: each step reads earlier buffers and writes one new one."""
    buffers = [Buffer("in", (draw(st.integers(1, 50)),), "float32", "input")]
    steps = []
    for index in range(draw(st.integers(1, 12))):
        sources = draw(st.lists(st.sampled_from([b.name for b in buffers]), min_size=1, max_size=3, unique=True))
        dtype = draw(st.sampled_from(["float32", "uint8"]))
        buffers.append(Buffer(f"b{index}", (draw(st.integers(1, 3000)),), dtype, "intermediate"))
        steps.append(Step(f"s{index}", "add", None, tuple(sources), (f"b{index}",)))
    return buffers, steps


def assert_no_overlap(buffers: tuple[Buffer, ...], steps: tuple[Step, ...], total: int) -> None:
    lives = lifetimes(steps)
    placed = [buffer for buffer in buffers if buffer.role == "intermediate"]
    for i, one in enumerate(placed):
        assert one.offset % ALIGNMENT == 0
        assert 0 <= one.offset <= one.offset + buffer_nbytes(one) <= total
        for other in placed[:i]:
            (a, b), (c, d) = lives[one.name], lives[other.name]
            if a <= d and c <= b:
                ends_before = one.offset + buffer_nbytes(one) <= other.offset
                assert ends_before or other.offset + buffer_nbytes(other) <= one.offset


@settings(max_examples=examples(30), deadline=None)
@given(steps_and_buffers())
def test_live_buffers_never_overlap(program: tuple[list[Buffer], list[Step]]) -> None:
    buffers, steps = program
    placed, total = place(buffers, steps)
    assert [buffer.name for buffer in placed] == [buffer.name for buffer in buffers]
    assert_no_overlap(placed, tuple(steps), total)
    assert all(buffer.offset == -1 for buffer in placed if buffer.role != "intermediate")


def synthesis(edits: PlanEdits = NOT_EDITED, **options: object) -> Plan:
    return build_synthesis_plan(make_spec(NetworkOptions(**options)), "id", edits=edits)  # type: ignore[arg-type]


def test_buffers_of_real_plans_never_overlap() -> None:
    for architecture in ("skip", "resnet", "orig"):
        plan = synthesis(architecture=architecture, resolution=64)
        assert_no_overlap(plan.buffers, plan.steps, plan.arena_nbytes)


def test_both_parts_of_a_plan_that_keeps_second_latents_share_the_arena() -> None:
    for architecture in ("skip", "resnet", "orig"):
        blends = (RowRange(),)
        beside = synthesis(architecture=architecture, resolution=64, edits=PlanEdits(blends=blends))
        edits = PlanEdits(blends=blends, keeps_second=True)
        kept = synthesis(architecture=architecture, resolution=64, edits=edits)
        assert_no_overlap(kept.buffers, kept.steps, kept.arena_nbytes)
        assert kept.arena_nbytes < beside.arena_nbytes


def test_the_arena_is_much_smaller_than_all_buffers_together() -> None:
    plan = synthesis(resolution=256, channel_base=16384, channel_max=512)
    intermediates = [buffer for buffer in plan.buffers if buffer.role == "intermediate"]
    largest = sorted(buffer_nbytes(buffer) for buffer in intermediates)
    assert plan.arena_nbytes < 0.6 * sum(largest)
    assert plan.arena_nbytes >= sum(largest[-2:])


def test_bytes_are_counted_by_type() -> None:
    assert buffer_nbytes(Buffer("a", (2, 3), "float32", "input")) == 24
    assert buffer_nbytes(Buffer("a", (2, 3), "uint8", "input")) == np.dtype(np.uint8).itemsize * 6
