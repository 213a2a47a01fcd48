"""All shapes in one run: a report each, one table and one CSV of all."""

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_backend.bench import all_shapes
from gpu_backend.bench.all_shapes import summary
from gpu_backend.bench.command import main
from gpu_backend.bench.options import BenchOptions
from gpu_backend.bench.report import OURS, Report
from gpu_backend.bench.shapes import SHAPES, SHAPES_WITH_PEERS, Shape
from gpu_backend.bench.stopwatch import Budget
from tests.gpu_backend.bench.made_up import made_up_report

TINY = {name: Shape(name, side, 128, 8) for name, side in (("tiny16", 16), ("tiny8", 8))}


def test_the_plain_network_is_written_for_the_shapes_that_are_measured() -> None:
    assert {SHAPES[name].config for name in SHAPES_WITH_PEERS} == {"skip"}
    assert SHAPES_WITH_PEERS[0] == "ffhq1024"


def test_each_shape_is_measured_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(all_shapes, "SHAPES", TINY)
    monkeypatch.setattr(all_shapes, "SHAPES_WITH_PEERS", tuple(TINY))
    monkeypatch.setattr("gpu_backend.bench.files.plots_problem", lambda: "left out of this test")
    monkeypatch.setattr("gpu_backend.bench.ceiling._CPU_COPY_NBYTES", 1 << 16)
    monkeypatch.setattr("gpu_backend.bench.ceiling._CPU_SIDE", 32)
    monkeypatch.setattr("gpu_backend.bench.gesture._LEAST", 3)
    words = ["--all-shapes", "--device", "cpu", "--runs", "3", "--peers", "eager", "--precision", "fp32"]
    words += ["--threads", str(torch.get_num_threads()), "--out", str(tmp_path), "--quick"]
    assert main(words) == 0
    rows = list(csv.DictReader((tmp_path / "all-shapes.csv").read_text().splitlines()))
    measured = {(row["shape"], row["who"], row["batch"]) for row in rows if row["latency_ms"]}
    assert measured == {(name, who, batch) for name in TINY for who in (OURS, "eager") for batch in ("1", "2")}
    assert all(float(row["gain"]) > 0 for row in rows if row["who"] == "eager")
    assert (tmp_path / "tiny8" / "bench.json").is_file()
    assert len([line for line in capsys.readouterr().out.splitlines() if line.startswith("tiny16 ")]) == 2


def test_each_shape_has_an_equal_share_of_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ends = [0.0], []

    def spend(options: BenchOptions, say: Any, budget: Budget) -> Report:
        while not budget.is_spent:
            now[0] += 1.0
        ends.append(now[0])
        return made_up_report()

    monkeypatch.setattr(all_shapes, "SHAPES", TINY)
    monkeypatch.setattr(all_shapes, "SHAPES_WITH_PEERS", tuple(TINY))
    monkeypatch.setattr(all_shapes, "Budget", partial(Budget, clock=lambda: now[0]))
    monkeypatch.setattr(all_shapes, "run_suite", spend)
    all_shapes.measure_all_shapes(BenchOptions(device="cpu", budget_s=30.0), lambda _: None)
    assert ends == [15.0, 30.0]


def test_the_summary_holds_ours_against_the_fastest_peer_of_each_precision() -> None:
    lines = summary([made_up_report()]).splitlines()
    assert len(lines) == 5, "two precisions, two batches"
    first = next(line for line in lines if line.startswith("ffhq1024  fp16           1"))
    assert first.split()[5:] == ["compiled", "1.20", "3.00", "x", "75%"]


def test_the_summary_holds_bf16x3_against_peers_in_fp32() -> None:
    made_up = made_up_report()
    peer = next(row for row in made_up.measurements if row.who == "compiled" and row.batch == 1)
    ours = next(row for row in made_up.measurements if row.who == OURS and row.batch == 1)
    rows = (replace(ours, precision="bf16x3"), replace(peer, precision="fp32"))
    lines = summary([replace(made_up, measurements=rows)]).splitlines()
    assert any(line.split()[1] == "bf16x3" and "compiled, fp32" in line for line in lines)


@pytest.mark.parametrize("words", [["--shape", "ffhq256"], ["model.pkl"], ["--ladder"]])
def test_options_that_exclude_each_other_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all-shapes", *words]) == 2
    assert "--all-shapes" in capsys.readouterr().err
