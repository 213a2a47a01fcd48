"""Work is warmed up, captured once and replayed; what it returns belongs to the caller."""

import torch

from gpu_backend.training.replay import WARM_UP, Noted, Replayed
from tests.gpu_backend.training.fake_recorder import FakeRecorder


class Counter:
    """Work that counts how often it was done."""

    def __init__(self) -> None:
        self.total = torch.zeros([])

    def count(self) -> Noted:
        self.total += 1
        return {"total": self.total.clone()}


def test_work_runs_three_times_as_it_is_and_is_captured_once() -> None:
    recorder, counter = FakeRecorder(), Counter()
    replayed = Replayed(counter.count, recorder)
    with recorder.beside():
        for turn in range(WARM_UP):
            assert replayed()["total"] == turn + 1
        assert recorder.events == []
        assert not replayed.is_settled
        kept = [replayed()["total"] for _ in range(2)]
    assert replayed.is_settled
    assert recorder.events == ["capture count", "replay count", "replay count"]
    assert kept == [WARM_UP + 1, WARM_UP + 2], "capturing does nothing, and metrics are copies"


def test_metrics_are_copied_before_another_graph_runs() -> None:
    recorder = FakeRecorder()
    first, second = (Replayed(Counter().count, recorder) for _ in range(2))
    with recorder.beside():
        for _ in range(WARM_UP):
            first(), second()
        kept = first()["total"]
        second()
    assert kept == WARM_UP + 1


def test_work_on_other_memory_is_captured_again() -> None:
    recorder, counter = FakeRecorder(), Counter()
    replayed = Replayed(counter.count, recorder)
    with recorder.beside():
        for _ in range(WARM_UP + 1):
            replayed()
        replayed.forget()
        for _ in range(WARM_UP):
            replayed()
        assert recorder.events == ["capture count", "replay count"]
        replayed()
    assert recorder.events == ["capture count", "replay count"] * 2


def test_without_a_recorder_work_runs_as_it_is() -> None:
    counter = Counter()
    replayed = Replayed(counter.count, None)
    for _ in range(WARM_UP + 2):
        replayed()
    assert replayed.is_settled
    assert counter.total == WARM_UP + 2
