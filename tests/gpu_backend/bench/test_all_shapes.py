"""All shapes in one run: a report each, one table and one CSV of all."""

import csv
import json
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
from gpu_backend.bench.report import OURS, Report, to_json
from gpu_backend.bench.shapes import SHAPES, SHAPES_WITH_PEERS, Shape
from gpu_backend.bench.stopwatch import Budget
from gpu_backend.cuda.driver.probe import Probe
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


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_the_processor_gets_its_own_batches_also_where_it_is_not_named(
    monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    batches = []

    def note(options: BenchOptions, say: Any, budget: Budget) -> Report:
        batches.append(options.batches)
        return made_up_report()

    monkeypatch.setattr(all_shapes, "SHAPES_WITH_PEERS", ("cifar32",))
    monkeypatch.setattr(all_shapes, "run_suite", note)
    monkeypatch.setattr("gpu_backend.device._probe", lambda: Probe((), "There is no GPU.", "", ""))
    all_shapes.measure_all_shapes(BenchOptions(device=device), lambda _: None)
    all_shapes.measure_all_shapes(BenchOptions(device=device, batches=(4,)), lambda _: None)
    assert batches == [all_shapes.CPU_BATCHES, (4,)]


def test_the_summary_holds_ours_against_the_fastest_peer_of_each_precision() -> None:
    lines = summary([made_up_report()]).splitlines()
    assert len(lines) == 5, "two precisions, two batches"
    first = next(line for line in lines if line.startswith("ffhq1024  fp16           1"))
    assert first.split()[5:] == ["compiled", "1.20", "3.00", "x", "75%"]


@pytest.mark.parametrize(("own", "theirs"), [("bf16x3", "fp32"), ("fp8", "fp16")])
def test_the_summary_holds_what_no_peer_has_against_the_nearest_precision_of_peers(own: str, theirs: str) -> None:
    made_up = made_up_report()
    peer = next(row for row in made_up.measurements if row.who == "compiled" and row.batch == 1)
    ours = next(row for row in made_up.measurements if row.who == OURS and row.batch == 1)
    rows = (replace(ours, precision=own), replace(peer, precision=theirs))
    lines = summary([replace(made_up, measurements=rows)]).splitlines()
    assert any(line.split()[1] == own and f"compiled, {theirs}" in line for line in lines)


def test_runs_of_single_shapes_are_joined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = made_up_report()
    for name, network in (("a", "cifar32"), ("b", "ffhq1024"), ("c", "ffhq256")):
        (tmp_path / name).mkdir()
        made = replace(report, run=replace(report.run, network=network))
        (tmp_path / name / "bench.json").write_text(json.dumps(to_json(made)))
    assert all_shapes.main([str(tmp_path)]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1::4]] == [
        "ffhq1024",
        "ffhq256",
        "cifar32",
    ]
    rows = list(csv.DictReader((tmp_path / "all-shapes.csv").read_text().splitlines()))
    assert {row["shape"] for row in rows} == {"cifar32", "ffhq1024", "ffhq256"}


def test_a_folder_without_runs_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert all_shapes.main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("Expected runs as DIR/*/bench.json, but ")


def test_without_a_folder_the_usage_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        all_shapes.main([])
    assert capsys.readouterr().err.startswith("usage: python -m gpu_backend.bench.all_shapes")


@pytest.mark.parametrize("words", [["--shape", "ffhq256"], ["model.pkl"], ["--ladder"]])
def test_options_that_exclude_each_other_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--all-shapes", *words]) == 2
    assert "--all-shapes" in capsys.readouterr().err
