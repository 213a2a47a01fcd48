"""The report as a table, CSV, JSON and a plot, and gains that are those of the rows."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend.training.benchmark import files
from gpu_backend.training.benchmark.files import write_files
from gpu_backend.training.benchmark.report import SkippedRow, StepReport, StepTime
from gpu_backend.training.benchmark.table import table


def row(name: str, step_ms: float, nbytes: int | None = 5_000_000_000) -> StepTime:
    return StepTime(name, f"what {name} is", step_ms, step_ms * 0.9, 8000 / step_ms, nbytes, 48, 1.0)


REPORT = StepReport(
    date="2026-01-02T03:04:05+00:00",
    command="latentloom train-bench",
    commit="0123456789abcdef",
    device="A GPU",
    driver="580.1",
    versions={"torch": "2.13.0"},
    resolution=256,
    batch=8,
    parameters=48_000_000,
    method=("as it is",),
    rows=(row("fp32", 100.0), row("bf16", 50.0), row("graph", 20.0)),
    skipped=(SkippedRow("compile", "no time"),),
    wall_s=61.0,
)


def test_gains_are_over_the_row_before_and_over_the_first() -> None:
    assert [REPORT.gain_of_one(one) for one in REPORT.rows] == [1.0, 2.0, 2.5]
    assert [REPORT.gain(one) for one in REPORT.rows] == [1.0, 2.0, 5.0]


def test_a_row_that_gains_nothing_says_why_and_one_may_change_an_earlier_row() -> None:
    rows = (
        row("fp32", 100.0),
        row("bf16", 50.0),
        replace(row("adam", 49.9), no_gain="Adam is small"),
        replace(row("compile-alone", 25.0), base="bf16", no_gain="not said"),
    )
    report = replace(REPORT, rows=rows, skipped=())
    assert [report.gain_of_one(one) for one in rows] == [1.0, 2.0, 50.0 / 49.9, 2.0]
    assert [report.why_no_gain(one) for one in rows] == ["", "", "Adam is small", ""]
    assert "adam gains nothing: Adam is small" in table(report)
    assert "not said" not in table(report)


def test_a_row_that_is_slower_is_not_said_to_gain_nothing() -> None:
    slower = replace(row("bf16", 130.0), no_gain="numbers are converted")
    report = replace(REPORT, rows=(row("fp32", 100.0), slower), skipped=())
    assert "bf16 is slower: numbers are converted" in table(report)


def test_the_table_names_everything() -> None:
    lines = table(REPORT).splitlines()
    assert lines[0] == "A training step at 256 x 256, batch 8, 48.0 M parameters"
    assert lines[1] == "A GPU, driver 580.1, torch 2.13.0"
    assert lines[4].split() == ["ms/step", "images/s", "memory", "gain", "in", "all"]
    assert lines[5].split() == ["fp32", "100.00", "80.0", "5.0", "GB", "1.00", "x"]
    assert lines[7].split() == ["+", "graph", "20.00", "400.0", "5.0", "GB", "2.50", "x", "5.00", "x"]
    assert lines[-1] == "skipped: compile: no time"


def test_files_hold_it_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, problem = write_files(REPORT, tmp_path)
    assert not problem
    assert [path.name for path in written] == ["train-bench.json", "train-bench.csv", "train-bench.png"]
    fields = json.loads(written[0].read_text("utf-8"))
    assert (fields["device"], fields["rows"][2]["gain_in_all"]) == ("A GPU", 5.0)
    with written[1].open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["name"] for line in lines] == ["fp32", "bf16", "graph", "compile"]
    assert (lines[2]["gain"], lines[3]["skipped"]) == ("2.5", "no time")
    assert written[2].read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(files, "plots_problem", lambda: "not here")
    assert write_files(REPORT, tmp_path)[1] == "not here"
