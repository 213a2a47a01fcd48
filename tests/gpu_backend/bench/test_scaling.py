import csv
import json
from pathlib import Path

import pytest

from gpu_backend.bench.device_rate import DeviceRate
from gpu_backend.bench.scaling import scaling_table, with_efficiency, write_scaling
from tests.helpers.networks import make_stylegan2

MEASURED = (("device bytes", 1, 100, 1.0), ("png", 1, 50, 1.0), ("device bytes", 2, 380, 2.0), ("png", 2, 80, 1.0))


def test_efficiency_is_the_rate_of_a_worker_beside_that_of_one_alone() -> None:
    assert [row.efficiency for row in with_efficiency(MEASURED)] == pytest.approx([1.0, 1.0, 0.95, 0.8])
    assert [row.frames_per_s for row in with_efficiency(MEASURED)] == pytest.approx([100.0, 50.0, 190.0, 80.0])


def test_the_fewest_workers_are_what_others_are_compared_with() -> None:
    rows = with_efficiency((("png", 4, 400, 1.0), ("png", 2, 220, 1.0)))
    assert [row.efficiency for row in rows] == pytest.approx([100 / 110, 1.0])


def test_files_hold_every_row(tmp_path: Path) -> None:
    rows = with_efficiency(MEASURED)
    files, problem = write_scaling(rows, {"device": "Loom 9000", "network": "ffhq1024"}, tmp_path / "out")
    assert not problem
    assert [file.name for file in files] == ["scaling.csv", "scaling.json", "scaling.png"]
    with files[0].open(newline="") as file:
        assert [(line["what"], line["workers"], line["frames"]) for line in csv.DictReader(file)] == [
            (what, str(workers), str(frames)) for what, workers, frames, _ in MEASURED
        ]
    data = json.loads(files[1].read_text())
    assert data["run"]["device"] == "Loom 9000"
    assert [row["efficiency"] for row in data["measurements"]] == pytest.approx([1.0, 1.0, 0.95, 0.8])
    assert files[2].read_bytes().startswith(b"\x89PNG")
    assert [line.split()[-1] for line in scaling_table(rows)[1:]] == ["1.000", "1.000", "0.950", "0.800"]


def test_a_device_renders_at_least_as_many_pictures_as_are_requested() -> None:
    rate = DeviceRate(make_stylegan2(), "cpu", "fp16", 8)
    assert rate.render(3) == 3  # the CPU renders one by one
    rate.close()
    rate.close()
