"""A small benchmark on the processor: what is measured, what is left out and why, and the order of the rows."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from gpu_backend.training.benchmark import files, suite
from gpu_backend.training.benchmark.command import run_train_bench
from gpu_backend.training.benchmark.held_pictures import HeldPictures
from gpu_backend.training.benchmark.ladder import Row, ladder
from gpu_backend.training.benchmark.options import ROWS, TrainBenchOptions
from gpu_backend.training.benchmark.report import StepTime
from gpu_backend.training.benchmark.suite import STOPPED, run_suite
from gpu_backend.training.benchmark.table import table

SMALL = TrainBenchOptions(resolution=8, batch=2, channel_base=64, channel_max=8, steps=1, device="cpu", commit="abc")


@pytest.mark.usefixtures("one_thread")
def test_rows_are_measured_over_a_whole_period_and_those_for_a_gpu_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = replace(suite.train_options(SMALL), z_dim=16, w_dim=16, r1_every=2)
    monkeypatch.setattr(suite, "train_options", lambda _: narrow)
    said: list[str] = []
    tf32 = torch.backends.cudnn.allow_tf32
    report = run_suite(SMALL, said.append)
    assert [row.name for row in report.rows] == [
        name for name in ROWS if name not in ("graph", "compile", "compile-alone")
    ]
    assert {item.name: item.reason for item in report.skipped} == {
        "graph": "CUDA graphs need a GPU",
        "compile": "compiling for the processor takes minutes",
        "compile-alone": "compiling for the processor takes minutes",
    }
    assert said == [f"measuring: {row.name}" for row in report.rows]
    for row in report.rows:
        assert row.steps == 2
        assert 0 < row.least_ms <= row.step_ms
        assert row.images_per_s == pytest.approx(2000 / row.step_ms)
    assert report.commit == "abc"
    assert report.parameters > 5_000
    assert torch.backends.cudnn.allow_tf32 == tf32


def test_rows_can_be_chosen_and_none_begins_once_the_time_is_spent() -> None:
    report = run_suite(TrainBenchOptions(**{**_fields(), "rows": ("bf16", "graph"), "budget_s": 0.0}), lambda _: None)
    assert report.rows == ()
    assert [(item.name, item.reason) for item in report.skipped] == [
        ("bf16", "the time of --budget-s was spent"),
        ("graph", "CUDA graphs need a GPU"),
    ]


def test_ctrl_c_keeps_the_rows_before_it_and_names_those_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(row: Row, *others: object) -> StepTime:
        if row.name == "bf16":
            raise KeyboardInterrupt
        return StepTime(row.name, row.what, 2.0, 1.0, 500.0, None, 48, 1.0)

    monkeypatch.setattr(suite, "_measured", measured)
    report = run_suite(replace(SMALL, rows=("fp32", "channels-last", "bf16", "adam")), lambda _: None)
    assert [row.name for row in report.rows] == ["fp32", "channels-last"]
    assert [(item.name, item.reason) for item in report.skipped] == [("bf16", STOPPED), ("adam", STOPPED)]
    assert "skipped: adam: the run was stopped" in table(report)


def test_each_row_adds_to_the_one_before_but_for_compile_alone() -> None:
    *rows, alone = ladder(torch.device("cuda", 0))
    assert (*(row.name for row in rows), alone.name) == ROWS
    assert not any(row.problem for row in (*rows, alone))
    assert [row.methods.low for row in rows] == [torch.float32] * 2 + [torch.bfloat16] * 9
    changes = ("channels_last", "", "", "", "", "fused", "set_to_none", "graphs", "", "compile")
    for index, name in enumerate(changes, 1):
        if name:
            assert [getattr(row.methods, name) for row in rows] == [False] * index + [True] * (len(rows) - index)
    assert [row.prefetch for row in rows] == [False] * 9 + [True] * 2
    assert len({row.make for row in rows[:3]}) == len({row.make for row in rows[5:]}) == 1
    assert len({row.make for row in rows}) == 4
    assert all(row.methods == rows[2].methods for row in rows[3:6]), "they change the networks alone"
    bf16 = next(row for row in rows if row.name == alone.base)
    assert alone.methods == replace(bf16.methods, compile=True)
    assert alone.make == bf16.make
    assert all(row.no_gain for row in (*rows[1:], alone))


def test_held_pictures_go_on_where_batches_end() -> None:
    source = HeldPictures(16, count=5)
    first, second = source.batches(4, 1, 0), source.batches(4, 1, 4)
    assert next(first).shape == (4, 3, 16, 16)
    assert torch.equal(next(first), next(second))


def _fields() -> dict[str, Any]:
    return {name: getattr(SMALL, name) for name in SMALL.__slots__}


def test_a_full_disk_does_not_lose_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(suite, "run_suite", lambda options, say: run_suite(replace(SMALL, rows=()), say))
    monkeypatch.setattr(files, "write_files", full)
    shown: list[Any] = []
    with pytest.raises(OSError, match="No space"):
        run_train_bench(replace(SMALL, out=tmp_path), lambda text: None, shown.append)
    assert len(shown) == 1
