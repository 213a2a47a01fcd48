"""What a step feeds to the networks."""

import pytest
import torch

from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.step import Training

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")


def training(**given: object) -> Training:
    sizes = {"resolution": 16, "channel_base": 64, "channel_max": 8, "z_dim": 8, "w_dim": 8, "batch": 4}
    return Training(TrainOptions(**{**sizes, **given}).checked(), Processes(0, 1, CPU))  # type: ignore[arg-type]


def test_mixed_latents_change_once_from_one_w_to_another() -> None:
    rows = training(mixing=1.0)._rows(64)
    changes = (rows[:, 1:] - rows[:, :-1]).abs().amax(2) > 0
    assert (changes.sum(1) == 1).all()
    assert changes.any(0).all(), "at every row"


def test_without_mixing_all_rows_are_the_same() -> None:
    rows = training(mixing=0.0)._rows(8)
    assert (rows == rows[:, :1]).all()
    mixed = training(mixing=0.5)._rows(256)
    share = ((mixed != mixed[:, :1]).any(2).any(1)).float().mean()
    assert 0.35 < share < 0.65


def test_the_average_of_w_follows_and_the_average_network_ramps_up() -> None:
    made = training()
    assert made.generator.mapping.w_avg.abs().max() == 0
    made.run_step(torch.zeros(4, 3, 16, 16, dtype=torch.uint8))
    assert made.generator.mapping.w_avg.abs().max() > 0
    assert (made.step, made.pictures_seen) == (1, 4)
    for average, network in zip(made.ema.parameters(), made.generator.parameters(), strict=True):
        torch.testing.assert_close(average, network, atol=1e-3, rtol=0.1)


def test_precision_and_lazy_optimisers_follow_the_options() -> None:
    made = training(precision="bf16", path_weight=0.0, gamma=0.0, learning_rate=0.002)
    assert made.low == torch.bfloat16
    assert [adam.param_groups[0]["lr"] for adam in (made._g_adam, made._d_adam)] == [0.002, 0.002]
    lazy = training(learning_rate=0.002)
    assert lazy.low == torch.float32
    assert lazy._d_adam.param_groups[0]["lr"] == pytest.approx(0.002 * 16 / 17)
    assert lazy._g_adam.param_groups[0]["lr"] == pytest.approx(0.002 * 4 / 5)
