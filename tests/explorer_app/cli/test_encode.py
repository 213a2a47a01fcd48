"""``latentloom encode``: an encoder beside the model, what is refused, and what Ctrl-C leaves."""

from __future__ import annotations

import dataclasses
import io
import logging
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from explorer_app.cli.console import Console
from explorer_app.cli.encode import _progress_text, train
from gpu_backend import (
    EncoderReport,
    EncoderTraining,
    RendersSamples,
    encoder_path,
    open_encoder,
    open_gradients,
    read_encoder,
    read_model,
    write_encoder,
)
from gpu_backend.training import encoder as module
from tests.helpers.command import Command


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in (("_HELD_OUT", 4), ("_FIRST", 8), ("_NEW_ON_CPU", 4), ("_BATCH", 8)):
        monkeypatch.setattr(module, name, value)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def model(tmp_path: Path, networks: Path) -> Path:
    return Path(shutil.copy(networks / "plain.safetensors", tmp_path / "hills.safetensors"))


def test_an_encoder_is_kept_beside_the_model_and_projections_begin_with_it(command: Command, model: Path) -> None:
    assert command("encode", "--network", model, "--resume").sentence == (
        "There is no hills.encoder.safetensors to continue; leave --resume out to train one."
    )
    outcome = command("encode", "--network", model, "--steps", 2, "--device", "cpu")
    assert outcome.status == 0, outcome.err
    assert "hills.encoder.safetensors reads pictures of hills" in outcome.err
    found = read_model(model)
    facts = found.facts
    assert read_encoder(encoder_path(model), facts.model_id, facts.w_dim, facts.num_ws).steps == 2
    encoder = open_encoder(found, open_gradients(found, device="cpu"))
    assert encoder is not None
    assert encoder.encode(torch.zeros(1, 3, 16, 16)).shape == (1, facts.w_dim)
    assert "already exists" in command("encode", "--network", model).sentence
    assert "was trained for 2 steps already" in command("encode", "--network", model, "--steps", 1, "--resume").sentence
    assert "from 0 up" in command("encode", "--network", model, "--seed", -1, "--overwrite").sentence
    assert command("encode", "--network", model, "--steps", 3, "--device", "cpu", "--resume").status == 0
    assert 2 <= read_encoder(encoder_path(model), facts.model_id, facts.w_dim, facts.num_ws).steps <= 3


def test_a_damaged_encoder_is_reported_and_not_used(
    model: Path, caplog: pytest.LogCaptureFixture, command: Command
) -> None:
    found = read_model(model)
    network = open_gradients(found, device="cpu")
    assert open_encoder(found, network) is None
    assert not caplog.records
    encoder_path(model).write_bytes(b"nothing")
    with caplog.at_level(logging.WARNING):
        assert open_encoder(found, network) is None
    assert "The search begins with random latents." in caplog.text
    caplog.clear()
    outcome = command("encode", "--network", model, "--resume")
    assert outcome.status == 2
    assert outcome.sentence.endswith("; to begin anew, give --overwrite instead of --resume.")


class Scripted:
    """A training whose steps are given; an error in their place is raised."""

    def __init__(self, *steps: tuple[float, object] | BaseException) -> None:
        self._steps = list(steps)
        self.found: Any = None
        self.report = EncoderReport(0, 3, 0, math.nan, 0.0)

    def step(self, _renderer: object) -> EncoderReport:
        now = self._steps.pop(0)
        if isinstance(now, BaseException):
            raise now
        share, self.found = now
        self.report = EncoderReport(1, 3, 9, 0.5, share, is_done=share == 1.0)
        return self.report


def run(training: Scripted, seconds: float, stream: io.StringIO | None = None) -> tuple[list[object], str]:
    """Train with a clock that goes on by so many seconds a step; return what was written, and what was shown."""
    written: list[object] = []
    stream, now = stream or io.StringIO(), iter(range(1000))
    try:
        train(
            cast("EncoderTraining", training),
            cast("RendersSamples", None),
            lambda: written.append(training.found),
            Console(stream),
            clock=lambda: next(now) * seconds,
        )
    except KeyboardInterrupt:
        written.append("stopped")
    return written, stream.getvalue()


