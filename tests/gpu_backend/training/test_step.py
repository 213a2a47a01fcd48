"""What a step does, as it is written and replayed, alone and among several processes."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, distributed

from gpu_backend.training.methods import StepMethods
from gpu_backend.training.options import TrainOptions
from gpu_backend.training.processes import Processes
from gpu_backend.training.replay import Recorder
from gpu_backend.training.step import Training
from tests.gpu_backend.training.fake_recorder import FakeRecorder

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")


def training(processes: int = 1, recorder: Recorder | None = None, **given: object) -> Training:
    sizes = {"resolution": 16, "channel_base": 64, "channel_max": 8, "z_dim": 8, "w_dim": 8, "batch": 4}
    options = TrainOptions(**{**sizes, **given}).checked()  # type: ignore[arg-type]
    return Training(options, Processes(0, processes, CPU), recorder=recorder)


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
    assert made.methods.low == torch.bfloat16
    assert rates(made) == [0.002, 0.002]
    lazy = training(learning_rate=0.002)
    assert lazy.methods.low == torch.float32
    assert rates(lazy) == pytest.approx([0.002 * 4 / 5, 0.002 * 16 / 17])


def rates(made: Training) -> list[float]:
    """Return the learning rates of the generator and of the discriminator."""
    state = made.state()
    return [state[name]["param_groups"][0]["lr"] for name in ("g_adam", "d_adam")]


def pictures(step: int, count: int = 4) -> Tensor:
    return torch.randint(0, 256, (count, 3, 16, 16), generator=torch.Generator().manual_seed(step), dtype=torch.uint8)


def run(made: Training, steps: int) -> list[dict[str, float]]:
    """Train, and return the metrics of each step."""
    metrics = []
    for step in range(steps):
        made.run_step(pictures(step))
        metrics.append(dict(made.metrics.means()))
    return metrics


OFTEN: dict[str, Any] = {"r1_every": 2, "path_every": 3, "augment": True, "augment_kimg": 0.1, "mirror": True}


def test_a_replayed_training_is_the_same_to_the_bit() -> None:
    recorder = FakeRecorder()
    usual, replayed = training(**OFTEN), training(recorder=recorder, **OFTEN)
    torch.manual_seed(5)
    expected = run(usual, 14)
    torch.manual_seed(5)
    assert run(replayed, 14) == expected
    for first, second in zip(usual.ema.parameters(), replayed.ema.parameters(), strict=True):
        assert torch.equal(first, second)
    captured = [event for event in recorder.events if event.startswith("capture")]
    # Pictures and both losses in the fourth step, the path penalty in the tenth, R1 in the seventh.
    assert captured == ["capture unpacked", *["capture compute_and_step"] * 4]
    assert recorder.events.count("replay unpacked") == 14 - 3
    assert recorder.events.count("replay compute_and_step") == 2 * (14 - 3) + (7 - 3) + (5 - 3)


def test_it_is_settled_once_every_update_that_comes_up_is_captured() -> None:
    made = training(recorder=FakeRecorder(), r1_every=2, path_weight=0.0)
    assert not made.is_settled
    run(made, 6)
    assert not made.is_settled, "R1 came three times"
    run(made, 1)
    assert made.is_settled
    assert training().is_settled, "nothing is captured here"


def test_a_loaded_state_is_captured_again_and_goes_on_the_same() -> None:
    recorder = FakeRecorder()
    made = training(recorder=recorder, **OFTEN)
    run(made, 12)
    saved = copy.deepcopy(made.state())
    expected = run(made, 3)
    recorder.events.clear()
    made.load_state(saved)
    assert run(made, 3) == expected
    assert "replay compute_and_step" not in recorder.events


@pytest.mark.parametrize("with_graphs", [False, True])
def test_several_processes_train_like_one_on_the_mean_of_their_gradients(
    monkeypatch: pytest.MonkeyPatch, with_graphs: bool
) -> None:
    # The other process computes the same: the sum is twice as much.
    monkeypatch.setattr(distributed, "all_reduce", lambda values: values.mul_(2))
    often: dict[str, Any] = {"r1_every": 2, "path_every": 3, "gamma": 1.0}
    recorder = FakeRecorder()
    alone = training(**often)
    torch.manual_seed(5)
    expected = run(alone, 11)
    together = training(batch=8, processes=2, recorder=recorder if with_graphs else None, **often)
    torch.manual_seed(5)
    assert run(together, 11) == expected
    for first, second in zip(alone.generator.parameters(), together.generator.parameters(), strict=True):
        assert torch.equal(first, second)
    if with_graphs:
        last_step = ["unpacked", *("compute", "step") * 3]  # the two losses and R1
        assert recorder.events[-7:] == [f"replay {work}" for work in last_step]


def test_methods_follow_device_and_options() -> None:
    gpu = torch.device("cuda", 0)
    assert StepMethods.of(TrainOptions(), CPU) == StepMethods()
    fast = StepMethods.of(TrainOptions(), gpu)
    assert (fast.low, fast.channels_last, fast.fused, fast.graphs) == (torch.bfloat16, True, True, True)
    assert not StepMethods.of(TrainOptions(graphs=False), gpu).graphs
    assert not StepMethods.of(TrainOptions(precision="fp16"), gpu).graphs, "its loss scale is looked at"
    assert StepMethods.of(TrainOptions(precision="fp32", compile=True), gpu).compile
