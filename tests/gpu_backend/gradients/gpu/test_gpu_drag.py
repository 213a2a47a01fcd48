"""Drags by own kernels: their twins on the CPU, and the kernels on a GPU, do what torch does."""

from __future__ import annotations

import gc
import logging
import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gpu_backend.cuda.driver.probe import Gpu, Probe
from gpu_backend.errors import DeviceError, RequestError
from gpu_backend.gradients import own_kernels
from gpu_backend.gradients.drag import DragOptimizer
from gpu_backend.gradients.drag_engine import TorchEngine
from gpu_backend.gradients.drag_settings import DragSettings, Handle
from gpu_backend.gradients.gpu import drag as gpu_drag
from gpu_backend.gradients.gpu.drag import GpuDrag
from gpu_backend.gradients.gpu.open_network import GpuGradients, packed_network
from gpu_backend.gradients.gpu.packed_network import PackedNetwork
from gpu_backend.gradients.latents import latent_statistics
from gpu_backend.gradients.network import DifferentiableNetwork, differentiable_network
from gpu_backend.gradients.objective import DragTerms
from gpu_backend.gradients.opening import open_gradients
from gpu_backend.gradients.own_kernels import OwnKernels, why_no_kernels
from gpu_backend.model.model import Model
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.gradient_gpu import loaded_kernels
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan3 import make_stylegan3


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(channel_max=16, channel_base=256, channels={16: 12})


@pytest.fixture(scope="module")
def network(model: Model) -> DifferentiableNetwork:
    return differentiable_network(model)


def opened(network: DifferentiableNetwork, driver: TwinDriver | None = None) -> GpuGradients:
    return GpuGradients(packed_network(network, 16), (driver or TwinDriver()).as_driver(), twin_kernels(4), FAKE_GPU)


def terms_of(network: DifferentiableNetwork, *, mask: bool = True) -> DragTerms:
    spec = network.spec
    rows = np.random.default_rng(2).standard_normal((spec.num_ws, spec.w_dim)).astype(np.float32)
    kept = np.zeros((16, 16), np.float32)
    kept[:5] = 0.5
    deviation = np.linspace(0.5, 1.5, spec.w_dim, dtype=np.float32)
    return DragTerms(16, network.grid(16), rows, slice(1, 4), deviation, kept if mask else None, 10.0, 0.3)


POINTS = ((torch.tensor([4.0, 5.0]), torch.tensor([9.0, 6.5])), (torch.tensor([15.0, 3.0]), torch.tensor([11.0, 9.0])))


def test_steps_follow_those_of_torch(network: DifferentiableNetwork) -> None:
    gpu, terms = opened(network), terms_of(network)
    own = GpuDrag(gpu, terms, radius=1, rate=0.02)
    other = TorchEngine(network, terms, directions=None, radius=1, rate=0.02)
    pairs = [(own.motion(*points), other.motion(*points)) for points in POINTS]
    own.choose([pair[0] for pair in pairs])
    other.choose([pair[1] for pair in pairs])
    # The first step has no difference but rounding, of which torch's Adam makes a step.
    assert own.step().loss < 1e-5
    assert np.array_equal(own.rows, terms.start)
    for _, motion in pairs:
        motion.advance(other.first)
    for mine, theirs in pairs:
        assert mine.position.numpy() == pytest.approx(theirs.position.numpy(), abs=0.2)
        assert math.hypot(*mine.left) < 6.0
    losses = [(own.step().loss, other.step().loss) for _ in range(6)]
    assert losses[0][0] == pytest.approx(losses[0][1], rel=0.02)
    assert own.rows[[0, -1]] == pytest.approx(terms.start[[0, -1]]), "rows that may not change"
    moved, expected = own.rows - terms.start, other.rows - terms.start
    assert float((moved * expected).sum()) > 0.9 * float(np.linalg.norm(moved) * np.linalg.norm(expected))
    picture = other.picture(16)
    assert float((own.picture(16) - picture).abs().mean()) < 0.2 * float(picture.abs().mean())


