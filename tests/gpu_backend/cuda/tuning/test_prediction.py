"""Times that tuning kept order the tiles of shapes that it has not seen, where the model explains those it has."""

from __future__ import annotations

import functools
import math
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.cuda.tuning import timings
from gpu_backend.cuda.tuning.prediction import Prediction, PredictionQuality
from gpu_backend.cuda.tuning.timings import read_timings, save_timings, timings_path
from gpu_backend.ops.kernels.conv_candidates import candidates
from gpu_backend.ops.kernels.conv_tile import ConvGeometry, ConvShape, ConvTile

ROOT = Path(__file__).resolve().parents[4]
MULTIPROCESSORS = 108
SHAPES = tuple(
    ConvShape("conv", side, channels, channels, batch)
    for side, channels, batch in ((64, 128, 1), (32, 256, 1), (128, 64, 1), (64, 128, 4))
)
UNSEEN = ConvShape("conv", 32, 128, 256, 2)


@functools.cache
def tiles(shape: ConvShape) -> tuple[ConvTile, ...]:
    found = candidates(shape, "sm_80", MULTIPROCESSORS, 166912, taps=1, picture_channels=0)
    return found[:: max(1, len(found) // 60)]


def made_up_us(shape: ConvShape, tile: ConvTile) -> float:
    """A kernel that is limited by products, by reads, or by waiting for each step, whichever takes longest."""
    geometry = ConvGeometry(shape, tile)
    rounds = math.ceil(geometry.blocks / (MULTIPROCESSORS * tile.min_blocks))
    steps = shape.cin * 9 / (tile.split_k * tile.depth) * tile.row_tiles
    area = tile.rows * tile.columns
    products_us = steps * tile.depth * area * tile.channels / 4e6 * (1.0 + 16.0 / tile.channels)
    reads_us = steps * tile.depth * (area + tile.channels) / 1e6
    waits_us = steps * 0.4 / tile.stages
    return 2.0 + rounds * tile.min_blocks * max(products_us, reads_us, waits_us) + 0.3 * tile.split_k


def timed(*shapes: ConvShape) -> dict[ConvShape, dict[ConvTile, float]]:
    return {shape: {tile: made_up_us(shape, tile) for tile in tiles(shape)} for shape in shapes}


def test_the_fastest_tile_of_a_shape_that_was_not_seen_comes_within_a_third_of_the_trials() -> None:
    prediction = Prediction(timed(*SHAPES), MULTIPROCESSORS)
    quality = prediction.quality
    assert quality.is_trusted, quality
    assert quality.trials <= 1 / 3, quality
    assert quality.shapes == len(SHAPES)
    order = prediction.ordered(UNSEEN, tiles(UNSEEN))
    assert set(order) == set(tiles(UNSEEN))
    fastest = min(order, key=lambda tile: made_up_us(UNSEEN, tile))
    assert order.index(fastest) < len(order) / 3
    slowest = max(order, key=lambda tile: made_up_us(UNSEEN, tile))
    ratio = prediction.ratio(UNSEEN, slowest, fastest)
    assert ratio is not None
    assert ratio == pytest.approx(made_up_us(UNSEEN, slowest) / made_up_us(UNSEEN, fastest), rel=0.3)
    assert "candidates are tried in the predicted order" in quality.sentence


def test_times_of_an_h200_are_predicted_for_shapes_that_are_left_out() -> None:
    kept = read_timings(ROOT / "assets" / "results" / "2026-11-23-h200" / "tile-timings.jsonl")
    quality = Prediction(kept, 132).quality
    assert (quality.shapes, quality.timings) == (7, 196)
    assert quality.is_trusted, quality
    assert quality.trials <= 0.25, "in the order in which they were timed it is 0.37"
    assert quality.mean_error <= 0.12


def test_a_prediction_that_goes_on_from_an_earlier_one_is_that_of_all_timings() -> None:
    earlier = Prediction(timed(*SHAPES[:3]), MULTIPROCESSORS)
    more = timed(*SHAPES)
    del more[SHAPES[0]][tiles(SHAPES[0])[0]]
    later, afresh = Prediction(more, MULTIPROCESSORS, earlier), Prediction(more, MULTIPROCESSORS)
    assert later.quality == afresh.quality
    assert later.ordered(UNSEEN, tiles(UNSEEN)) == afresh.ordered(UNSEEN, tiles(UNSEEN))
    assert later.quality != Prediction(timed(*SHAPES), MULTIPROCESSORS).quality


def test_times_without_a_pattern_order_nothing() -> None:
    random = np.random.default_rng(0)
    noise = {shape: {tile: float(random.uniform(1, 9)) for tile in tiles(shape)} for shape in SHAPES}
    prediction = Prediction(noise, MULTIPROCESSORS)
    assert not prediction.quality.is_trusted
    assert prediction.ordered(UNSEEN, tiles(UNSEEN)) == tiles(UNSEEN)
    assert prediction.ratio(UNSEEN, *tiles(UNSEEN)[:2]) is None
    assert "too little to order candidates by" in prediction.quality.sentence
    assert "R²" in prediction.quality.phrase


def test_with_few_shapes_or_none_candidates_stay_as_they_come() -> None:
    for known in (timed(*SHAPES[:2]), {}):
        prediction = Prediction(known, MULTIPROCESSORS)
        assert prediction.quality == PredictionQuality(len(known), prediction.quality.timings, 0.0, math.inf, 1.0)
        assert not prediction.quality.is_judged
        assert prediction.quality.sentence.endswith("too few to judge.")
        assert prediction.ordered(UNSEEN, iter(tiles(UNSEEN))) == tiles(UNSEEN)


def test_timings_are_kept_beside_the_table_and_broken_lines_left_out(tmp_path: Path) -> None:
    path = timings_path(tmp_path / "deep" / "NVIDIA Fake.sm_80.json")
    assert path.name == "NVIDIA Fake.sm_80.timings.jsonl"
    assert read_timings(path) == {}
    kept = {SHAPES[0]: dict.fromkeys(tiles(SHAPES[0])[:3], 1.25)}
    save_timings(path, kept)
    assert read_timings(path) == kept
    line = path.read_text("utf-8")
    broken = ("{", "[]", '{"shape": 1}', line.replace("1.25", "-1"), line.replace("1.25", "NaN"), "[" * 5000)
    path.write_text(line + "\n".join(broken) + "\n", "utf-8")
    assert read_timings(path) == kept
    path.write_bytes(b"\xff\xfe")
    assert read_timings(path) == {}


def test_times_of_fp8_are_learned_too() -> None:
    shape = ConvShape("conv", 64, 128, 128, 8, "fp8")
    listed = candidates(shape, "sm_90a", 132, 232448)[:40]
    assert all(tile.mma == "wgmma" for tile in listed)
    quality = Prediction({shape: {tile: 10.0 + place for place, tile in enumerate(listed)}}, 132).quality
    assert quality.timings == 40


def test_timings_that_would_be_too_many_to_read_replace_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tiles.timings.jsonl"
    kept = {SHAPES[0]: dict.fromkeys(tiles(SHAPES[0])[:3], 1.25)}
    save_timings(path, kept)
    monkeypatch.setattr(timings, "_MOST_NBYTES", 2 * path.stat().st_size)
    with pytest.raises(OSError, match="too large"):
        save_timings(path, {shape: dict.fromkeys(tiles(shape)[:3], 1.25) for shape in SHAPES})
    assert read_timings(path) == kept
