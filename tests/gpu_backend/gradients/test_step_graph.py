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


def test_calls_are_replayed_after_a_warm_up() -> None:
    result, calls = torch.zeros(1), []

    def work() -> torch.Tensor:
        calls.append(gc.isenabled())
        return result

    step = StepGraph(work, captured=True, measured=False)
    for _ in range(4):
        assert step() is result
    assert len(calls) == 2, "one warm-up, and the capture"
    assert PlainGraph.replays == 3
    assert calls == [True, False], "what a collection frees on this thread would break the capture"
    assert gc.isenabled()


def test_calls_go_on_one_by_one_after_a_capture_that_failed(caplog: pytest.LogCaptureFixture) -> None:
    result, calls = torch.zeros(1), []

    def work() -> torch.Tensor:
        calls.append(gc.isenabled())
        if len(calls) == 2:
            raise RuntimeError("operation failed due to a previous error during capture")
        return result

    step = StepGraph(work, captured=True, measured=False)
    step()
    with caplog.at_level("WARNING"):
        assert step() is result
        assert step() is result
    assert "is not captured as a CUDA graph" in caplog.text
    caplog.clear()
    assert gc.isenabled()
    assert PlainGraph.replays == 0
