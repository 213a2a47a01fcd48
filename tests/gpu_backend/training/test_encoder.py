"""The training of an encoder on small networks: it learns, continues, and keeps the best."""

import logging
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import torch

from gpu_backend import EncoderSettings, EncoderTraining, Frame, Renderer, RenderRequest, RequestError
from gpu_backend.gradients import scale_learning
from gpu_backend.gradients.encoder import PictureEncoder, pooled
from gpu_backend.gradients.matched_drafts import MatchedDrafts
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.scale_learning import ScaleLearner
from gpu_backend.model import Model
from gpu_backend.training import encoder as module
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan3 import make_stylegan3


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(resolution=16, channel_max=8, channel_base=128, w_dim=8, z_dim=8, seed=2)


@pytest.fixture(scope="module")
def renderer(model: Model) -> Iterator[Renderer]:
    with Renderer(model, "cpu", precision="fp32") as renderer:
        yield renderer


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_HELD_OUT", 16)
    monkeypatch.setattr(module, "_FIRST", 48)
    monkeypatch.setattr(module, "_NEW_ON_CPU", 4)
    monkeypatch.setattr(module, "_EVALUATED_EVERY", 5)
    monkeypatch.setattr(module, "_BATCH", 16)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def run(training: EncoderTraining, renderer: object) -> list[float]:
    errors = []
    while not training.report.is_done:
        errors.append(training.step(renderer).error)  # type: ignore[arg-type]
    return errors


def test_an_encoder_learns_to_read_w_off_pictures(model: Model, renderer: Renderer) -> None:
    training = EncoderTraining(model, EncoderSettings(steps=40))
    errors = [error for error in run(training, renderer) if math.isfinite(error)]
    assert errors == sorted(errors, reverse=True), "the best stays"
    assert errors[-1] < 0.75
    found = training.found
    assert found is not None
    assert (found.side, found.error) == (16, errors[-1])
    encoder = PictureEncoder.from_file(found, torch.empty(0))
    z = np.random.default_rng(99).standard_normal((24, 8)).astype(np.float32)
    w = renderer.map(z)[:, 0]
    pictures = torch.from_numpy(renderer.synthesize(renderer.map(z))).clamp(-1, 1)
    read = encoder.encode(pictures).numpy()
    assert np.square(read - w).mean() < 0.9 * np.square(model.mean_w - w).mean()
    masks = torch.ones(24, 1, 16, 16)
    masks[:, :, :, 10:] = 0.0
    hidden = pictures.clone()
    hidden[:, :, :, 10:] = 1.0
    assert torch.equal(encoder.encode(pictures, masks), encoder.encode(hidden, masks)), "what is masked does not count"


