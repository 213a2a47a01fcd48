"""Several processes: gradients are averaged, and the device is chosen or missed in a sentence."""

import pytest
import torch
from torch import Tensor, distributed, nn

from gpu_backend.errors import DeviceError
from gpu_backend.training.processes import Processes, joined

CPU = torch.device("cpu")


def test_gradients_become_their_mean_in_one_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanged: list[int] = []

    def add_those_of_the_other(values: Tensor) -> None:
        exchanged.append(values.numel())
        values += torch.arange(values.numel(), dtype=values.dtype)

    monkeypatch.setattr(distributed, "all_reduce", add_those_of_the_other)
    first, unused, second = (
        nn.Parameter(torch.zeros(2, 2)),
        nn.Parameter(torch.zeros(5)),
        nn.Parameter(torch.zeros(3)),
    )
    first.grad, second.grad = torch.ones(2, 2), torch.full((3,), 2.0)
    Processes(0, 2, CPU).average_gradients([first, unused, second])
    assert first.grad.tolist() == [[0.5, 1.0], [1.5, 2.0]]
    assert second.grad.tolist() == [3.0, 3.5, 4.0]
    assert unused.grad is None
    assert exchanged == [7]


def test_one_process_exchanges_nothing() -> None:
    alone = Processes(0, 1, CPU)
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.ones(2)
    alone.average_gradients([parameter])
    assert parameter.grad.tolist() == [1.0, 1.0]
    assert alone.is_first
    assert alone.any(True)
    assert alone.gather("a") == ["a"]


def test_the_processor_is_always_there_and_a_missing_gpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined("cpu") as processes:
        assert (processes.count, processes.device) == (1, CPU)
    with pytest.raises(DeviceError, match="cuda:97 needs a GPU"), joined("cuda:97"):
        pass
