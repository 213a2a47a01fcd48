"""A ladder in steps, on the processor: a thread that renders between them is never kept waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gpu_backend.bench.ladder import Rung, RungResult, gains_of, rungs_of
from gpu_backend.bench.ladder_run import LadderRun
from gpu_backend.bench.ours import Ours
from gpu_backend.errors import CancelledError
from tests.helpers.networks import make_stylegan2

MODEL = make_stylegan2(resolution=16, channel_base=64, channel_max=4, z_dim=8, w_dim=8)
NAMES = [rung.what for rung in rungs_of("")]


@pytest.fixture
def make() -> Iterator[Callable[..., LadderRun]]:
    runs: list[LadderRun] = []

    def made(**changes: Any) -> LadderRun:
        runs.append(LadderRun(MODEL, "cpu", runs=3, **changes))
        return runs[-1]

    yield made
    for run in runs:
        run.close()


def take(run: LadderRun, steps: int = 1000) -> list[RungResult]:
    """Take steps as the render thread does, which waits for compilers in between; return what they found."""
    found = []
    for _ in range(steps):
        if run.is_done:
            break
        result = run.step()
        if run._compiling is not None:
            run._compiling.exception()
        found += [] if result is None else [result]
    return found


def test_rungs_are_found_in_their_order_each_after_many_steps(make: Callable[..., LadderRun]) -> None:
    run = make()
    assert run.state.share == 0.0
    found = take(run)
    assert found == run.found
    assert [climbed.rung.what for climbed in found] == NAMES
    assert all(climbed.image_ms > 0 and climbed.runs == 3 and not climbed.problem for climbed in found)
    assert all(climbed.largest_difference <= 1 for climbed in found)
    assert [climbed.image_j for climbed in found] == [None] * len(found), "a processor's energy is unknown"
    assert (run.is_done, run.state.share, run.state.rung) == (True, 1.0, None)


def test_while_kernels_compile_there_is_no_step_to_take(make: Callable[..., LadderRun]) -> None:
    gate = threading.Event()
    compiled: list[str] = []

    def compile_rung(model: Any, device: str, rung: Rung, should_cancel: Callable[[], bool]) -> None:
        compiled.append(rung.what)
        gate.wait()

    run = make(compile_rung=compile_rung)
    try:
        assert run.step() is None
        assert run.is_waiting
        assert (run.state.is_compiling, run.state.rung) == (True, rungs_of("")[0])
        assert run.step() is None
        assert not run.found
    finally:
        gate.set()
    assert len(take(run)) == len(NAMES)
    assert compiled == NAMES


def test_a_rung_that_fails_says_why_and_the_others_are_measured(make: Callable[..., LadderRun]) -> None:
    def compile_rung(model: Any, device: str, rung: Rung, should_cancel: Callable[[], bool]) -> None:
        if rung.what == NAMES[0]:
            raise RuntimeError("It broke.")

    found = take(make(compile_rung=compile_rung))
    assert [climbed.problem for climbed in found] == ["RuntimeError: It broke.", "", ""]
    assert gains_of(found, 1) is None, "it is the first that was measured"
    gains = gains_of(found, 2)
    assert gains is not None
    assert gains[0] == gains[1] == found[1].image_ms / found[2].image_ms


def test_a_run_that_gives_way_is_repeated(make: Callable[..., LadderRun], monkeypatch: pytest.MonkeyPatch) -> None:
    times_ms = Ours.times_ms
    calls: list[bool] = []

    def give_way(ours: Any, runs: int, should_cancel: Callable[[], bool]) -> list[float]:
        calls.append(should_cancel())
        if calls[-1]:
            raise CancelledError("A preview waits.")
        return list(times_ms(ours, runs, should_cancel))

    monkeypatch.setattr(Ours, "times_ms", give_way)
    run = make()
    take(run, 5)
    for _ in range(7):
        assert run.step(lambda: True) is None
    assert calls[-1]
    assert all(not climbed.problem for climbed in take(run))
    assert len(run.found) == len(NAMES)


def test_closing_ends_what_is_compiled_and_measured(make: Callable[..., LadderRun]) -> None:
    run = make()
    take(run, 6)
    run.close()
    run.close()
    assert run.is_done
    assert run.step() is None
