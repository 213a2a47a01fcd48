"""Blocks of an up-convolution's launch that add up the picture of the toRGB before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpu_backend.cuda.launches.conv_work import PictureSum
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.picture_beside import Grid, picture_beside, picture_defines
from gpu_backend.cuda.schedule import Schedule
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey
from tests.helpers.conv_cases import filter_taps
from tests.helpers.networks import make_stylegan2

TARGET = Target("sm_90a", 132, 232448, TileTable("sm_90a", 132, shared_nbytes_per_block=232448))
SUM = PictureSum("b16.torgb", 16, 3, "bias", None, "b16/rgb", 4, "image/8", "image/16", (0.125, 0.375, 0.375, 0.125))
WEIGHTS = {"bias": np.zeros(3, np.float32)}


def schedule_of(*, batch: int = 1, target: Target = TARGET, fir: tuple[float, ...] | None = None) -> Schedule:
    model = make_stylegan2(channel_max=16) if fir is None else make_stylegan2(channel_max=16, fir=fir)
    plan = build_plan(model.spec, PlanKey("model", "synthesis", batch, model.spec.resolution, "fp16"))
    return lower(plan, model.weights, target)


@pytest.mark.parametrize(
    ("grid", "threads", "expected"),
    [
        ((1, 32, 4), 96, (1, 33, 4)),
        ((16, 8, 1), 384, (17, 8, 1)),
        ((130, 2, 1), 384, (131, 2, 1)),
    ],
)
def test_the_axis_that_needs_fewer_blocks_becomes_longer(grid: Grid, threads: int, expected: Grid) -> None:
    beside = picture_beside(SUM, WEIGHTS, 1, grid, threads, 132)
    assert beside.grid == expected
    assert (int(beside.arguments["grid_columns"]), int(beside.arguments["grid_rows"])) == grid[:2]  # type: ignore[arg-type]
    added = np.prod(expected) - np.prod(grid)
    assert 1 <= int(beside.arguments["picture_blocks"]) <= added  # type: ignore[arg-type]


def test_blocks_for_a_picture_fill_what_idles_and_are_a_few_at_least() -> None:
    large = replace(SUM, side=256)
    blocks = [
        int(picture_beside(large, WEIGHTS, 1, grid, 384, 132).arguments["picture_blocks"])  # type: ignore[arg-type]
        for grid in ((120, 1, 1), (132, 1, 1), (33, 1, 1))
    ]
    assert blocks == [12, 4, 43]


def test_a_convolution_alone_keeps_its_grid_and_compiles_without_a_picture() -> None:
    beside = picture_beside(None, WEIGHTS, 1, (16, 8, 1), 384, 132)
    assert (beside.grid, beside.regions, beside.layers) == ((16, 8, 1), (), ())
    assert picture_defines(None) == {"ADDS_PICTURE": 0, "IMG_CHANNELS": 1}
    assert picture_defines(SUM) == {"ADDS_PICTURE": 1, "IMG_CHANNELS": 3}


def test_pictures_before_the_last_have_no_launch_of_their_own() -> None:
    launches = schedule_of().launches
    assert [launch.layer for launch in launches if launch.label == "to_rgb"] in ([], ["synthesis.b16.torgb"])
    beside = [launch.pictures for launch in launches if launch.label == "modulated_up_conv"]
    assert beside == [("synthesis.b4.torgb",), ("synthesis.b8.torgb",)]


def test_a_large_sum_or_another_filter_keeps_its_launch() -> None:
    for schedule in (schedule_of(fir=filter_taps(6)), schedule_of(target=replace(TARGET, adds_pictures=False))):
        layers = [launch.layer for launch in schedule.launches if launch.label == "to_rgb"]
        assert {"synthesis.b4.torgb", "synthesis.b8.torgb"} - set(layers) <= {"synthesis.b4.torgb"}
        assert "synthesis.b8.torgb" in layers
    ops = {launch.layer: launch.op for launch in schedule.launches}
    assert ops["synthesis.b8.torgb"] == "to_rgb"
