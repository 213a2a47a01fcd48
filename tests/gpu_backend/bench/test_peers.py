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
from gpu_backend.bench.contender import Case
from gpu_backend.bench.plain_stylegan2 import PlainPicture
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.model.spec import StyleGAN2Spec


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
    captured = vars(peers)["_captured"](net, torch.ones(1, 3), lambda: None)
    del net
    gc.collect()
    assert kept() is not None
    rows = torch.full((1, 3), 5.0)
    assert captured(rows) is captured(rows)
    del captured
    gc.collect()
    assert kept() is None


@pytest.mark.gpu
def test_the_memory_of_a_peer_is_its_own_whatever_ran_before_it(gpu: Gpu) -> None:
    spec, device = random_model(shape_of("cifar32")).spec, torch.device("cuda", gpu.index)

    assert isinstance(spec, StyleGAN2Spec)

    def held(who: str, batch: int) -> int:
        peer = peers.Peer(Case(who, "fp16", batch), spec, device)
        peer.prepare()
        peer.times_ms(2)
        peer.settle()
        peer.times_ms(2)
        peer.close()
        assert peer.nbytes is not None
        return peer.nbytes

    alone = {who: held(who, 1) for who in ("eager", "channels-last", "graph")}
    held("graph", 32)
    after = {who: held(who, 1) for who in alone}
    weights = 2 * sum(weight.numel() for weight in PlainPicture(spec).parameters())
    for who, nbytes in alone.items():
        assert nbytes >= weights
        assert after[who] == pytest.approx(nbytes, rel=0.2)
