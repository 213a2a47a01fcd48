"""JSON, CSV and plots are written, and what cannot be drawn is named."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend import run_facts
from gpu_backend.bench import files, plots
from gpu_backend.bench.files import csv_text, write_files
from gpu_backend.bench.report import read_report
from gpu_backend.errors import RequestError
from tests.gpu_backend.bench.made_up import made_up_report


def test_csv_has_a_line_a_measurement_and_names_what_was_skipped() -> None:
    report = made_up_report()
    rows = list(csv.DictReader(io.StringIO(csv_text(report))))
    assert len(rows) == len(report.measurements) + len(report.skipped)
    assert float(rows[0]["latency_ms"]) == report.measurements[0].latency_ms
    assert rows[-1]["who"] == "compiled, fp16, batch 32"
    assert rows[-1]["skipped"] == "out of memory"


def test_without_matplotlib_the_rest_is_written_and_the_plots_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_facts, "find_spec", lambda name: None)
    written, problem = write_files(made_up_report(), tmp_path / "new")
    assert [path.name for path in written] == ["bench.json", "bench.csv"]
    assert "matplotlib" in problem
    assert "latentloom[bench]" in problem


def test_json_on_disk_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "plots_problem", lambda: "not wanted")
    write_files(made_up_report(), tmp_path)
    assert read_report(tmp_path / "bench.json") == made_up_report()


@pytest.mark.parametrize("content", ["", "[]", "{"])
def test_a_file_that_is_invalid_is_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, "utf-8")
    with pytest.raises(RequestError, match=r"other\.json"):
        read_report(path)


def test_plots_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    written, problem = write_files(made_up_report(), tmp_path)
    assert problem == ""
    pictures = [path for path in written if path.suffix == ".png"]
    assert [path.stem for path in pictures] == ["latency", "throughput", "roofline"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    bare = replace(made_up_report(), measurements=(), kernels=(), ceiling=None)
    assert plots.draw_plots(bare, tmp_path) == ()


def test_plots_are_drawn_again_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "plots_problem", lambda: "not wanted")
    write_files(made_up_report(), tmp_path)
    assert plots.main([str(tmp_path / "bench.json")]) == 0
    assert (tmp_path / "latency.png").is_file()
    assert "latency.png" in capsys.readouterr().out
