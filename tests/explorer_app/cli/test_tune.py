from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from explorer_app.cli import tune
from gpu_backend import ConvShape, ConvTile, DeviceError, Model, TileFinding, TileProgress
from gpu_backend.cuda.tuning.prediction import PredictionQuality
from gpu_backend.cuda.tuning.tile_search import Refused
from tests.helpers.command import Command

SHAPE = ConvShape("conv", 64, 512, 512, 1)
TILE = ConvTile(8, 16, 64, 32, 3, 2, 2)
FASTER = TileFinding(SHAPE, TILE, 20.0, replace(TILE, channels=32), 10.0, 40, 900)
SAME = TileFinding(replace(SHAPE, batch=8), TILE, 20.0, TILE, 20.0, 40, 900)
WRONG = Refused(TILE, "off by 3", is_wrong=True)
SPILLS = Refused(TILE, "it spills 8 bytes", is_wrong=False)
RESCUED = replace(FASTER, before_us=math.inf, refused=(WRONG, SPILLS))


class FakeTuning:
    """Finds what it is told to."""

    calls: dict[str, Any]
    found: tuple[TileFinding | BaseException, ...] = (FASTER, SAME)
    judged = PredictionQuality(0, 0, 0.0, math.inf, 1.0)

    def __init__(self, model: Model, device: str, **options: Any) -> None:
        type(self).calls = {"model": model, "device": device, **options}
        self.gpu = SimpleNamespace(name="NVIDIA H200")
        self.shapes = (SHAPE, SAME.shape)
        self.path = Path.home() / "tiles" / "table.json"
        self.quality = self.judged

    def findings(self, *, budget_s: float, progress: Callable[[TileProgress], None]) -> Iterator[TileFinding]:
        type(self).calls["budget_s"] = budget_s
        progress(TileProgress(SHAPE, 1, 2, 0, 900, math.inf))
        for item in self.found:
            if isinstance(item, BaseException):
                raise item
            yield item


@pytest.fixture
def tuning(monkeypatch: pytest.MonkeyPatch) -> type[FakeTuning]:
    monkeypatch.setattr(FakeTuning, "found", FakeTuning.found)
    monkeypatch.setattr(tune, "TileTuning", FakeTuning)
    return FakeTuning


def test_tune_prints_what_was_before_and_what_is_now(command: Command, tuning: type[FakeTuning]) -> None:
    outcome = command("tune")
    assert outcome.status == 0
    first, second = outcome.out.splitlines()[1:]
    assert first.split()[:13] == ["conv", "64", "x", "64,", "512", "to", "512", "1", "20.0", "10.0", "2.00", "x", "40"]
    assert "8x16x32 warps 2x2 depth 32 stages 3" in first
    assert " 1.00 x " in second
    assert "~" in outcome.err
    assert "NVIDIA H200" in outcome.err
    assert "Prediction" not in outcome.err


def test_tune_says_how_well_kept_timings_predict_others(
    command: Command, tuning: type[FakeTuning], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "judged", PredictionQuality(5, 900, 0.9, 0.12, 0.2))
    assert "900 timings of 5 shapes, judged on shapes left out: R² 0.90, mean error 12%" in command("tune").err


def test_discarded_tiles_are_named(command: Command, tuning: type[FakeTuning]) -> None:
    tuning.found = (RESCUED, replace(SAME, refused=(WRONG,) * 30))
    lines = command("tune").out.splitlines()
    assert "no result" in lines[1]
    assert lines[3].startswith("wrong, so discarded, for conv 64: 8x16x64 ")
    assert lines[3].endswith(": off by 3")
    assert lines[-2:] == [
        "and 11 more were wrong",
        "1 more did not run here or spill registers, so they were left out",
    ]


def test_options_reach_the_search(command: Command, tuning: type[FakeTuning], tmp_path: Path) -> None:
    words = ("--shape", "32:512:16", "--batch", "1,8,1", "--budget-s", "9", "--device", "cuda:1")
    assert command("tune", *words, "--table", tmp_path / "t.json").status == 0
    calls = tuning.calls
    assert calls["model"].facts.resolution == 32
    assert (calls["device"], calls["batches"], calls["budget_s"]) == ("cuda:1", (1, 8), 9.0)
    assert calls["table"] == tmp_path / "t.json"


def test_stopping_keeps_and_prints_what_was_found(command: Command, tuning: type[FakeTuning]) -> None:
    tuning.found = (FASTER, KeyboardInterrupt())
    outcome = command("tune")
    assert outcome.status == 130
    assert len(outcome.out.splitlines()) == 2
    assert "table.json" in outcome.err


def test_a_gpu_that_fails_is_one_sentence_after_what_was_found(command: Command, tuning: type[FakeTuning]) -> None:
    tuning.found = (FASTER, DeviceError("The GPU is gone."))
    outcome = command("tune")
    assert outcome.status == 2
    assert len(outcome.out.splitlines()) == 2
    assert outcome.err.endswith("latentloom tune: The GPU is gone.\n")


@pytest.mark.parametrize(
    "words",
    [
        ("--batch", "0"),
        ("--batch", "1,,2"),
        ("--batch", "65"),
        ("--budget-s", "0"),
        ("--budget-s", "-1"),
        ("--device", "cpu"),
        ("--device", "cuda:x"),
        ("--shape", "large"),
        ("model.pkl", "--shape", "ffhq1024"),
    ],
    ids=" ".join,
)
def test_slips_are_one_sentence(words: tuple[str, ...], command: Command, tuning: type[FakeTuning]) -> None:
    assert command("tune", *words).sentence
