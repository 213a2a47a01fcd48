"""Drags of a tiny network: what they share, and which features they compare."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gpu_backend import (
    NO_EDITS,
    Bend,
    DifferentiableNetwork,
    DragMaker,
    DragSettings,
    Handle,
    LocalEdits,
    Model,
    Noise,
    RequestError,
    StoredLatent,
)
from gpu_backend.gradients import drag_maker
from gpu_backend.gradients.opening import open_gradients
from tests.helpers.networks import make_stylegan2


class Clock:
    """Goes on by a set time at each reading."""

    def __init__(self, step_s: float) -> None:
        self.now_s, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now_s += self.step_s
        return self.now_s


MODEL = make_stylegan2(resolution=64, w_dim=8)
HANDLES = [Handle((20.0, 20.0), (24.0, 20.0))]


@pytest.fixture(autouse=True)
def _without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU every block is fast enough."""
    monkeypatch.setattr(drag_maker, "open_gradients", lambda model, noise: open_gradients(model, noise, "cpu"))


def one_row(value: float = 0.0) -> StoredLatent:
    return StoredLatent(np.full(8, value, "<f4").tobytes(), 1, 8)


def block_of(maker: DragMaker, settings: DragSettings | None = None) -> int:
    drag = maker.make(MODEL, Noise(), NO_EDITS, one_row(), HANDLES, settings or DragSettings())
    return drag._drag._engine.grid.rate


def test_a_drag_starts_at_one_row_repeated_and_reports_its_latent() -> None:
    drag = DragMaker(Clock(0.0)).make(MODEL, Noise(), NO_EDITS, one_row(0.5), HANDLES, DragSettings())
    assert drag.latent.num_ws == MODEL.facts.num_ws
    assert set(np.frombuffer(drag.latent.rows, "<f4")) == {0.5}
    drag.set_target(0, (30.0, 20.0))
    drag.step()
    assert drag.report.handles[0].distance == pytest.approx(10.0, abs=1e-3)


def test_the_network_is_opened_once_for_a_model_and_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Noise] = []
    real = open_gradients

    def counted(model: object, noise: Noise) -> object:
        opened.append(noise)
        return real(MODEL, noise, "cpu")

    monkeypatch.setattr(drag_maker, "open_gradients", counted)
    maker = DragMaker(Clock(0.0))
    maker.prepare(MODEL, Noise(), NO_EDITS)
    block_of(maker)
    assert len(opened) == 1
    maker.make(MODEL, Noise(gain=0.5), NO_EDITS, one_row(), HANDLES, DragSettings())
    assert len(opened) == 2


def test_the_features_are_the_finest_whose_step_is_fast_enough() -> None:
    assert block_of(DragMaker(Clock(0.01))) == 16
    large = make_stylegan2(resolution=128, channel_base=512, channel_max=4)

    def block(step_s: float, settings: DragSettings) -> int:
        drag = DragMaker(Clock(step_s)).make(large, Noise(), NO_EDITS, one_row(), HANDLES, settings)
        return drag._drag._engine.grid.rate

    assert block(0.01, DragSettings()) == 32
    assert block(1.0, DragSettings()) == 16, "three passes take three seconds"
    assert block(1.0, DragSettings(block=32)) == 32, "a chosen block stays"


