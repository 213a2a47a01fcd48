"""``latentloom train-bench`` hands its options to the benchmark of the training step."""

from pathlib import Path

import pytest

from explorer_app.cli import train_bench
from gpu_backend.training.benchmark.options import ROWS, TrainBenchOptions
from tests.helpers.command import Command

STOPPED_AT = 7
"""A batch at which Ctrl-C comes."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[TrainBenchOptions]:
    """The options of every run, none of which runs."""
    runs: list[TrainBenchOptions] = []

    def run(options: TrainBenchOptions, say: object, show: object) -> bool:
        runs.append(options)
        return options.batch != STOPPED_AT

    monkeypatch.setattr(train_bench, "run_train_bench", run)
    return runs


@pytest.mark.usefixtures("calls")
def test_a_run_that_ctrl_c_ended_has_its_exit_status(command: Command) -> None:
    assert command("train-bench", "--batch", str(STOPPED_AT)).status == 130


def test_the_options_arrive(command: Command, calls: list[TrainBenchOptions]) -> None:
    words = ("--batch", "32", "--rows", "graph,fp32", "--out", "/some folder/results")
    assert command("train-bench", *words).status == 0
    assert command("train-bench").status == 0
    first, second = calls
    assert (first.batch, first.rows) == (32, ("fp32", "graph"))
    assert first.out == Path("/some folder/results")
    assert first.command == "latentloom train-bench --batch 32 --rows graph,fp32 --out results"
    assert second == TrainBenchOptions(command="latentloom train-bench")
    assert (second.resolution, second.batch, second.rows) == (256, 8, ROWS)


def test_a_slip_is_one_sentence(command: Command, calls: list[TrainBenchOptions]) -> None:
    for words in (("--rows", "fastest"), ("--resolution", "100"), ("--steps", "0"), ("--budget-s", "soon")):
        assert command("train-bench", *words).sentence
    assert calls == []
