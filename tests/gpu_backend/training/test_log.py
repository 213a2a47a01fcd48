"""The log and what is drawn of it."""

from pathlib import Path

import pytest

from gpu_backend import run_facts
from gpu_backend.training import plots
from gpu_backend.training.log import COLUMNS, TrainLog, read_log
from gpu_backend.training.progress import duration


def test_lines_are_read_back_and_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = TrainLog(path, 0)
    log.add({"step": 2, "kimg": 0.5, "loss_g": 1.25})
    log.add({"step": 4, "kimg": 1.0})
    with path.open("a", encoding="utf-8") as file:
        file.write("6,1.")
    assert read_log(path)[:2] == [{"step": 2, "kimg": 0.5, "loss_g": 1.25}, {"step": 4, "kimg": 1.0}]
    assert path.read_text("utf-8").splitlines()[0] == ",".join(COLUMNS)
    TrainLog(path, 2).add({"step": 3})
    assert [row["step"] for row in read_log(path)] == [2, 3]


def test_plots_need_two_lines_and_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_facts, "find_spec", lambda name: None)
    assert "latentloom[bench]" in run_facts.plots_problem()
    log = TrainLog(tmp_path / "log.csv", 0)
    log.add({"step": 1, "kimg": 0.1, "loss_g": 1.0, "loss_d": 2.0, "r1": 0.1})
    assert not plots.draw_plots(log.path, tmp_path / "training.png")
    log.add({"step": 2, "kimg": 0.2, "loss_g": 1.5, "loss_d": 1.0})
    assert plots.draw_plots(log.path, tmp_path / "training.png")
    assert (tmp_path / "training.png").read_bytes().startswith(b"\x89PNG")


def test_times_are_said_as_people_say_them() -> None:
    assert [duration(seconds) for seconds in (-1, 59.6, 61, 7325)] == ["0 s", "1 min 00 s", "1 min 01 s", "2 h 02 min"]
    assert [duration(hours * 3600) for hours in (47, 48, 24 * 1989 + 9)] == [
        "47 h 00 min",
        "2 days 0 h",
        "1,989 days 9 h",
    ]


def test_lines_of_damaged_text_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    TrainLog(path, 0).add({"step": 2, "kimg": 0.5})
    with path.open("ab") as file:
        file.write(b"\xff\xfe,1\n" + b'"' + b"9" * 200_000 + b"\n" + b"\0" * 50 + b"\n3,0.75\n")
    assert read_log(path) == [{"step": 2, "kimg": 0.5}, {"step": 3, "kimg": 0.75}]
    path.write_bytes(b"")
    assert read_log(path) == []
