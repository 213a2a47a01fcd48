"""Contenders are warmed up, take turns, and are named when they fail or when the time is over."""

from collections.abc import Callable

import pytest

from gpu_backend.bench import stopwatch as module
from gpu_backend.bench.contender import CannotRunError, Case
from gpu_backend.bench.stopwatch import SPENT, STOPPED, Budget, Effort, Stopwatch, why
from gpu_backend.errors import DeviceMemoryError

EFFORT = Effort(runs=6, warm_up=2, warm_up_s=0.0, limit_s=1.0, least=3)


class Fake:
    """A contender that notes what is asked of it."""

    def __init__(
        self, who: str, log: list[str], *, ms: float = 1.0, fails: str = "", error: BaseException | None = None
    ) -> None:
        self.case = Case(who, "fp16", 2)
        self.nbytes = 7
        self.log = log
        self.ms = ms
        self.fails = fails
        self.error = error or RuntimeError("out of luck\nat some place")
        self.closed = 0

    def prepare(self) -> None:
        self._note("prepare")

    def settle(self) -> None:
        self._note("settle")

    def times_ms(self, runs: int) -> list[float]:
        self._note(f"run {runs}")
        return [self.ms] * runs

    def close(self) -> None:
        self.closed += 1

    def _note(self, what: str) -> None:
        self.log.append(f"{self.case.who} {what}")
        if self.fails and what.startswith(self.fails):
            raise self.error


def stopwatch(effort: Effort = EFFORT, seconds: float = 100.0) -> Stopwatch:
    return Stopwatch(effort, Budget(seconds), lambda what: None)


def test_a_contender_is_prepared_warmed_up_settled_and_run_at_once() -> None:
    log: list[str] = []
    fake = Fake("a", log)
    watch = stopwatch()
    watch.measure([fake], in_turns=False)
    assert log == ["a prepare", "a run 1", "a run 1", "a settle", "a run 6"]
    (row,) = watch.measurements
    assert (row.who, row.precision, row.batch, row.nbytes, row.warm_up, row.runs) == ("a", "fp16", 2, 7, 2, 6)
    assert (row.latency_ms, row.image_ms, row.images_per_s) == (1.0, 0.5, 2000.0)
    assert fake.closed == 1


def test_on_the_processor_contenders_take_turns() -> None:
    log: list[str] = []
    stopwatch().measure([Fake("a", log), Fake("b", log)], in_turns=True)
    turns = log[log.index("b settle") + 1 :]
    assert turns == ["a run 1", "b run 1"] * 6


def test_a_slow_contender_runs_less_often_but_not_less_than_the_least() -> None:
    log: list[str] = []
    watch = stopwatch()
    watch.measure([Fake("slow", log, ms=900.0), Fake("quick", log)], in_turns=True)
    assert {row.who: row.runs for row in watch.measurements} == {"slow": 3, "quick": 6}


@pytest.mark.parametrize("fails", ["prepare", "run", "settle"])
def test_a_failure_is_named_and_the_others_go_on(fails: str) -> None:
    log: list[str] = []
    bad, good = Fake("bad", log, fails=fails), Fake("good", log)
    watch = stopwatch()
    watch.measure([bad, good], in_turns=False)
    assert [row.who for row in watch.measurements] == ["good"]
    (skipped,) = watch.skipped
    assert skipped.what == "bad, fp16, batch 2"
    assert skipped.reason == "RuntimeError: out of luck"
    assert bad.closed >= 1


def test_a_failure_in_the_middle_of_the_turns_ends_them_for_one_only() -> None:
    log: list[str] = []
    watch = stopwatch()
    bad = Fake("bad", log)
    bad.times_ms = _failing_after(bad, 3)  # type: ignore[method-assign]
    watch.measure([bad, Fake("good", log)], in_turns=True)
    assert [row.who for row in watch.measurements] == ["good"]
    assert [item.what for item in watch.skipped] == ["bad, fp16, batch 2"]


def test_a_share_of_a_budget_is_an_equal_part_of_what_is_left() -> None:
    now = [0.0]
    budget = Budget(90.0, clock=lambda: now[0])
    now[0] = 30.0
    share = budget.share(3)
    now[0] = 49.0
    assert not share.is_spent
    now[0] = 50.0
    assert share.is_spent
    assert not budget.is_spent
    now[0] = 100.0
    assert budget.share(2).is_spent, "nothing is left"


def test_nothing_begins_after_the_budget() -> None:
    times = iter([0.0, 1.0, 11.0])
    log: list[str] = []
    watch = Stopwatch(EFFORT, Budget(10.0, clock=lambda: next(times)), lambda what: None)
    watch.measure([Fake("first", log), Fake("late", log)], in_turns=False)
    assert [row.who for row in watch.measurements] == ["first"]
    assert [(item.what, item.reason) for item in watch.skipped] == [("late, fp16, batch 2", SPENT)]
    assert "late prepare" not in log


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("moment", ["prepare", "settle", "run"])
def test_measurements_before_ctrl_c_are_kept_and_nothing_new_begins(moment: str, in_turns: bool) -> None:
    log: list[str] = []
    watch = stopwatch()
    fakes = [Fake("first", log), Fake("second", log, fails=moment, error=KeyboardInterrupt()), Fake("third", log)]
    watch.measure(fakes, in_turns=in_turns)
    watch.measure([Fake("fourth", log)], in_turns=in_turns)
    assert [row.who for row in watch.measurements] == ([] if in_turns else ["first"])
    missing = ["first", "second", "third", "fourth"][0 if in_turns else 1 :]
    assert [(item.what, item.reason) for item in watch.skipped] == [
        (f"{who}, fp16, batch 2", STOPPED) for who in missing
    ]
    assert "fourth prepare" not in log
    assert all(fake.closed for fake in fakes[:2])
    assert watch.attempt(lambda: log.append("late"), ["kernels"]) is None
    assert log[-1] != "late"
    assert watch.skipped[-1].what == "kernels"


def test_reasons_are_one_line() -> None:
    assert why(DeviceMemoryError("There is too little memory.")) == "out of memory"
    assert why(RuntimeError("CUDA out of memory. Tried to allocate\n20 GiB")) == "out of memory"
    wrapped = "backend='inductor' raised:\nRuntimeError: Failed to find C compiler."
    assert why(ValueError(wrapped)) == "ValueError: RuntimeError: Failed to find C compiler."
    assert why(CannotRunError("this GPU has no bf16")) == "this GPU has no bf16"
    assert why(KeyError()) == "KeyError"


def _failing_after(fake: Fake, calls: int) -> Callable[..., list[float]]:
    left = iter(range(calls))

    def times_ms(runs: int) -> list[float]:
        if next(left, None) is None:
            raise RuntimeError("lost")
        return [fake.ms] * runs

    return times_ms


def test_energy_is_measured_after_the_times_where_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENERGY_S", 0.0)
    log: list[str] = []
    counter = iter([100.0, 130.0])
    watch = Stopwatch(EFFORT, Budget(100.0), lambda what: None, lambda: next(counter))
    watch.measure([Fake("a", log)], in_turns=False)
    assert log[-2:] == ["a run 6", "a run 50"]
    (row,) = watch.measurements
    assert row.image_j == 30.0 / (50 * row.batch)
    assert row.runs == 6, "only times that were measured count"


def test_without_a_counter_and_on_the_processor_energy_is_unknown() -> None:
    log: list[str] = []
    watch = Stopwatch(EFFORT, Budget(100.0), lambda what: None, lambda: None)
    watch.measure([Fake("a", log)], in_turns=False)
    assert watch.measurements[0].image_j is None
    assert log[-1] == "a run 6"
