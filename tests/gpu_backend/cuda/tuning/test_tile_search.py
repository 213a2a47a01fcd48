from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.tuning.tile_search import (
    AT_ONCE,
    Refused,
    TileFinding,
    TileProgress,
    findings_of,
    resembles,
    search_steps,
)
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile

SHAPE = ConvShape("conv", 64, 512, 512, 1)
TILE = ConvTile(8, 16, 64, 32, 3, 2, 2)
SMALL, LARGE, DEEP, SPLIT = (
    replace(TILE, rows=4),
    replace(TILE, channels=128),
    replace(TILE, depth=64),
    replace(TILE, split_k=4),
)
ALL = (TILE, SMALL, LARGE, DEEP, SPLIT)


def in_use(shape: ConvShape) -> ConvTile:
    return TILE


@dataclass
class FakePreparation:
    """Kernels that were compiled beforehand."""

    is_done: bool = True
    waits: int = 0

    def wait(self) -> None:
        self.waits += 1
        self.is_done = True


@dataclass
class FakeTimer:
    """Knows the times beforehand; a clock that it moves by a second a timing."""

    times: Mapping[ConvTile, float | str]
    wrong: Mapping[ConvTile, str] = field(default_factory=dict)
    first: Mapping[ConvTile, float] = field(default_factory=dict)
    now: float = 0.0
    prepared: list[tuple[ConvShape, int]] = field(default_factory=list)
    timed: list[ConvTile] = field(default_factory=list)
    preparation: FakePreparation = field(default_factory=FakePreparation)

    def prepare(self, shape: ConvShape, tiles: Sequence[ConvTile]) -> FakePreparation:
        self.prepared.append((shape, len(tiles)))
        return self.preparation

    def time_us(self, shape: ConvShape, tile: ConvTile) -> float:
        self.now += 1
        self.timed.append(tile)
        found = self.times[tile]
        if isinstance(found, str):
            raise KernelError(found)
        return self.first.get(tile, found) if self.timed.count(tile) == 1 else found

    def problem(self, shape: ConvShape, tile: ConvTile) -> str:
        return self.wrong.get(tile, "")


def find(timer: FakeTimer, *, budget_s: float = math.inf, tiles: Sequence[ConvTile] = ALL) -> TileFinding:
    (finding,) = findings_of(
        search_steps([SHAPE], in_use, lambda shape: tiles, timer, budget_s=budget_s, clock=lambda: timer.now)
    )
    return finding


def test_the_fastest_tile_is_found() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)))
    finding = find(timer)
    assert (finding.tile, finding.time_us) == (LARGE, 7.0)
    assert (finding.before, finding.before_us) == (TILE, 10.0)
    assert (finding.tried, finding.candidates, finding.trials) == (5, 5, 3)
    assert timer.timed[0] == TILE
    assert timer.prepared == [(SHAPE, 5)], "compiled at once"


def test_a_wrong_tile_is_named_and_not_taken_however_fast() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)), {LARGE: "off by 3"})
    finding = find(timer)
    assert finding.tile == DEEP
    assert finding.refused == (Refused(LARGE, "off by 3", is_wrong=True),)


def test_a_tile_that_does_not_run_is_named_and_the_others_go_on() -> None:
    timer = FakeTimer(dict(zip(ALL, ("no", 12.0, "too much shared memory", 8.0, 30.0), strict=True)))
    finding = find(timer)
    assert finding.tile == DEEP
    assert finding.before_us == math.inf
    assert {(item.tile, item.is_wrong) for item in finding.refused} == {(TILE, False), (LARGE, False)}


def test_the_tile_in_use_is_replaced_if_it_is_wrong_even_by_a_slower_one() -> None:
    timer = FakeTimer(dict.fromkeys(ALL, 20.0) | {TILE: 5.0}, {TILE: "not a number"})
    finding = find(timer)
    assert finding.tile != TILE
    assert finding.before_us == math.inf


def test_the_tile_in_use_stays_if_nothing_is_clearly_faster() -> None:
    timer = FakeTimer(dict.fromkeys(ALL, 9.95) | {TILE: 10.0})
    assert find(timer).tile == TILE


def test_the_best_are_timed_again_so_that_one_lucky_timing_decides_nothing() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 9.0, 8.0, 30.0), strict=True)), first={SMALL: 1.0})
    assert find(timer).tile == DEEP


def test_tiles_that_were_compiled_in_the_last_of_the_time_are_timed_as_long_as_that_took() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)))

    @dataclass
    class Slow(FakePreparation):
        seconds: float = 3.0

        def wait(self) -> None:
            super().wait()
            timer.now += self.seconds if self.waits == 1 else 0

    timer.preparation = Slow()
    finding = find(timer, budget_s=2)
    assert timer.timed[:3] == list(ALL[:3])
    assert (finding.tried, finding.candidates) == (3, 5)
    many = tuple(replace(TILE, depth=16 * (1 + number)) for number in range(100))
    timer = FakeTimer(dict.fromkeys((*many, TILE), 10.0))
    timer.preparation = Slow(seconds=100)
    find(timer, tiles=many, budget_s=2)
    assert [count for _, count in timer.prepared] == [AT_ONCE], "no other group is compiled after the end"