def test_with_the_loss_of_pictures_an_encoder_learns_too(
    model: Model, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = MatchedDrafts(differentiable_network(model), (16,))
    monkeypatch.setattr(EncoderTraining, "_open_drafts", lambda _: drafts)
    training = EncoderTraining(model, EncoderSettings(steps=30))
    errors = [error for error in run(training, renderer) if math.isfinite(error)]
    assert errors[-1] < 0.8
    w = training._latents[:4]
    truth = training._units(w).requires_grad_()
    assert float(training._picture_loss(truth, w).detach()) < 1e-5, "the true w has no loss"
    loss = training._picture_loss(truth + 0.5, w)
    (gradient,) = torch.autograd.grad(loss, truth)
    assert (gradient != 0.0).any(1).all()


def test_a_training_continues_after_the_steps_of_its_start(model: Model, renderer: Renderer) -> None:
    first = EncoderTraining(model, EncoderSettings(steps=5))
    run(first, renderer)
    start = first.found
    assert start is not None
    assert start.steps == 5
    second = EncoderTraining(model, EncoderSettings(steps=10), start)
    assert (second.report.step, second.report.share) == (5, 0.0)
    run(second, renderer)
    assert second.report.step == 10
    assert second.report.share == pytest.approx(1.0)
    assert EncoderTraining(model, EncoderSettings(steps=4), start).report.is_done
    with pytest.raises(RequestError, match="1 to 1,000,000 steps"):
        EncoderTraining(model, EncoderSettings(steps=0))


def test_the_same_seed_gives_the_same_encoder(model: Model, renderer: Renderer) -> None:
    found = []
    for _ in range(2):
        training = EncoderTraining(model, EncoderSettings(steps=3, seed=5))
        run(training, renderer)
        assert training.found is not None
        found.append(training.found.tensors["w.weight"])
    np.testing.assert_array_equal(found[0], found[1])


def test_old_pictures_are_replaced_by_new_ones(
    model: Model, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_KEPT", 40)
    training = EncoderTraining(model, EncoderSettings(steps=2))
    run(training, renderer)
    assert training.report.pictures > 40 + 16
    held, z = training._latents[:16].clone(), training._latents[16:].clone()
    training._render(renderer, 4)
    assert torch.equal(training._latents[:16], held), "those that measure the error stay"
    assert (training._latents[16:] != z).any(1).sum() == 4


def test_samples_of_a_conditional_model_have_classes_and_drafts_are_read_where_they_look_like_pictures(
    renderer: Renderer,
) -> None:
    model = make_stylegan2(resolution=16, c_dim=3, w_dim=8, z_dim=8)

    class Recording:
        device = renderer.device

        def __init__(self) -> None:
            self.labels: list[np.ndarray] = []
            self.resolutions: list[int | None] = []

        def map(self, z: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
            assert c is not None
            self.labels.append(c)
            return np.zeros((len(z), model.spec.num_ws, 8), np.float32)

        def render_batch(self, requests: Sequence[RenderRequest]) -> tuple[Frame, ...]:
            self.resolutions.extend(request.resolution for request in requests)
            frame = Frame(requests[0], np.zeros((32, 32, 4), np.uint8), None)  # type: ignore[arg-type]
            return (frame,) * len(requests)

    recording = Recording()
    training = EncoderTraining(model, EncoderSettings(steps=1))
    training.step(recording)  # type: ignore[arg-type]
    assert recording.labels[0].sum(1).tolist() == [1.0] * 4
    assert recording.resolutions == [None] * 4
    assert training.report.pictures == 4


@pytest.mark.parametrize(("side", "read"), [(24, 16), (72, 64), (4, 8)])
def test_sides_need_not_be_powers_of_two(side: int, read: int) -> None:
    model = make_stylegan3(resolution=side) if side > 4 else make_stylegan2(resolution=side)
    mean = torch.zeros(model.spec.w_dim)
    encoder = PictureEncoder.fresh(side, mean, mean + 1.0)
    assert encoder.side == read
    assert encoder.encode(torch.zeros(2, 3, side, side)).shape == (2, model.spec.w_dim)
    training = EncoderTraining(model, EncoderSettings(steps=1))
    with Renderer(model, "cpu") as renderer:
        training.step(renderer)
    assert training.report.pictures == 4


def test_pictures_at_a_side_that_does_not_divide_theirs_are_means() -> None:
    rows = torch.arange(3.0).expand(1, 1, 3, 3)
    assert torch.equal(pooled(rows, 2), torch.tensor([0.5, 1.5]).expand(1, 1, 2, 2))


def scripted_clock(monkeypatch: pytest.MonkeyPatch, probe_s: float) -> Callable[[], float]:
    """A clock by which a step takes a second, and a batch of backward passes so many."""
    now = [0.0]
    probe = ScaleLearner.probe

    def timed(learner: ScaleLearner) -> None:
        now[0] += probe_s
        probe(learner)

    def clock() -> float:
        now[0] += 0.5
        return now[0]

    monkeypatch.setattr(ScaleLearner, "probe", timed)
    return clock


def test_scales_of_searches_are_learnt_after_the_last_step(
    model: Model, renderer: Renderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale_learning, "MAX_PROBES", 40)
    training = EncoderTraining(model, EncoderSettings(steps=5))
    monkeypatch.setattr(module, "_SCALES_SHARE", 1e6)
    found, reports = [], []
    while not training.report.is_done:
        reports.append(training.step(renderer))
        found.append(None if training.found is None else training.found.scales)
    measured = [report.probes for report in reports if report.probes]
    assert measured == list(range(1, 41))
    assert all(report.step == 5 and report.most_probes == 40 for report in reports if report.probes)
    shares = [report.share for report in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    kept = [None if scales is None else scales.probes for scales in found][-40:]
    assert kept == [None] * 15 + [16] * 16 + [32] * 8 + [40], "a training that is stopped keeps those so far"
    start = training.found
    assert start is not None
    assert start.scales is not None
    assert start.scales.rows.shape == (model.spec.num_ws, model.spec.w_dim)
    longer = EncoderTraining(model, EncoderSettings(steps=10), start)
    while not longer.report.is_done:
        assert longer.step(renderer).probes <= 1, "they do not change, so they are not learnt again"
    assert longer.found is not None
    assert longer.found.scales is start.scales


@pytest.mark.parametrize(("probe_s", "probes"), [(0.1, 20), (0.5, 0)])
def test_scales_take_a_tenth_of_the_time_of_the_steps_at_most(
    model: Model, renderer: Renderer, monkeypatch: pytest.MonkeyPatch, probe_s: float, probes: int
) -> None:
    clock = scripted_clock(monkeypatch, probe_s)
    training = EncoderTraining(model, EncoderSettings(steps=100), clock=clock)
    training._step, training._spent_s = 100, 120.0
    training._best = PictureEncoder.fresh(16, torch.zeros(8), torch.ones(8)).to_file(100, 0.5)
    while not training.report.is_done:
        training.step(renderer)
    assert training.found is not None
    assert (0 if training.found.scales is None else training.found.scales.probes) == probes


def test_a_failure_of_the_scales_does_not_lose_the_encoder(
    model: Model, renderer: Renderer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: ScaleLearner) -> None:
        raise RuntimeError("not enough memory")

    monkeypatch.setattr(ScaleLearner, "probe", fail)
    training = EncoderTraining(model, EncoderSettings(steps=5))
    with caplog.at_level(logging.INFO):
        run(training, renderer)
    assert "not enough memory" in caplog.text
    assert training.found is not None
    assert training.found.scales is None
