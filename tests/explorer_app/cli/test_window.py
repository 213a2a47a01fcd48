"""What the command of the window does before there is one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from explorer_app import app
from explorer_app.cli.console import Console
from explorer_app.cli.window import run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return command lines that replaced the process; `["window"]` is a window in it."""
    commands: list[list[str]] = []

    def run_window(file: Path | None, **options: object) -> int:
        commands.append(["window"])
        return 0

    monkeypatch.setattr(os, "execv", lambda path, words: commands.append([path, *words]))
    monkeypatch.setattr(app, "run_window", run_window)
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "explorer_app", "häuser.loom"])
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    monkeypatch.setenv("PYTHONUTF8", "0")
    return commands


def test_where_python_takes_names_of_files_for_something_else_than_qt_it_starts_again_in_utf8(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    assert run([], Console()) == 0
    assert started == [[sys.executable, sys.executable, "-m", "explorer_app", "häuser.loom"], ["window"]]
    assert os.environ["PYTHONUTF8"] == "1", "so that the next one does not start again"
    started.clear()
    run([], Console())
    assert started == [["window"]]


def test_where_both_agree_or_the_system_refuses_the_window_opens_at_once(
    started: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run([], Console())
    assert started == [["window"]]
    started.clear()

    def refuse(path: str, words: list[str]) -> None:
        raise OSError(7, "Argument list too long")

    monkeypatch.setattr(os, "execv", refuse)
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")
    run([], Console())
    assert started == [["window"]]
