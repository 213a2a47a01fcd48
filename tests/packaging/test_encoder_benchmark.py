"""The script that measures what an encoder is worth: its tables for a small network."""

import csv
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gpu_backend import write_safetensors
from gpu_backend.training import encoder
from tests.helpers.networks import make_stylegan2
from tests.helpers.packaging_script import packaging_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    return packaging_script("encoder_benchmark")


def test_searches_from_each_start_have_a_row(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_safetensors(make_stylegan2(resolution=16), tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "bundled_model", lambda: tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "_CANDIDATES", 8)
    for name, value in (("_HELD_OUT", 4), ("_FIRST", 8), ("_EVALUATED_EVERY", 1)):
        monkeypatch.setattr(encoder, name, value)
    monkeypatch.setattr(benchmark, "unseen_pictures", lambda side, number: torch.zeros(number, 3, side, side).unbind(0))
    out = tmp_path / "results"
    few = ["--pictures", "1", "--steps", "2", "--at", "0", "--searches", "3", "--out", str(out)]
    benchmark.main(few)
    with (out / "training.csv").open() as file:
        training = list(csv.DictReader(file))
    assert [row["steps"] for row in training] == ["1", "2"]
    assert all(float(row["known_db"]) >= float(row["known_least_db"]) for row in training)
    with (out / "searches.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["kind"], row["steps"], row["from"]) for row in rows] == [
        (kind, "3", start) for kind in ("known", "unseen") for start in ("random latents", "the trained encoder")
    ]
    assert all(float(row["median_db"]) >= float(row["least_db"]) for row in rows)