def test_a_measured_step_counts_more_than_the_estimate() -> None:
    large = make_stylegan2(resolution=128, channel_base=512, channel_max=4)
    clock = Clock(0.01)
    maker = DragMaker(clock)
    drag = maker.make(large, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    clock.step_s = 1.0
    while drag.report.step == 0:
        drag.step()
    again = maker.make(large, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    assert again._drag._engine.grid.rate == 16


@pytest.mark.parametrize(("step_s", "passes"), [(1.0, 0), (0.2, 2)])
def test_passes_of_a_block_that_is_far_too_slow_are_timed_once(
    monkeypatch: pytest.MonkeyPatch, step_s: float, passes: int
) -> None:
    large = make_stylegan2(resolution=128, channel_base=512, channel_max=4)
    maker = DragMaker(Clock(step_s))
    maker.prepare(large, Noise(), NO_EDITS)
    network = maker._edited
    assert network is not None
    blocks: list[int] = []
    plain = network.features

    def features(ws: torch.Tensor, block: int) -> torch.Tensor:
        blocks.append(block)
        return plain(ws, block)

    monkeypatch.setattr(network, "features", features)
    drag = maker.make(large, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    assert drag._drag._engine.grid.rate == 16
    assert blocks.count(32) == passes, "a busy machine is asked again"


def test_a_latent_of_another_model_is_refused() -> None:
    with pytest.raises(RequestError, match="rows of"):
        DragMaker(Clock(0.0)).make(
            MODEL, Noise(), NO_EDITS, StoredLatent(np.zeros(10, "<f4").tobytes(), 1, 10), HANDLES, DragSettings()
        )


class Kernels:
    """Own kernels of a GPU that leave each drag to torch."""

    problem = ""

    def __init__(self) -> None:
        self.prepared = self.drags = 0

    def prepare(self, network: object) -> None:
        self.prepared += 1

    def drag(self, *terms: object, **numbers: object) -> None:
        self.drags += 1

    def passes(self, *network: object, **samples: object) -> None:
        """Leave searches to torch, too."""

    def features(self, network: object, features: object, samples: int) -> object:
        return features


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Kernels:
    made = Kernels()

    def opened(model: Model, noise: Noise) -> DifferentiableNetwork:
        network = open_gradients(model, noise, "cpu")
        network.own_kernels = made
        return network

    monkeypatch.setattr(drag_maker, "open_gradients", opened)
    return made


def test_torch_drags_a_picture_with_edits_and_the_maker_says_that_this_is_slower(kernels: Kernels) -> None:
    maker = DragMaker(Clock(0.0))
    edits = LocalEdits((Bend("b8.conv0", "gain", 2.0),))
    maker.prepare(MODEL, Noise(), edits)
    maker.make(MODEL, Noise(), edits, one_row(), HANDLES, DragSettings())
    assert (kernels.prepared, kernels.drags) == (0, 0)
    assert maker.slower_because == drag_maker.SLOWER_WITH_EDITS
    maker.make(MODEL, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    assert kernels.drags == 1
    assert maker.slower_because == ""


def test_the_maker_says_why_a_gpus_own_kernels_do_not_drag_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(model: Model, noise: Noise) -> DifferentiableNetwork:
        network = open_gradients(model, noise, "cpu")
        network.kernels_refusal = "the network's pictures have 1 channels"
        return network

    monkeypatch.setattr(drag_maker, "open_gradients", opened)
    maker = DragMaker(Clock(0.0))
    maker.make(MODEL, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    assert maker.slower_because.endswith("than the GPU's own kernels: the network's pictures have 1 channels.")


def test_a_drag_follows_the_picture_with_its_edits() -> None:
    maker = DragMaker(Clock(0.0))
    edits = LocalEdits((Bend("b4.conv1", "move", 0.25),))
    plain = maker.make(MODEL, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())
    edited = maker.make(MODEL, Noise(), edits, one_row(), HANDLES, DragSettings())
    first, moved = (drag._drag._engine.first for drag in (plain, edited))
    assert float((first - moved).abs().mean()) > 0.01 * float(first.abs().mean())


def test_features_are_compared_after_the_last_layer_that_moves_the_picture() -> None:
    maker = DragMaker(Clock(1.0))
    for layer, block in (("b32.conv0", 32), ("b8.conv0", 16), ("b64.conv0", 16)):
        edits = LocalEdits((Bend(layer, "turn", 20.0),))
        drag = maker.make(MODEL, Noise(), edits, one_row(), HANDLES, DragSettings())
        assert drag._drag._engine.grid.rate == block


def test_own_kernels_are_made_ready_before_the_first_drag_and_compare_the_default_block(kernels: Kernels) -> None:
    large = make_stylegan2(resolution=128, channel_base=512, channel_max=4)
    slow = DragMaker(Clock(1.0))
    slow.prepare(large, Noise(), NO_EDITS)
    assert kernels.prepared == 1
    assert slow.make(large, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())._drag._engine.grid.rate == 32
    kernels.problem = "No memory is left."
    assert slow.make(large, Noise(), NO_EDITS, one_row(), HANDLES, DragSettings())._drag._engine.grid.rate == 16
