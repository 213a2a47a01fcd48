"""Schedules of plans that keep second latents: either part has all that it reads, in the shape that it expects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpu_backend.cuda.launches.fused_convs import COUNTERS, WORKSPACE
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Address, Launch, Schedule, TensorMap
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Model
from gpu_backend.ops.kernels.parameters import declared_parameters
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanEdits, PlanKey, Precision
from gpu_backend.recipe import RowRange
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import make_stylegan3

TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
MODELS: dict[str, Model] = {
    "skip": make_stylegan2(resolution=64, channel_base=2048, channel_max=128, w_dim=32),
    "resnet": make_stylegan2(resolution=32, architecture="resnet"),
    "AdaIN": make_stylegan1(resolution=16),
    "T": make_stylegan3(num_layers=5),
}
ROWS = {
    "one": (RowRange(),),
    "two, late": (RowRange(3, 3), RowRange(4)),
    "three": (RowRange(1, 2), RowRange(2, 2), RowRange(2)),
}
OF_BOTH_PARTS = {"styles", "styles/raw", "demod", "styles/counters", "flags", WORKSPACE, COUNTERS}


def schedule_of(name: str, rows: str, batch: int, precision: Precision, *, is_plain: bool = False) -> Schedule:
    spec = MODELS[name].spec
    edits = PlanEdits((spec.layers[1].name,), shifts_styles=True, blends=ROWS[rows], keeps_second=True)
    plan = build_plan(spec, PlanKey("model", "synthesis", batch, spec.resolution, precision, edits=edits))
    return lower(plan, MODELS[name].weights, TARGET, everything_plain=is_plain)


def parts_of(schedule: Schedule) -> tuple[tuple[Launch, ...], tuple[Launch, ...]]:
    return schedule.launches[: schedule.kept_launches], schedule.launches[schedule.kept_launches :]


def regions_of(launch: Launch) -> Iterator[tuple[str, bool]]:
    """Yield each region that a launch names, and whether its kernel only reads it."""
    recipe = launch.recipe
    for kind, name in declared_parameters(recipe.stem, recipe.source, recipe.headers, dict(recipe.defines)):
        given = launch.arguments[name]
        address = given.address if isinstance(given, TensorMap) else given
        if isinstance(address, Address) and address.kind == "region":
            yield address.name, isinstance(given, TensorMap) or kind.startswith("const ")


EACH = pytest.mark.parametrize(
    ("name", "rows", "batch", "precision"),
    [(name, rows, 1, "fp16") for name in MODELS for rows in ROWS]
    + [("skip", rows, 8, precision) for rows in ROWS for precision in ("fp16", "fp8", "tf32")],
)


@EACH
@pytest.mark.parametrize("is_plain", [False, True], ids=["fused", "plain"])
def test_either_part_reads_what_it_wrote_itself_or_what_is_kept(
    name: str, rows: str, batch: int, precision: Precision, is_plain: bool
) -> None:
    schedule = schedule_of(name, rows, batch, precision, is_plain=is_plain)
    roles = {region.name: region.role for region in schedule.regions}
    first, second = parts_of(schedule)
    assert first
    assert second
    lasting = {region for region, role in roles.items() if role == "lasting"}
    for part in (first, second):
        written = {region for region, role in roles.items() if role in ("input", "zeroed", "kept")}
        written |= lasting if part is second else set()
        for launch in part:
            named = list(regions_of(launch))
            stale = {region for region, is_read in named if is_read} - written
            assert not stale, launch.layer
            written |= {region for region, is_read in named if not is_read}
        assert lasting <= written
    assert not lasting & {region for launch in second for region, is_read in regions_of(launch) if not is_read}


@EACH
def test_no_region_has_the_samples_of_both_parts_but_the_styles(
    name: str, rows: str, batch: int, precision: Precision
) -> None:
    """Partial products of toRGB are samples of parts: the self-check, which sums parts, needs the shape of each."""
    schedule = schedule_of(name, rows, batch, precision)
    scratch = {region.name for region in schedule.regions if region.role not in ("input", "lasting")}
    first, second = ({region for launch in part for region in launch.region_names} for part in parts_of(schedule))
    assert first & second & scratch <= OF_BOTH_PARTS
