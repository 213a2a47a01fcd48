"""Several processes: values are averaged, all stop together, and the device is chosen or missed in a sentence."""

import signal
import time
from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed

from gpu_backend.errors import DeviceError
from gpu_backend.training.checkpoint import checkpoints
from gpu_backend.training.processes import Processes, joined
from tests.gpu_backend.training.process_pair import ProcessPair, last_lines

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
    assert not alone.any(False)
    assert alone.gather("a") == ["a"]


def test_only_the_first_process_draws_by_the_seed_itself() -> None:
    assert [Processes(rank, 2, CPU).own_seed(3) for rank in range(2)] == [3, 1_000_006]


def test_the_processor_is_always_there_and_a_missing_gpu_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined("cpu") as processes:
        assert (processes.count, processes.device) == (1, CPU)
    with pytest.raises(DeviceError, match="cuda:97 needs a GPU"), joined("cuda:97"):
        pass


def test_a_ctrl_c_in_one_process_stops_all_after_the_current_step(tmp_path: Path) -> None:
    with ProcessPair(tmp_path, "interrupt", 3) as pair:
        ends = pair.end()
    assert last_lines(ends) == ["[true, 16]"] * 2, ends
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-000000016.pt"]


def test_a_ctrl_c_before_the_first_step_is_done_ends_also_who_waits_for_the_others(tmp_path: Path) -> None:
    with ProcessPair(tmp_path, "compile", 0) as pair:
        pair.wait_for("batch 0")
        time.sleep(1.0)  # the first process has done its part, and waits
        pair.interrupt()
        ends = pair.end()
    assert [status for status, _, _ in ends] == [-signal.SIGINT] * 2
    assert checkpoints(tmp_path) == []


def test_a_process_that_lost_its_peers_ends_with_a_sentence(tmp_path: Path) -> None:
    with ProcessPair(tmp_path, "exit", 2) as pair:
        first, second = pair.end()
    assert second[0] == 7
    assert (first[0], first[1].splitlines()[-1]) == (2, "PeerError"), first
