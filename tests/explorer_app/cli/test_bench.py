"""``latentloom bench`` hands its options to the backend's benchmark."""

import pytest

from explorer_app.cli import bench
from gpu_backend.bench.options import BenchOptions
from tests.helpers.command import Command


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[BenchOptions]:
    """The options of every run, none of which runs."""
    runs: list[BenchOptions] = []

    def noted(options: BenchOptions, say: object, show: object) -> bool:
        runs.append(options)
        return "--quick" not in options.command  # that one is stopped

    monkeypatch.setattr(bench, "run_bench", noted)
    return runs


def test_the_options_arrive(command: Command, calls: list[BenchOptions]) -> None:
    words = ("--shape", "ffhq512", "--batch", "1,8", "--peers", "compiled,eager", "--precision", "fp16", "--all")
    assert command("bench", *words, "--out", "some folder").status == 0
    (options,) = calls
    assert options.shape is not None
    assert (options.shape.name, options.batches, options.everything) == ("ffhq512", (1, 8), True)
    assert (options.peers, options.precisions) == (("compiled", "eager"), ("fp16",))
    assert options.command == f"latentloom bench {' '.join(words)} --out 'some folder'"


def test_no_peers_is_a_choice_too(command: Command, calls: list[BenchOptions]) -> None:
    assert command("bench", "--peers", "none").status == 0
    assert calls[0].peers == ()


def test_a_run_that_was_stopped_has_the_status_of_one(command: Command, calls: list[BenchOptions]) -> None:
    assert command("bench", "--quick").status == 130
    assert len(calls) == 1


def test_a_slip_is_one_sentence(command: Command, calls: list[BenchOptions]) -> None:
    for words in (("--peers", "best"), ("--shape", "huge"), ("--batch", "none"), ("a.pkl", "--shape", "ffhq256")):
        outcome = command("bench", *words)
        assert outcome.status == 2
        assert outcome.err.startswith("latentloom bench: ")
        assert outcome.err.count("\n") == 1
    assert calls == []


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_a_farm_is_measured_for_a_time_above_0(command: Command, calls: list[BenchOptions], seconds: str) -> None:
    sentence = command("bench", "--cpu-workers", "1", f"--seconds={seconds}").sentence
    assert "expected a number above 0" in sentence
    assert calls == []