def test_the_time_left_counts_steps_and_not_the_pictures_before_them() -> None:
    class Counting(Scripted):
        def step(self, _renderer: object) -> EncoderReport:
            step = int(self._steps.pop(0)[0])  # type: ignore[index]
            self.report = EncoderReport(step, 100, 9, 0.5, 0.1, is_done=step == 100)
            return self.report

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    counted = Counting(*((float(step), None) for step in (0, 0, 0, 0, 0, 10, 20, 100)))
    counted.report = EncoderReport(0, 100, 0, math.nan, 0.0)
    shown = run(counted, 60.0, Terminal())[1]
    assert shown.count("left") == 2
    assert "Step 10 of 100, 9 pictures, error 0.500, 9 min 00 s left" in shown
    assert "Step 20 of 100, 9 pictures, error 0.500, 8 min 00 s left" in shown


def test_passes_after_the_last_step_are_counted() -> None:
    report = EncoderReport(100, 100, 9, 0.5, 0.95, probes=1000, most_probes=2048)
    assert _progress_text(report, None) == "Measuring scales of searches: 1,000 of 2,048 passes"


def test_better_encoders_are_written_now_and_then_and_the_best_at_the_end() -> None:
    assert run(Scripted((0.2, None), (0.5, "a"), (0.6, "a"), (1.0, "b")), 70.0)[0] == ["a", "b"]
    assert run(Scripted((0.2, None), (0.5, "a"), (1.0, "b")), 1.0)[0] == ["b"]


def test_an_interrupted_training_keeps_the_best_so_far() -> None:
    assert run(Scripted((0.2, None), (0.5, "a"), KeyboardInterrupt()), 1.0)[0] == ["a", "stopped"]
    assert run(Scripted((0.2, None), KeyboardInterrupt()), 1.0)[0] == ["stopped"]


@pytest.mark.parametrize("is_evaluated", [True, False])
def test_an_interrupted_training_says_what_it_keeps(
    command: Command, model: Path, monkeypatch: pytest.MonkeyPatch, is_evaluated: bool
) -> None:
    step = module.EncoderTraining.step

    def stopped(training: EncoderTraining, renderer: RendersSamples) -> EncoderReport:
        report = step(training, renderer)
        if (training.found is not None) == is_evaluated:
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr(module.EncoderTraining, "step", stopped)
    outcome = command("encode", "--network", model, "--steps", 2, "--device", "cpu")
    assert outcome.status == 130
    assert encoder_path(model).exists() == is_evaluated
    said = "hills.encoder.safetensors reads pictures of hills" if is_evaluated else "there is nothing to keep"
    assert said in outcome.err
    assert ("stopped early; --resume goes on" in outcome.err) == is_evaluated


@pytest.mark.parametrize(("error", "is_stopped", "stays"), [(0.0, True, True), (0.0, False, False), (9.0, True, False)])
def test_a_former_encoder_that_is_better_stays_until_the_new_one_is_done(
    command: Command, model: Path, monkeypatch: pytest.MonkeyPatch, error: float, is_stopped: bool, stays: bool
) -> None:
    words = ("encode", "--network", model, "--steps", 2, "--device", "cpu", "--seed", 1)
    assert command(*words).status == 0
    target, facts = encoder_path(model), read_model(model).facts
    former = read_encoder(target, facts.model_id, facts.w_dim, facts.num_ws)
    write_encoder(dataclasses.replace(former, error=error), target, facts.model_id, facts.w_dim, facts.num_ws)
    before = target.read_bytes()
    step = module.EncoderTraining.step

    def stopped(training: EncoderTraining, renderer: RendersSamples) -> EncoderReport:
        report = step(training, renderer)
        if is_stopped and training.found is not None and not report.is_done:
            raise KeyboardInterrupt
        return report

    monkeypatch.setattr(module.EncoderTraining, "step", stopped)
    outcome = command(*words, "--overwrite")
    assert outcome.status == (130 if is_stopped else 0)
    assert (target.read_bytes() == before) == stays
    assert ("stays as it was, which is better: error of w 0.000, the new one" in outcome.err) == stays
