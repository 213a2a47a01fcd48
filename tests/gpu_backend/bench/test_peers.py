"""A captured network, without a GPU: what a replay reads is still there."""

from __future__ import annotations

import gc
import weakref
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from gpu_backend.bench import peers


class FakeStream:
    def wait_stream(self, other: Any) -> None:
        pass


class FakeGraph:
    replays = 0

    def replay(self) -> None:
        self.replays += 1


class Doubling(nn.Module):
    def forward(self, rows: Tensor) -> Tensor:
        return 2 * rows


def test_a_captured_network_keeps_the_weights_that_its_graph_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, fake in {
        "Stream": lambda device: FakeStream(),
        "current_stream": lambda device: FakeStream(),
        "stream": lambda stream: nullcontext(),
        "CUDAGraph": FakeGraph,
        "graph": lambda graph: nullcontext(),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    net = Doubling()
    kept = weakref.ref(net)
    captured = vars(peers)["_captured"](net, torch.ones(1, 3))
    del net
    gc.collect()
    assert kept() is not None
    rows = torch.full((1, 3), 5.0)
    assert captured(rows) is captured(rows)
    del captured
    gc.collect()
    assert kept() is None
