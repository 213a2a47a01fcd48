"""The script that kills the window while a timeline is edited: what it finds afterwards."""

import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.controller.autosave import Autosave
from explorer_app.controller.file_worker import FileWorker
from explorer_app.messages import MessageLog
from explorer_app.session.history import History
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.tracks import Timeline
from tests.helpers.packaging_script import packaging_script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path])
    return packaging_script("kill_window")


def test_the_newest_edit_of_a_killed_window_is_found(script: ModuleType, tmp_path: Path, qtbot: QtBot) -> None:
    assert script.newest_edit(tmp_path / "new") == 0
    messages = MessageLog()
    worker = FileWorker(messages)
    saver = Autosave(tmp_path / "state", worker, messages)
    saver.load()
    timeline = with_key(with_key(Timeline(), "noise.gain", Fraction(0), 1.0), "noise.gain", Fraction(1), 37 / 1e4)
    saver.remember(Session(timeline=timeline), History((), -1, next_number=1))
    saver.close()
    worker.close()
    assert script.newest_edit(tmp_path / "state") == 37