def test_quick_steps_share_a_call_and_are_those_of_single_calls(
    network: DifferentiableNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    terms, drags = terms_of(network), []
    for most, together_s in ((1, 1e9), (5, 1e9), (5, 1e-9)):
        monkeypatch.setattr(gpu_drag, "_CALL_S", together_s)
        drag = GpuDrag(opened(network), terms, radius=1, rate=0.02)
        drag.choose([drag.motion(*points) for points in POINTS])
        found = [drag.step(most)]
        while sum(progress.iterations for progress in found) < 6:
            found.append(drag.step(most))
        drags.append((drag, [progress.iterations for progress in found], found[-1].loss))
    assert [calls for _, calls, _ in drags] == [6 * [1], [1, 5], 6 * [1]], "the first one shows how long steps take"
    for drag, _, loss in drags[1:]:
        assert np.array_equal(drag.rows, drags[0][0].rows)
        assert np.array_equal(drag.states, drags[0][0].states)
        assert loss == drags[0][2]


def test_steps_that_share_a_call_end_at_a_check(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(model)
    network.own_kernels = SimpleNamespace(
        problem="",
        drag=lambda network, terms, radius, rate: GpuDrag(opened(network), terms, radius=radius, rate=rate),
    )
    monkeypatch.setattr(gpu_drag, "_CALL_S", 1e9)
    drag = drag_of(model, network)
    checks: list[int] = []
    monkeypatch.setattr(drag, "_interval", 3)
    monkeypatch.setattr(drag, "_check_handles", partial(note_check, drag, checks))
    while len(checks) < 4:
        drag.step()
    assert checks == [0, 3, 6, 9]


def note_check(drag: DragOptimizer, checks: list[int]) -> None:
    """Note a check that finds nothing."""
    checks.append(drag.count)
    drag._seen, drag._since_check = torch.zeros(()), 0


def test_every_picture_is_the_present_one_also_after_the_first_which_are_replayed(
    network: DifferentiableNetwork,
) -> None:
    gpu = opened(network)
    drag = GpuDrag(gpu, terms_of(network), radius=1, rate=0.05)
    drag.choose([drag.motion(*POINTS[0])])
    pictures = []
    for _ in range(4):
        pictures.append((drag.picture(8), drag.picture(16)))
        expected = TorchEngine(
            network, replace(terms_of(network), start=drag.rows), directions=None, radius=1, rate=0.0
        )
        for found in pictures[-1]:
            wanted = expected.picture(found.shape[-1])
            assert float((found - wanted).abs().mean()) < 0.05 * float(wanted.abs().mean())
        drag.step()
        drag.step()
    assert not torch.equal(pictures[-1][1], pictures[-2][1])


def test_a_handle_that_does_not_pull_stays_and_moves_nothing(network: DifferentiableNetwork) -> None:
    drag = GpuDrag(opened(network), terms_of(network, mask=False), radius=1, rate=0.02)
    motion = drag.motion(*POINTS[0])
    drag.choose([])
    for _ in range(3):
        assert drag.step().loss < 1e-5
    assert motion.position.tolist() == [4.0, 5.0]
    assert not motion.has_arrived
    drag.choose([motion])
    drag.step()
    assert motion.position.tolist() != [4.0, 5.0]


def test_a_new_target_is_seen_by_the_next_step(network: DifferentiableNetwork) -> None:
    drag = GpuDrag(opened(network), terms_of(network), radius=1, rate=0.02)
    motion = drag.motion(*POINTS[0])
    drag.choose([motion])
    motion.aim(torch.tensor([4.0, 4.5]))
    assert motion.left == pytest.approx((0.0, -0.5))
    drag.step()
    assert motion.position.tolist() == [4.0, 4.5]
    drag.step()
    assert motion.has_arrived == (motion._state[7] <= 0.15)


def test_a_handle_takes_hold_of_what_is_at_another_place_and_goes_on_from_there(network: DifferentiableNetwork) -> None:
    drag = GpuDrag(opened(network), terms_of(network), radius=1, rate=0.02)
    near = torch.tensor([4.0, 5.5])
    first, second = drag.motion(torch.tensor([4.0, 5.0]), near), drag.motion(*POINTS[1])
    drag.choose([first, second])
    while not first.is_resting:
        drag.step()
    other = second.position
    place = torch.tensor([3.25, 4.5])
    drag.picture(16)
    drag.hold([(first, place)])
    assert first.position.tolist() == place.tolist()
    assert not first.is_resting
    assert not first.has_arrived
    assert second.position.tolist() == other.tolist()
    drag.step()
    assert first._state[7] < 0.02, "its template is what is there"
    assert first.position.tolist() == near.tolist()


def test_a_return_restores_the_remembered_latent_and_features_and_halves_the_steps(
    network: DifferentiableNetwork,
) -> None:
    terms = terms_of(network)
    drag = GpuDrag(opened(network), terms, radius=1, rate=0.02)
    motion = drag.motion(*POINTS[0])
    drag.choose([motion])
    drag.mark()
    assert not drag.go_back(), "there was no step"
    for _ in range(3):
        drag.step()
    assert not np.array_equal(drag.rows, terms.start)
    assert drag.go_back()
    assert np.array_equal(drag.rows, terms.start), "the start is remembered until a mark"
    for _ in range(3):
        drag.step()
    drag.mark()
    marked = drag.rows
    for _ in range(3):
        drag.step()
    assert not np.array_equal(drag.rows, marked)
    drag.picture(16)
    assert drag.go_back()
    assert np.array_equal(drag.rows, marked)

    place = torch.tensor([5.0, 5.0])
    drag.hold([(motion, place)])
    motion.aim(place)
    assert drag.step().loss < 1.0
    assert motion._state[7] < 0.02, "its template is what the remembered latent has there"
    changed = np.abs(drag.rows - marked)[terms.rows] / terms.deviation
    # The first step of Adam is as long as the rate, as a root of the mean square of a row.
    assert np.sqrt((changed**2).mean(1)) == pytest.approx(0.005, rel=0.01)


def test_a_new_drag_ends_the_one_before(network: DifferentiableNetwork) -> None:
    gpu = opened(network)
    before = GpuDrag(gpu, terms_of(network), radius=1, rate=0.02)
    before.choose([])
    before.step()
    after = GpuDrag(gpu, terms_of(network), radius=1, rate=0.02)
    after.choose([])
    with pytest.raises(RequestError, match="has ended"):
        before.step()
    after.step()


def test_everything_is_freed_with_the_drag_and_with_the_network(network: DifferentiableNetwork) -> None:
    driver = TwinDriver()
    gpu = opened(network, driver)
    held = len(driver.memory)
    drag = GpuDrag(gpu, terms_of(network), radius=1, rate=0.02)
    drag.choose([drag.motion(*POINTS[0])])
    drag.step()
    assert len(driver.memory) > held
    del drag
    gc.collect()
    assert len(driver.memory) == held
    del gpu
    gc.collect()
    assert not driver.memory


def test_the_check_finds_a_wrong_gradient(network: DifferentiableNetwork) -> None:
    gpu = opened(network)
    assert gpu.check(network) == ""
    wrong = differentiable_network(make_stylegan2(channel_max=16, channel_base=256, channels={16: 12}, seed=5))
    assert "cosine" in gpu.check(wrong)


def test_the_check_covers_the_skips_of_a_resnet() -> None:
    model = make_stylegan2(architecture="resnet", channel_max=32, channel_base=512)
    gpu = opened(differentiable_network(model))
    assert gpu.check(differentiable_network(model)) == ""
    assert gpu.check(differentiable_network(model), of_picture=True) == ""
    weight = "synthesis.b8.skip.weight"
    turned = replace(model, weights={**model.weights, weight: -model.weights[weight]})
    assert "cosine" in gpu.check(differentiable_network(turned))


class Opened:
    """Own kernels whose opening is scripted."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, network: DifferentiableNetwork, error: DeviceError | None
    ) -> None:
        self.driver, self.error = TwinDriver(), error
        self.sides: list[int] = []
        monkeypatch.setattr("gpu_backend.gradients.gpu.open_network.open_gpu_gradients", self._open)
        self.kernels = OwnKernels(FAKE_GPU)
        network.own_kernels = self.kernels

    def _open(self, network: DifferentiableNetwork, gpu: Gpu, packed: PackedNetwork) -> GpuGradients:
        self.sides.append(packed.side)
        if self.error is not None:
            raise self.error
        return opened(network, self.driver)


def drag_of(model: Model, network: DifferentiableNetwork) -> DragOptimizer:
    rows = np.tile(model.mean_w, (model.spec.num_ws, 1))
    handles = (Handle((4.0, 5.0), (9.0, 6.0)),)
    settings = DragSettings(check_every=4, radius=1, block=16, pins=((2.0, 12.0),))
    return DragOptimizer(
        network, latent_statistics(network, count=64), rows, model.facts.row_resolutions, handles, settings
    )


def test_a_drag_of_a_network_with_own_kernels_uses_them_and_opens_them_once(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = differentiable_network(model)
    scripted = Opened(monkeypatch, network, None)
    for _ in range(2):
        drag = drag_of(model, network)
        for _ in range(14):
            report = drag.step()
    assert len(scripted.sides) == 1
    assert report.step > 8
    assert not np.array_equal(drag.rows, np.tile(model.mean_w, (model.spec.num_ws, 1)))
    assert np.array_equal(np.frombuffer(drag.latent.rows, "<f4").reshape(drag.rows.shape), drag.rows)
    assert "gradient_rows" in scripted.driver.launched
    drag.set_target(0, (4.0, 4.0))
    assert drag.step().handles[0].distance < 6.0


def test_torch_takes_the_place_of_kernels_that_fail(
    model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    network = differentiable_network(model)
    scripted = Opened(monkeypatch, network, DeviceError("No memory is left."))
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            drag = drag_of(model, network)
            for _ in range(3):
                drag.step()
    assert len(scripted.sides) == 1
    assert scripted.kernels.problem == "No memory is left."
    assert "No memory is left." in caplog.text
    assert drag.report.step > 0


def test_networks_that_the_kernels_do_not_know_are_named() -> None:
    assert why_no_kernels(make_stylegan2().spec) == ""
    assert why_no_kernels(make_stylegan2(architecture="resnet").spec) == ""
    assert "1 channels" in why_no_kernels(make_stylegan2(img_channels=1).spec)
    assert "relu" in why_no_kernels(make_stylegan2(activation="relu").spec)
    assert "no StyleGAN2" in why_no_kernels(make_stylegan3().spec)


@pytest.mark.parametrize(
    ("device", "img_channels", "has_kernels"), [("auto", 3, True), ("cpu", 3, False), ("auto", 1, False)]
)
def test_a_network_that_is_opened_beside_a_gpu_has_own_kernels(
    monkeypatch: pytest.MonkeyPatch, device: str, img_channels: int, has_kernels: bool
) -> None:
    monkeypatch.setattr("gpu_backend.gradients.opening.probe", lambda: Probe((FAKE_GPU,), "", "580", "13.0"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    network = open_gradients(make_stylegan2(img_channels=img_channels), device=device)
    assert (network.own_kernels is not None) == has_kernels
    assert ("1 channels" in network.kernels_refusal) == (img_channels == 1)


def test_a_larger_block_than_before_opens_the_network_again(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    network = differentiable_network(model)
    scripted = Opened(monkeypatch, network, None)
    scripted.kernels.prepare(network)
    assert scripted.sides == [16]
    scripted.kernels._side = 8
    assert scripted.kernels.drag(network, terms_of(network), radius=1, rate=0.02) is not None
    assert scripted.sides == [16, 16]


@pytest.mark.gpu
def test_a_drag_on_a_gpu_steps_as_its_twins_do(gpu: Gpu, model: Model) -> None:
    network = differentiable_network(model)
    kernels = own_kernels.OwnKernels(gpu)
    terms = terms_of(network)
    real = kernels.drag(network, terms, radius=1, rate=0.02)
    assert real is not None, kernels.problem
    assert_steps_are_those_of_twins(real, network, terms)


@pytest.mark.gpu
def test_a_drag_by_the_kernels_for_turing_steps_as_its_twins_do(gpu: Gpu, model: Model) -> None:
    from gpu_backend.cuda.driver.gpu_driver import GpuDriver

    network = differentiable_network(model)
    terms = terms_of(network)
    driver = GpuDriver(gpu.index)
    driver.enter()
    kernels = loaded_kernels(driver, gpu, 4, of_turing=True)
    real = GpuDrag(GpuGradients(packed_network(network, 16), driver, kernels, gpu), terms, radius=1, rate=0.02)
    assert_steps_are_those_of_twins(real, network, terms)


def assert_steps_are_those_of_twins(real: GpuDrag, network: DifferentiableNetwork, terms: DragTerms) -> None:
    twin = GpuDrag(opened(network), terms, radius=1, rate=0.02)
    motions = [(real.motion(*points), twin.motion(*points)) for points in POINTS]
    real.choose([pair[0] for pair in motions])
    twin.choose([pair[1] for pair in motions])
    assert real.step().loss < 1e-5
    twin.step()
    for mine, theirs in motions:
        assert mine.position.numpy() == pytest.approx(theirs.position.numpy(), abs=1e-3)
    assert real.step().loss == pytest.approx(twin.step().loss, rel=2e-2)
    moved, expected = real.rows - terms.start, twin.rows - terms.start
    assert float((moved * expected).sum()) > 0.9 * float(np.linalg.norm(moved) * np.linalg.norm(expected))
