"""The script that measures what an encoder is worth: its tables for a small network."""

import csv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from gpu_backend import PictureEncoder, PictureFeatures, read_model, write_encoder, write_safetensors
from gpu_backend.model.encoder_file import encoder_path
from gpu_backend.training import encoder
from tests.helpers.networks import make_stylegan2
from tests.helpers.one_thread import one_thread_of_torch
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


def test_searches_that_compare_features_late_have_rows_and_need_an_encoder(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = tmp_path / "small.safetensors", tmp_path / "results"
    write_safetensors(make_stylegan2(resolution=16), file)
    monkeypatch.setattr(benchmark, "bundled_model", lambda: file)
    monkeypatch.setattr(benchmark, "unseen_pictures", lambda side, number: torch.zeros(number, 3, side, side).unbind(0))
    few = ["--parts", "late", "--pictures", "1", "--searches", "4", "8", "--out", str(out)]
    with pytest.raises(SystemExit, match="no encoder"):
        benchmark.main(few)
    model = read_model(file)
    mean = torch.from_numpy(model.mean_w.copy())
    stored = PictureEncoder.fresh(16, mean, torch.ones_like(mean)).to_file(1, 0.5)
    write_encoder(stored, encoder_path(file), model.facts.model_id, model.spec.w_dim, model.spec.num_ws)
    compared: list[bool] = []
    distance = PictureFeatures.distance

    def counted(features: PictureFeatures, found: torch.Tensor, *others: Any) -> torch.Tensor:
        compared.append(torch.is_grad_enabled())
        return distance(features, found, *others)

    monkeypatch.setattr(PictureFeatures, "distance", counted)
    with one_thread_of_torch():
        benchmark.main(few)
    # Of 4 and 8 steps half are 2 and 4, and 0.3 and 0.2 of them are rounded to 1 and 2.
    assert sum(compared) == 2 * (8 + (2 + 4) + (1 + 2) + (1 + 2)), "passes that compare features, of both kinds"
    with (out / "late_features.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert [(row["kind"], row["steps"], row["features_share"]) for row in rows] == [
        (kind, steps, share)
        for kind in ("known", "unseen")
        for steps in "48"
        for share in ("1.0", "0.5", "0.3", "0.2", "0.0")
    ]
    assert all(float(row["psnr_db"]) > 0 and float(row["distance"]) > 0 for row in rows)
