"""The steps of a search as a CUDA graph, with a graph of Python in place of torch's."""

import contextlib
import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from gpu_backend.gradients.step_graph import StepGraph


class PlainGraph:
    """Replays nothing."""

    replays = 0

    def replay(self) -> None:
        PlainGraph.replays += 1


@pytest.fixture(autouse=True)
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    @contextlib.contextmanager
    def capturing(graph: PlainGraph, **modes: Any) -> Iterator[None]:
        yield

    PlainGraph.replays = 0
    monkeypatch.setattr(torch.cuda, "CUDAGraph", PlainGraph)
    monkeypatch.setattr(torch.cuda, "graph", capturing)
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    if not was_enabled:
        gc.disable()


@pytest.mark.parametrize("measured", [True, False])
def test_calls_are_replayed_at_once_or_after_cudnn_measured(measured: bool) -> None:
    result, calls = torch.zeros(1), []

    def work() -> torch.Tensor:
        calls.append(gc.isenabled())
        return result

    step = StepGraph(work, captured=True, measured=measured)
    for _ in range(5):
        assert step() is result
    warm_up = 3 if measured else 0
    assert PlainGraph.replays == 5 - warm_up
    assert calls == [True] * warm_up + [False], "what a collection frees on this thread would break the capture"
    assert gc.isenabled()


@pytest.mark.parametrize("failures", [1, 2])
def test_a_capture_that_failed_is_tried_once_more(failures: int, caplog: pytest.LogCaptureFixture) -> None:
    result, calls = torch.zeros(1), []

    def work() -> torch.Tensor:
        calls.append(gc.isenabled())
        if not calls[-1] and calls.count(False) <= failures:
            raise RuntimeError("operation failed due to a previous error during capture")
        return result

    step = StepGraph(work, captured=True, measured=False)
    with caplog.at_level("WARNING"):
        for _ in range(4):
            assert step() is result
    assert ("is not captured as a CUDA graph" in caplog.text) == (failures == 2)
    caplog.clear()
    assert gc.isenabled()
    assert PlainGraph.replays == (3 if failures == 1 else 0)
    assert calls.count(False) == 2


def test_numbers_of_each_call_are_there_while_the_next_one_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Happened:
        def record(self) -> None:
            pass

        def synchronize(self) -> None:
            pass

    monkeypatch.setattr(torch.cuda, "Event", Happened)
    empty = torch.empty

    def unpinned(shape: torch.Size, dtype: torch.dtype, pin_memory: bool) -> torch.Tensor:
        assert pin_memory
        return empty(shape, dtype=dtype)

    monkeypatch.setattr(torch, "empty", unpinned)
    total, seen = torch.zeros(1), []
    step = StepGraph(lambda: total.add_(1.0), captured=False)
    for numbers in step.results(3, ahead=True):
        seen.append((numbers, total.tolist()))
    assert seen == [([1.0], [2.0]), ([2.0], [3.0]), ([3.0], [3.0])], "and no call more than wanted"
    assert list(step.results(2, ahead=False)) == [[4.0], [5.0]]
