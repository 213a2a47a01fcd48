"""The benchmark's command: what was measured is shown, also if no file can be written."""

import errno
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.bench import all_shapes, files, ladder, suite
from gpu_backend.bench.command import run_bench
from gpu_backend.bench.options import BenchOptions
from gpu_backend.bench.table import table
from tests.gpu_backend.bench.made_up import made_up_report


def full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("word", ["", "ladder", "all_shapes"])
def test_a_full_disk_does_not_lose_the_table(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = made_up_report()
    monkeypatch.setattr(suite, "run_suite", lambda options, note: report)
    monkeypatch.setattr(all_shapes, "measure_all_shapes", lambda options, note: (report, report))
    monkeypatch.setattr(suite, "run_ladder", lambda options, note: [])
    monkeypatch.setattr(files, "write_files", full)
    monkeypatch.setattr(ladder, "write_ladder", full)
    monkeypatch.setattr(ladder, "ladder_table", lambda found: "the rungs")
    shown: list[Sequence[str]] = []
    options = BenchOptions(out=tmp_path, ladder=word == "ladder", all_shapes=word == "all_shapes")
    with pytest.raises(OSError, match="No space"):
        run_bench(options, lambda text: None, shown.append)
    (lines,) = shown
    expected = ["the rungs"] if word == "ladder" else table(report).splitlines()
    assert list(lines[: len(expected)]) == expected
    assert len(lines) > len(expected) or word != "all_shapes"
