"""The last convolution that writes the picture's bytes to the host: where there is one, and that it compiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.schedule import Launch, Schedule
from gpu_backend.cuda.tiles.target import Target, portable, with_tiles_alone
from gpu_backend.ops.kernels import streaming_conv_tile
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanEdits, PlanKey, Precision
from tests.helpers.conv_cases import H200
from tests.helpers.kept_kernels import statistics_of
from tests.helpers.kernel_checks import assert_compiles
from tests.helpers.networks import make_stylegan2

LARGE = random_model(replace(shape_of("ffhq1024"), maximum=64))


def scheduled(
    target: Target = H200, batch: int = 1, side: int = 1024, precision: Precision = "fp16", **options: Any
) -> Schedule:
    plan = build_plan(LARGE.spec, PlanKey("model", "synthesis", batch, side, precision))
    return lower(plan, LARGE.weights, target, **options)


def zero_copy_of(schedule: Schedule) -> Launch:
    assert schedule.zero_copy is not None
    return schedule.zero_copy


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
@pytest.mark.parametrize("side", [512, 1024])
def test_a_large_picture_by_itself_has_one_that_does_what_two_launches_do(side: int, precision: Precision) -> None:
    schedule = scheduled(side=side, precision=precision)
    launch, (conv, rgb) = zero_copy_of(schedule), schedule.launches[-2:]
    assert (conv.label, rgb.label) == ("streaming_conv", "to_rgb")
    assert set(launch.arguments) == set(launch.recipe.parameters.names or ())
    read = {name for one in (conv, rgb) for name in one.region_names}
    written = {"host_slot"}, {conv.arguments["rgb_parts"].name, "pixels", "flags"}  # type: ignore[union-attr]
    assert set(launch.region_names) == (read | written[0]) - written[1]
    assert launch.optional == ("image",)
    assert launch.recipe.waits_by_itself
    assert launch.recipe in schedule.recipes
    whole = schedule.with_zero_copy
    assert whole is not None
    assert whole.launches == (*schedule.launches[:-2], launch)
    assert whole.with_zero_copy is None


def test_while_stores_wait_for_pcie_a_block_has_fewer_warpgroups_and_more_rows_in_flight() -> None:
    schedule = scheduled()
    (conv, whole), names = ((schedule.launches[-2], zero_copy_of(schedule)), ("WARPGROUPS", "STAGES", "DEPTH"))
    divided = [[int(dict(launch.recipe.defines)[name]) for name in names] for launch in (conv, whole)]
    assert divided == [[5, 5, 32], [4, 6, 32]]
    assert whole.block == (512, 1, 1)
    assert whole.grid[0] * 4 == 16 * -(-1024 // int(dict(whole.recipe.defines)["ROWS"])), "all strips"


def test_the_slot_goes_over_with_the_rows_of_w_and_has_the_flags_where_a_copy_has_them() -> None:
    schedule = scheduled()
    regions = {region.name: region for region in schedule.regions}
    assert regions["ws"].offset - regions["host_slot"].offset == 256
    assert zero_copy_of(schedule).arguments["flag_at"] == regions["flags"].offset - regions["pixels"].offset


def test_what_it_reads_is_still_there_after_the_launches_before_it() -> None:
    schedule = scheduled()
    launch, regions = zero_copy_of(schedule), {region.name: region for region in schedule.regions}
    read = [regions[name] for name in launch.region_names if regions[name].role == "scratch"]
    assert len(read) >= 4
    for name in schedule.launches[-2].region_names:
        written = regions[name]
        if written in read or written.role != "scratch":
            continue
        for one in read:
            assert one.offset + one.nbytes <= written.offset or written.offset + written.nbytes <= one.offset


@pytest.mark.parametrize(
    "target",
    [replace(H200, architecture="sm_90"), portable(H200), with_tiles_alone(H200), replace(H200, fuses_epilogues=False)],
    ids=["no wgmma", "portable", "tiles alone", "no epilogues"],
)
def test_other_targets_copy(target: Target) -> None:
    schedule = scheduled(target)
    assert schedule.zero_copy is None
    assert all(region.name != "host_slot" for region in schedule.regions)


def test_batches_small_pictures_and_plain_plans_copy() -> None:
    assert scheduled(batch=2).zero_copy is None
    assert scheduled(side=256).zero_copy is None
    assert scheduled(everything_plain=True).zero_copy is None
    assert scheduled(precision="tf32").zero_copy is None


def test_a_kernel_that_failed_is_left_out() -> None:
    digest = zero_copy_of(scheduled()).recipe.digest
    schedule = scheduled(plain={digest: "it is broken"})
    assert schedule.zero_copy is None
    assert schedule.launches[-2].label == "streaming_conv"


@pytest.mark.parametrize("changes", [{"img_channels": 1}, {"img_channels": 4}, {"architecture": "resnet"}], ids=str)
def test_pictures_of_other_channels_and_other_architectures_copy(
    changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming_conv_tile, "_LEAST_SIDE", 256)
    for given, has_one in (({}, True), (changes, False)):
        model = make_stylegan2(resolution=256, channel_base=4096, channel_max=16, **given)
        plan = build_plan(model.spec, PlanKey("model", "synthesis", 1, 256, "fp16"))
        assert (lower(plan, model.weights, H200).zero_copy is not None) == has_one


def test_a_layer_that_is_bent_before_torgb_leaves_the_picture_to_another_kernel() -> None:
    for layer, has_one in (("b512.conv1", True), ("b1024.conv1", False)):
        edits = PlanEdits(bent=(layer,))
        plan = build_plan(LARGE.spec, PlanKey("model", "synthesis", 1, 1024, "fp16", "", edits))
        assert (lower(plan, LARGE.weights, H200).zero_copy is not None) == has_one


@pytest.mark.parametrize("precision", ["fp16", "fp8"])
@pytest.mark.parametrize("side", [512, 1024])
def test_it_compiles_without_spills_and_fits(side: int, precision: Precision) -> None:
    launch = zero_copy_of(scheduled(side=side, precision=precision))
    assert_compiles(launch.recipe, "sm_90a", launch.block[0], is_heavy=False)
    declared = statistics_of(launch.recipe, "sm_90a").shared_nbytes
    assert launch.shared_nbytes + declared <= H200.shared_nbytes_per_block
