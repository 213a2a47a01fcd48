import pytest
import torch

from gpu_backend.training import estimate
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.step import Training
from tests.gpu_backend.training.fake_source import SIZES


def test_an_estimate_leaves_the_random_numbers_and_the_networks_as_they_were(
    one_thread: None,
) -> None:
    training = Training(TrainOptions(**SIZES), Processes(0, 1, torch.device("cpu")))
    state = torch.get_rng_state()
    before = {name: value.clone() for name, value in training.ema.state_dict().items()}
    assert estimate.step_seconds(training) > 0
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(before[name], value) for name, value in training.ema.state_dict().items())


def test_a_slow_first_pass_is_not_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(TrainOptions(**SIZES), Processes(0, 1, torch.device("cpu")))
    monkeypatch.setattr(estimate, "_PROBE_S", 0.0)
    for first, seen in (((9.0, 1.0), (0.5, 0.25)), ((99.0, 1.0), (99.0, 1.0))):
        passes = iter([first, (0.5, 0.25)])
        monkeypatch.setattr(estimate, "_forward_seconds", lambda *_, passes=passes: next(passes))
        expected = training.share * estimate._forwards(*seen, training.options)
        assert estimate.step_seconds(training) == pytest.approx(expected)


def test_a_step_costs_both_losses_and_the_regularisers_at_their_intervals() -> None:
    without = TrainOptions(path_weight=0.0, gamma=0.0)
    assert estimate._forwards(1.0, 0.0, without) == 4.0
    assert estimate._forwards(0.0, 1.0, without) == 9.0
    assert estimate._forwards(1.0, 1.0, TrainOptions(path_every=3, r1_every=6)) == 13.0 + 1.0 + 1.0
