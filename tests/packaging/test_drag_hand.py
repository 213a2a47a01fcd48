"""The script that measures what lies between a hand and the picture goes through; its figures are no assertion."""

import contextlib
import csv
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.packaging_script import packaging_script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    return packaging_script("drag_hand")


def test_times_from_a_move_to_its_picture_are_written(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    monkeypatch.setattr(benchmark, "_WARM_UP_S", 0.1)
    for seconds in ("0.4", "4", "40"):  # until pictures came, on a machine that is busy elsewhere
        with contextlib.suppress(SystemExit):  # too few
            benchmark.main(["--shape", "16:64:4", "--device", "cpu", "--seconds", seconds])
            break
    with (tmp_path / "hand.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["by"] == "torch"
    assert int(row["pictures"]) > 1
    assert 0.0 < float(row["median_ms"]) <= float(row["p99_ms"]) <= float(row["longest_ms"])


def test_a_drag_that_fails_ends_the_measurement(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object) -> None:
        raise RuntimeError("no step")

    monkeypatch.setattr(benchmark.TimedTargets, "step", fail)
    with pytest.raises(SystemExit, match="ended early"):
        benchmark.measure("16:64:4", "cpu", 30.0)