def test_a_shape_for_which_nothing_is_right_gives_no_finding() -> None:
    timer = FakeTimer(dict.fromkeys(ALL, 1.0), dict.fromkeys(ALL, "wrong"))
    assert list(findings_of(search_steps([SHAPE], in_use, lambda shape: ALL, timer))) == []


def test_a_budget_is_shared_and_every_shape_has_its_tile_in_use_timed() -> None:
    many = tuple(replace(TILE, depth=16 * (1 + number)) for number in range(100))
    timer = FakeTimer(dict.fromkeys((*many, TILE), 10.0))
    shapes = [replace(SHAPE, batch=batch) for batch in (1, 2, 4)]
    findings = list(
        findings_of(search_steps(shapes, in_use, lambda shape: many, timer, budget_s=120, clock=lambda: timer.now))
    )
    assert [finding.shape for finding in findings] == shapes
    assert 30 <= findings[0].tried <= 41, "a third of the time"
    assert timer.now <= 120 + 3 * 20
    late = FakeTimer(timer.times)
    findings = list(
        findings_of(search_steps(shapes, in_use, lambda shape: many, late, budget_s=0, clock=lambda: late.now))
    )
    assert [finding.tried for finding in findings] == [1, 1, 1]
    assert [count for _, count in late.prepared] == [1, 1, 1], "nothing is compiled that is not timed"


def test_a_search_follows_what_is_good_and_ends_when_nothing_is_gained() -> None:
    many = [
        ConvTile(rows, 16, channels, depth, stages, 2, 2)
        for stages in (2, 3, 4)
        for channels in (16, 32, 64, 128)
        for depth in (16, 32, 64)
        for rows in range(1, 33)
    ]
    timer = FakeTimer({tile: 5.0 + abs(tile.rows - 29) + tile.stages for tile in many} | {TILE: 50.0})
    finding = find(timer, tiles=many)
    assert (finding.tile.rows, finding.tile.stages) == (29, 2)
    assert finding.tried < len(many) / 2
    assert resembles(TILE, replace(TILE, rows=4, depth=64, split_k=8))
    assert not resembles(TILE, replace(TILE, rows=4, depth=64, stages=2))


def test_half_of_the_next_tiles_resemble_the_best_so_far_and_the_others_are_the_likeliest() -> None:
    likeliest = [ConvTile(rows, 16, 64, 32, 2, 1, 1) for rows in range(1, AT_ONCE)]
    as_in_use = [replace(TILE, rows=rows) for rows in range(9, 9 + AT_ONCE)]
    as_the_best = [replace(likeliest[0], rows=rows) for rows in range(AT_ONCE, 2 * AT_ONCE)]
    assert not resembles(TILE, likeliest[0])
    tiles = [*likeliest, *as_in_use, *as_the_best]
    timer = FakeTimer({tile: 5.0 + tile.rows for tile in tiles} | {TILE: 99.0})
    find(timer, tiles=tiles)
    half = AT_ONCE // 2
    assert timer.timed[:AT_ONCE] == [TILE, *likeliest]
    assert timer.timed[AT_ONCE : 2 * AT_ONCE] == [*as_the_best[:half], *as_in_use[:half]]


def test_a_search_reports_progress() -> None:
    told: list[TileProgress] = []
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)))
    list(findings_of(search_steps([SHAPE], in_use, lambda shape: ALL, timer), told.append))
    assert [item.tried for item in told[:6]] == [0, 1, 2, 3, 4, 5]
    assert {item.tried for item in told[6:]} == {5}, "the best are timed again, and checked"
    assert (told[-1].number, told[-1].shapes, told[-1].best_us) == (1, 1, 7.0)


def test_tiles_are_listed_in_steps_that_report_no_candidates_yet() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)))
    steps = search_steps([SHAPE], in_use, lambda shape: (None, None, *ALL), timer)
    listing = [next(steps), next(steps)]
    assert listing == [TileProgress(SHAPE, 1, 1, 0, 0, math.inf)] * 2
    assert timer.prepared == []
    (finding,) = findings_of(steps)
    assert (finding.tile, finding.candidates) == (LARGE, 5)


def test_tiles_found_before_an_interruption_are_kept() -> None:
    shapes = [SHAPE, replace(SHAPE, batch=2)]

    def candidates(shape: ConvShape) -> Iterator[ConvTile]:
        if shape.batch == 2:
            raise KeyboardInterrupt
        yield from ALL

    found: list[TileFinding] = []
    timer = FakeTimer(dict.fromkeys(ALL, 9.0) | {TILE: 10.0})
    with pytest.raises(KeyboardInterrupt):
        found.extend(findings_of(search_steps(shapes, in_use, candidates, timer)))
    assert [finding.shape for finding in found] == [SHAPE]


def test_a_step_times_or_checks_one_tile_and_kernels_are_waited_for_between_two_steps() -> None:
    timer = FakeTimer(dict(zip(ALL, (10.0, 12.0, 7.0, 8.0, 30.0), strict=True)))
    timer.preparation.is_done = False
    calls = []
    for step in search_steps([SHAPE], in_use, lambda shape: ALL, timer):
        calls.append(len(timer.timed))
        if step is timer.preparation:
            assert not timer.timed
            step.wait()
    assert max(after - before for before, after in itertools.pairwise(calls)) == 1
    assert timer.preparation.waits == 2, "the search itself takes the results"
