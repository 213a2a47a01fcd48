"""Notifications at the end of exports."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer_app.controller import ExportProgress, ExportQueueController
from explorer_app.exporting.export_list import ExportRecord, JobState
from explorer_app.settings import Settings
from explorer_app.window.shell.export_notices import PREFERENCE, DesktopNotifier, ExportNotices, end_of, sender_of
from tests.helpers.fake_files import FakeExport


def record(name: str, state: JobState = "done", error: str = "") -> ExportRecord:
    job_id = name.encode().hex().ljust(16, "0")
    return ExportRecord(job_id, state, "/films", name, f"{name}.mp4", "MP4", "cats", "a" * 64, 96, 96, "", error)


class FakeNotifier(QObject):
    """Keeps what it should show."""

    clicked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[tuple[str, str]] = []

    def show(self, title: str, text: str) -> None:
        self.shown.append((title, text))


class Run:
    """Exports that end, as a window hears of them."""

    def __init__(self, settings: Settings, window: QWidget) -> None:
        self.now, self.is_active = 100.0, False
        self.notifier = FakeNotifier()
        self.export = FakeExport([])
        export = cast("ExportQueueController", self.export)
        ExportNotices(export, settings, window, self.notifier, lambda: self.is_active, lambda: self.now)

    def end(self, *jobs: ExportRecord, seconds: float = 60.0) -> list[tuple[str, str]]:
        """Let a run end, and return the notifications so far."""
        self.export.progress = ExportProgress("walk", 0, 96)
        self.export.changed.emit()
        self.now += seconds
        self.export.changed.emit()
        self.export.progress, self.export.last_run = None, jobs
        self.export.changed.emit()
        self.export.finished.emit()
        return self.notifier.shown


@pytest.fixture
def run(qtbot: QtBot, settings: Settings) -> Run:
    window = QWidget()
    qtbot.addWidget(window)
    return Run(settings, window)


def test_the_end_of_a_long_export_is_shown_while_another_program_is_active(run: Run) -> None:
    assert run.end(record("walk")) == [("Export “walk” is done", "96 frames · MP4 · /films")]


def test_none_is_shown_of_a_short_export_or_to_who_looks_or_wants_none(run: Run, settings: Settings) -> None:
    assert run.end(record("walk"), seconds=9.0) == []
    run.is_active = True
    assert run.end(record("walk")) == []
    run.is_active = False
    settings.choose(PREFERENCE, "no")
    assert run.end(record("walk")) == []


def test_a_click_brings_the_window_to_the_front(qtbot: QtBot, settings: Settings) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    run = Run(settings, window)
    with qtbot.waitActive(window, timeout=30_000):
        run.notifier.clicked.emit()


def test_what_the_user_stopped_is_not_told_and_several_are_one_notification() -> None:
    walk, fly = record("walk"), record("fly")
    full = record("film", "failed", "The disk is full.")
    assert end_of(()) is None
    assert end_of((replace(walk, state="cancelled"), replace(fly, state="paused"))) is None
    assert end_of((walk, fly)) == ("2 exports are done", "walk, fly")
    assert end_of((full,)) == ("Export “film” failed", "The disk is full.")
    assert end_of((walk, full, fly)) == ("2 of 3 exports are done", "The disk is full.")
    assert end_of((replace(walk, total=1),)) == ("Export “walk” is done", "1 frame · MP4 · /films")


def test_on_linux_a_program_sends_it_with_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = {"notify-send", "gdbus"}
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}" if name in programs else None)
    sent = sender_of("-x", "<a> & b")
    assert sent is not None
    assert (sent[0], sent[1][-3:]) == ("/bin/notify-send", ["--", "-x", "&lt;a&gt; &amp; b"])
    programs.remove("notify-send")
    sent = sender_of('say "a\\b"', "two\nlines")
    assert sent is not None
    assert sent[0] == "/bin/gdbus"
    assert r'"say \"a\\b\"" "two lines" @as [] @a{sv} {} 10000' in " ".join(sent[1])
    programs.clear()
    assert sender_of("a", "b") is None


def test_a_desktop_without_a_server_and_a_tray_shows_nothing(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    notifier = DesktopNotifier(window)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda name: None)
    notifier.show("title", "text")
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / name))
    notifier.show("title", "text")


@pytest.mark.skipif(sys.platform == "win32", reason="runs a script of the shell")
def test_the_sender_gets_the_texts(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    program, told = tmp_path / "notify-send", tmp_path / "told"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {told}.part\nmv {told}.part {told}\n')
    program.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    DesktopNotifier(window).show("title", "text")
    qtbot.waitUntil(told.exists, timeout=30_000)
    assert told.read_text().endswith("--|title|text|")
