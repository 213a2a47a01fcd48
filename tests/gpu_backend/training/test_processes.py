"""Several processes: values are averaged, and the device is chosen or missed in a sentence."""

import pytest
import torch
from torch import Tensor, distributed

from gpu_backend.errors import DeviceError
from gpu_backend.training.processes import Processes, joined

CPU = torch.device("cpu")


def test_values_become_their_mean_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def add_those_of_the_other(values: Tensor) -> None:
        values += torch.arange(values.numel(), dtype=values.dtype)

    monkeypatch.setattr(distributed, "all_reduce", add_those_of_the_other)
    values = torch.ones(3)
    Processes(0, 2, CPU).average(values)
    assert values.tolist() == [0.5, 1.0, 1.5]


def test_one_process_exchanges_nothing() -> None:
    alone = Processes(0, 1, CPU)
    values = torch.ones(2)
    alone.average(values)
    assert values.tolist() == [1.0, 1.0]
    assert alone.is_first
    assert alone.any(True)
    assert alone.gather("a") == ["a"]


def test_the_processor_is_always_there_and_a_missing_gpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined("cpu") as processes:
        assert (processes.count, processes.device) == (1, CPU)
    with pytest.raises(DeviceError, match="cuda:97 needs a GPU"), joined("cuda:97"):
        pass
