"""Steps on a GPU: graphs do what the eager step does, and a resume goes on with them."""

import io
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from gpu_backend.training.methods import StepMethods
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.step import Training

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

SIZES: dict[str, Any] = {
    "resolution": 32,
    "channel_base": 1024,
    "channel_max": 64,
    "z_dim": 32,
    "w_dim": 32,
    "batch": 4,
    "r1_every": 2,
    "path_every": 3,
    "learning_rate": 0.0005,
}


def training(*, graphs: bool, **given: Any) -> Training:
    options = TrainOptions(**{**SIZES, "precision": "fp32", **given}).checked()
    device = torch.device("cuda", 0)
    methods = replace(StepMethods.of(options, device), graphs=graphs)
    return Training(options, Processes(0, 1, device), methods)


def pictures(step: int) -> Tensor:
    drawn = torch.Generator().manual_seed(step)
    return torch.randint(0, 256, (4, 3, 32, 32), generator=drawn, dtype=torch.uint8).cuda()


def run(made: Training, first: int, last: int) -> list[dict[str, float]]:
    """Do the steps from `first` up to but not including `last`, and return the metrics of each."""
    metrics = []
    for step in range(first, last):
        made.run_step(pictures(step))
        metrics.append(dict(made.metrics.means()))
    return metrics


def expect_close(came: list[dict[str, float]], expected: list[dict[str, float]]) -> None:
    """Sums in another order are all that differs; adversaries let that grow from step to step."""
    assert [metrics.keys() for metrics in came] == [metrics.keys() for metrics in expected]
    for step, (ours, theirs) in enumerate(zip(came, expected, strict=True)):
        for name, value in theirs.items():
            assert ours[name] == pytest.approx(value, rel=0.02 + 0.01 * step, abs=2e-3), f"{name} in step {step + 1}"


@pytest.mark.parametrize("given", [{}, {"augment": True, "mirror": True}, {"accumulate": 2}], ids=str)
def test_replayed_steps_have_the_losses_and_the_random_numbers_of_eager_ones(given: dict[str, Any]) -> None:
    eager, replayed = training(graphs=False, **given), training(graphs=True, **given)
    states = []
    metrics = []
    for made in (eager, replayed):
        torch.cuda.manual_seed(7)
        metrics.append(run(made, 0, 20))
        states.append(torch.cuda.get_rng_state())
    assert replayed.is_settled
    expect_close(metrics[1], metrics[0])
    assert torch.equal(states[0], states[1])
    for first, second in zip(eager.ema.parameters(), replayed.ema.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=0.02, atol=0.02)


def test_a_training_goes_on_from_a_checkpoint_made_between_replays() -> None:
    made = training(graphs=True)
    run(made, 0, 12)
    file = io.BytesIO()
    torch.save(made.state(), file)
    expected = run(made, 12, 24)
    numbers = torch.cuda.get_rng_state()
    file.seek(0)
    resumed = training(graphs=True, seed=3)
    resumed.load_state(torch.load(file, map_location="cuda", weights_only=True))
    expect_close(run(resumed, 12, 24), expected)
    assert torch.equal(torch.cuda.get_rng_state(), numbers)


def test_replayed_steps_ask_for_no_more_memory() -> None:
    made = training(graphs=True, precision="bf16")
    run(made, 0, 12)
    before = torch.cuda.memory_allocated()
    run(made, 12, 18)
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_half_precision_trains(precision: str) -> None:
    made = training(graphs=precision == "bf16", precision=precision)
    metrics = run(made, 0, 14)
    assert all(abs(value) < 1e6 for step in metrics for value in step.values())
