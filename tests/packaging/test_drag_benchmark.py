"""The script that measures drags: where it reads the sun, what it freezes, and its table of steps."""

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
    return packaging_script("drag_benchmark")


def test_the_sun_is_read_to_a_fraction_of_a_pixel(benchmark: ModuleType) -> None:
    y, x = torch.meshgrid(torch.arange(256.0), torch.arange(256.0), indexing="ij")
    sky = -0.2 + 0.3 * x / 256
    sun = torch.exp(-((x - 71.3).square() + (y - 40.6).square()) / 12)
    found = benchmark.find_sun((sky + sun).expand(1, 3, -1, -1))
    assert found[:2] == pytest.approx((71.3, 40.6), abs=0.3)
    assert found[2] > benchmark.LEAST_SUN
    slope = 0.6 * torch.exp(-((x - 71.3).square() + (y - 40.6).square()) / 12)
    assert benchmark.find_sun((sky + slope).expand(1, 3, -1, -1))[2] < benchmark.LEAST_SUN, "too dark for a sun"
    assert benchmark.find_sun(sky.expand(1, 3, -1, -1))[2] < benchmark.LEAST_SUN


def test_an_edge_is_read_to_a_fraction_of_a_pixel(benchmark: ModuleType) -> None:
    y, x = torch.meshgrid(torch.arange(256.0), torch.arange(256.0), indexing="ij")
    for crest in (60.0, 71.0):
        mountain = torch.where(y > crest + (x - 100) / 4, -0.4, 0.5)
        row, strength = benchmark.find_edge(mountain.expand(1, 3, -1, -1), 100, range(24, 112))
        assert row == pytest.approx(crest + 0.5, abs=1.0)
        assert strength > benchmark.LEAST_EDGE
    assert benchmark.find_edge((0.1 * x / 256).expand(1, 3, -1, -1), 100, range(24, 112))[1] < benchmark.LEAST_EDGE


def test_what_is_far_from_the_way_of_the_point_is_frozen(benchmark: ModuleType) -> None:
    mask = benchmark._far_from((100.0, 60.0), (124.0, 60.0), 256)
    assert mask[60, 100] == mask[60, 60] == mask[60, 170] == mask[100, 112] == 0
    assert mask[60, 50] == mask[60, 174] == mask[110, 112] == mask[200, 200] == 1


def test_steps_to_each_block_are_timed(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_safetensors(make_stylegan2(resolution=128, channel_base=512, channel_max=2), tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "bundled_model", lambda: tmp_path / "small.safetensors")
    monkeypatch.setattr(benchmark, "RESULTS", tmp_path / "results")
    threads = torch.get_num_threads()
    benchmark.main(["--parts", "steps", "--threads", "1"])
    torch.set_num_threads(threads)
    with (tmp_path / "results" / "step_times.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["block"] for row in rows] == ["32", "64", "128"]
    assert all(float(row["cpu_ms"]) > 0 for row in rows)
    assert "step_times: threads 1" in capsys.readouterr().out
