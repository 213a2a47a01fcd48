"""The script that measures projections: its table for a small network."""

import csv
from pathlib import Path
from types import ModuleType

import pytest
import torch

from gpu_backend import write_safetensors
from tests.helpers.networks import make_stylegan2
from tests.helpers.packaging_script import packaging_script


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    return packaging_script("projection_benchmark")


def test_known_pictures_have_a_row_each_and_a_median(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_safetensors(make_stylegan2(resolution=16), tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "bundled_model", lambda: tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "results")
    threads = torch.get_num_threads()
    few = ["--known", "2", "--unseen", "0", "--steps", "6", "--candidates", "2", "--tune", "2"]
    benchmark.main([*few, "--threads", "1", "--at-cpu-s", "0", "1e6"])
    torch.set_num_threads(threads)
    with (tmp_path / "results" / "projection.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["kind"], row["number"], row["encoder"]) for row in rows] == [("known", str(n), "False") for n in "01"]
    for row in rows:
        assert all(float(row[key]) > 0 for key in ("random_db", "w_db", "psnr_db", "tuned_db", "at_0s_db"))
        assert row["at_1e+06s_db"] == "", "the search was over before"
        assert row["features"] == "False", "this model has neither a discriminator nor an encoder"
    assert "known: medians " in capsys.readouterr().out
