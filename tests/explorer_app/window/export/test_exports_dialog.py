"""The list of exports as a person sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QToolButton
from pytestqt.qtbot import QtBot

from explorer_app.controller import ExportProgress
from explorer_app.exporting.export_list import ExportPlace, ExportRecord, JobState
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Session
from explorer_app.settings import Settings
from explorer_app.window.export.destination_dialog import DestinationDialog
from explorer_app.window.export.exports_dialog import ExportRow, ExportsDialog
from explorer_app.window.export.worker_log_dialog import WorkerLogDialog
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.windows import calls


def record(name: str, state: JobState = "waiting", *, done: int = 0, error: str = "", owner: str = "") -> ExportRecord:
    job_id = name.encode().hex().ljust(16, "0")[:16]
    return ExportRecord(
        job_id, state, "/films", name, f"{name}_00000.png", "PNG", "cats", "a" * 64, 96, done, owner, error
    )


@pytest.fixture
def dialog(window: MainWindow) -> Iterator[ExportsDialog]:
    window.commands.files.show_exports()
    dialog = window.findChild(ExportsDialog)
    assert isinstance(dialog, ExportsDialog)
    yield dialog
    dialog.close()


def press(button: QToolButton) -> None:
    assert button.isVisible()
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


def buttons(row: ExportRow) -> set[str]:
    return {button.accessibleName() for button in row.findChildren(QToolButton) if button.isVisible()}


def test_an_empty_list_says_where_exports_come_from(dialog: ExportsDialog) -> None:
    assert dialog.empty.isVisible()
    assert not dialog.clear.isEnabled()


def test_the_list_fits_on_a_low_screen(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen:
        def availableGeometry(self) -> QRect:  # noqa: N802 - Qt's name
            return QRect(0, 0, 640, 360)

    monkeypatch.setattr(type(window), "screen", lambda self: Screen())
    window.commands.files.show_exports()
    dialog = window.findChild(ExportsDialog)
    assert dialog is not None
    assert dialog.width() < 640
    assert dialog.height() < 360
    dialog.close()
    dialog.deleteLater()


def test_the_list_is_opened_once(window: MainWindow, dialog: ExportsDialog) -> None:
    window.commands.files.show_exports()
    assert len(window.findChildren(ExportsDialog)) == 1


@pytest.mark.parametrize(("running", "shown"), [(3, 3), (None, 39)])
def test_a_long_list_opens_at_what_runs_or_at_the_newest(
    window: MainWindow, controller: FakeController, qtbot: QtBot, running: int | None, shown: int
) -> None:
    jobs = [record(f"walk{place:02}", "running" if place == running else "done") for place in range(40)]
    controller.export.show_jobs(*jobs)
    window.commands.files.show_exports()
    dialog = window.findChild(ExportsDialog)
    assert isinstance(dialog, ExportsDialog)
    row, port = dialog.rows[shown], dialog.scrolled.viewport()
    qtbot.waitUntil(lambda: port.rect().contains(QRect(row.mapTo(port, QPoint()), row.size())))
    dialog.close()


@pytest.mark.parametrize(
    ("state", "word", "offered"),
    [
        ("waiting", "Waiting", {"Pause", "Up", "Down", "Stop", "Show in folder"}),
        ("running", "Running", {"Pause", "Stop", "Show in folder"}),
        ("paused", "Paused", {"Resume", "Change", "Stop", "Show in folder"}),
        ("failed", "Failed", {"Try again", "Change", "Remove", "Show in folder"}),
        ("cancelled", "Stopped", {"Resume", "Change", "Remove", "Show in folder"}),
        ("done", "Done", {"Remove", "Show in folder"}),
    ],
)
def test_each_state_has_its_word_and_its_buttons(
    dialog: ExportsDialog, controller: FakeController, state: JobState, word: str, offered: set[str]
) -> None:
    controller.export.show_jobs(record("walk", state, done=12))
    (row,) = dialog.rows
    assert row.state.text() == word
    assert buttons(row) == offered


def test_the_one_that_runs_shows_frames_pace_and_time(dialog: ExportsDialog, controller: FakeController) -> None:
    job = record("walk", "running")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    controller.progress(ExportProgress("walk", 37, 96, 12.0, per_second=4.91))
    (row,) = dialog.rows
    assert row.details.text() == "PNG · 37 of 96 frames · 4.9 fps · 12 s left · /films"
    assert (row.bar.value(), row.bar.maximum()) == (37, 96)
    controller.progress(ExportProgress("walk", 37, 96, is_stopping=True))
    assert row.state.text() == "Stopping"
    assert not row.pause.isEnabled()
    assert not row.cancel.isEnabled()


def test_a_failure_shows_its_whole_sentence(dialog: ExportsDialog, controller: FakeController) -> None:
    sentence = f"The folder {'/films' * 30} holds a different sequence; choose another name."
    controller.export.show_jobs(record("walk", "failed", error=sentence))
    (row,) = dialog.rows
    assert row.error.isVisible()
    assert row.error.text() == sentence
    assert not row.details.isVisible()
    QTest.qWaitForWindowExposed(dialog)
    assert row.error.height() >= row.error.heightForWidth(row.error.width())


def test_a_row_keeps_its_place_while_the_ones_above_it_end(dialog: ExportsDialog, controller: FakeController) -> None:
    places = []
    for states in (("paused", "paused"), ("running", "waiting"), ("done", "running"), ("done", "cancelled")):
        controller.export.show_jobs(record("one", states[0]), record("two", states[1]))
        QApplication.processEvents()
        row = dialog.rows[1]
        places.append((row.y(), row.folder.mapTo(dialog, QPoint()), row.state.geometry().right()))
    assert len(set(map(repr, places))) == 1


def test_every_button_asks_for_its_job(dialog: ExportsDialog, controller: FakeController) -> None:
    one, two = record("one"), record("two")
    controller.export.show_jobs(one, two)
    first, second = dialog.rows
    assert (first.up.isEnabled(), first.down.isEnabled()) == (False, True)
    assert (second.up.isEnabled(), second.down.isEnabled()) == (True, False)
    press(second.up)
    press(first.pause)
    press(first.cancel)
    controller.export.show_jobs(record("one", "paused"), record("two", "done"))
    press(first.resume)
    press(second.remove)
    QTest.mouseClick(dialog.clear, Qt.MouseButton.LeftButton)
    assert calls(controller, "move_export") == [("move_export", two.job_id, -1)]
    assert calls(controller, "pause_export") == [("pause_export", one.job_id)]
    assert calls(controller, "cancel_export") == [("cancel_export", one.job_id)]
    assert calls(controller, "resume_job") == [("resume_job", one.job_id)]
    assert calls(controller, "remove_export") == [("remove_export", two.job_id)]
    assert calls(controller, "clear_exports") == [("clear_exports",)]


def test_a_failed_export_can_go_elsewhere(
    dialog: ExportsDialog, controller: FakeController, settings: Settings, tmp_path: Path
) -> None:
    job = replace(record("walk", "failed", error="The disk is full."), where="farm", address="10.0.0.7")
    other = replace(record("walk2"), name="walk", folder=str(tmp_path / "busy"))
    controller.export.show_jobs(job, other)
    keyframe = Keyframe.of(resolve(Session()))
    wanted = SequenceSettings((keyframe, keyframe), Path("/films"), "walk", ModelReference(), "w-linear", 4)
    controller.export.settings = wanted
    press(dialog.rows[0].change)
    (asked,) = dialog.findChildren(DestinationDialog)
    assert (asked.folder.line.text(), asked.place.address.text()) == ("/films", "10.0.0.7")
    asked.place.where.setCurrentIndex(asked.place.where.findData("here"))
    asked.folder.line.clear()
    assert not asked.go_on.isEnabled()
    assert "Choose a folder" in asked.hint.text()
    asked.folder.line.setText(str(tmp_path / "busy"))
    assert "Another export “walk”" in asked.hint.text()
    (tmp_path / "walk_00000.png").touch()
    asked.folder.line.setText(str(tmp_path))
    assert asked.hint.text() == "There is a walk_00000.png in this folder; choose another folder."
    assert not asked.go_on.isEnabled()
    asked.folder.line.setText(str(tmp_path / "free"))
    QTest.mouseClick(asked.go_on, Qt.MouseButton.LeftButton)
    (tmp_path / "free").mkdir()
    assert settings.folder("export") == tmp_path / "free", "the next export goes there too"
    moved = replace(wanted, folder=tmp_path / "free")
    assert calls(controller, "redirect_export") == [("redirect_export", job.job_id, moved, ExportPlace("here"))]


def test_settings_that_are_read_after_the_list_was_closed_open_nothing(
    qtbot: QtBot, controller: FakeController, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Callable[[SequenceSettings], None]] = []
    monkeypatch.setattr(controller.export, "with_settings", lambda job_id, take: read.append(take))
    dialog = ExportsDialog(controller.export, settings)  # type: ignore[arg-type]
    dialog.show()
    controller.export.show_jobs(record("walk", "failed"))
    press(dialog.rows[0].change)
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()
    keyframe = Keyframe.of(resolve(Session()))
    read[0](SequenceSettings((keyframe, keyframe), Path("/films"), "walk", ModelReference(), "w-linear", 4))


def test_a_video_that_is_put_together_says_so(
    window: MainWindow, dialog: ExportsDialog, controller: FakeController
) -> None:
    job = record("walk", "running")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    controller.progress(ExportProgress("walk", 96, 96, is_joining=True))
    assert dialog.rows[0].state.text() == "Joining"
    assert window.status_bar.export_text.text().endswith("96 / 96 · joining")


def test_rows_follow_the_order_of_the_list(dialog: ExportsDialog, controller: FakeController) -> None:
    controller.export.show_jobs(record("one"), record("two"), record("three"))
    controller.export.show_jobs(record("three"), record("one"))
    dialog.adjustSize()
    rows = sorted(dialog.findChildren(ExportRow), key=lambda row: row.y())
    assert [row.name.text() for row in rows if row.isVisible()] == ["three", "one"]


def test_an_export_of_another_window_is_shown_and_left_alone(dialog: ExportsDialog, controller: FakeController) -> None:
    controller.export.show_jobs(record("walk", "running", owner="windows/2"))
    (row,) = dialog.rows
    assert buttons(row) == {"Show in folder"}
    assert "in another window" in row.details.text()


def test_a_job_that_waits_for_a_model_names_it(dialog: ExportsDialog, controller: FakeController) -> None:
    controller.export.missing_model = "dogs"
    controller.export.show_jobs(record("walk"))
    assert "waits for the model dogs" in dialog.rows[0].details.text()


def test_show_in_folder_falls_back_to_the_clipboard(
    dialog: ExportsDialog, controller: FakeController, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Path] = []

    def reveal(path: Path) -> bool:
        shown.append(path)
        return False

    monkeypatch.setattr("explorer_app.window.export.exports_dialog.reveal", reveal)
    controller.export.show_jobs(record("walk", "done"))
    press(dialog.rows[0].folder)
    assert shown == [Path("/films")]
    assert "clipboard" in dialog.rows[0].folder.toolTip()
    assert "clipboard" in dialog.rows[0].details.text()
    controller.export.show_jobs(record("walk", "done"))
    assert dialog.rows[0].details.text() == "PNG · 96 frames · /films", "once the list changes"


def test_the_status_bar_leads_to_the_list(window: MainWindow, controller: FakeController) -> None:
    controller.progress(ExportProgress("walk", 3, 9, waiting=2))
    assert window.status_bar.export_text.text() == "Export “walk” 3 / 9 · 2 more"
    window.status_bar.export_text.click()
    dialog = window.findChild(ExportsDialog)
    assert isinstance(dialog, ExportsDialog)
    dialog.close()


def test_a_farm_shows_what_it_does_and_its_workers(dialog: ExportsDialog, controller: FakeController) -> None:
    job = replace(record("walk", "running"), where="farm", address="render.local")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    (row,) = dialog.rows
    assert row.details.text() == "PNG · 0 of 96 frames · on the farm at render.local · /films"
    assert not row.workers.isVisible()
    workers = tuple(f"gpu{number} · 4 frames" for number in range(10))
    controller.progress(ExportProgress("walk", 40, 96, 12.0, per_second=4.9, activity="10 workers", workers=workers))
    assert row.details.text() == "PNG · 40 of 96 frames · 12 s left · 10 workers"
    assert row.workers.isVisible()
    assert row.workers.text().splitlines() == [*workers[:8], "and 2 more"]
    assert "gpu9" in row.workers.toolTip()
    line = "gpu0 · 206 frames · 26 fps · rendering · NVIDIA H200"
    controller.progress(ExportProgress("walk", 40, 96, 12.0, activity="1 worker", workers=(line,)))
    dialog.resize(360, 420)
    assert "…" in row.workers.text()
    dialog.resize(900, 420)
    assert row.workers.text() == line, "the line has the room of the wider dialog at once"


def test_the_priority_of_a_job_on_a_farm_is_shown_and_chosen(dialog: ExportsDialog, controller: FakeController) -> None:
    far = replace(record("walk"), where="farm", address="render.local", priority=3)
    controller.export.show_jobs(far, record("near"), replace(record("old", "done"), where="farm"))
    row, near, old = dialog.rows
    assert [item.priority.isVisible() for item in (row, near, old)] == [True, False, False]
    assert row.priority.currentText() == "+3 priority", "which a command has set"
    row.priority.setCurrentIndex(row.priority.findText("High priority"))
    row.priority.activated.emit(row.priority.currentIndex())
    assert calls(controller, "set_priority") == [("set_priority", far.job_id, 10)]


def test_one_that_waits_for_a_model_offers_to_open_it(dialog: ExportsDialog, controller: FakeController) -> None:
    controller.export.missing_model = "cats"
    controller.export.show_jobs(record("walk"))
    (row,) = dialog.rows
    assert row.model.isVisible()
    QTest.mouseClick(row.model, Qt.MouseButton.LeftButton)
    assert calls(controller, "open_model_of") == [("open_model_of", record("walk").job_id)]
    controller.export.missing_model = ""
    controller.export.show_jobs(record("walk"))
    assert not row.model.isVisible()


def test_the_logs_of_a_farms_workers_are_shown_and_fetched_again(
    dialog: ExportsDialog, controller: FakeController
) -> None:
    job = record("walk", "running")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    controller.progress(ExportProgress("walk", 1, 9, workers=("gpu0 · 1 frame", "gpu1"), worker_names=("gpu0", "gpu1")))
    QTest.mouseClick(dialog.rows[0].logs, Qt.MouseButton.LeftButton)
    (log,) = dialog.findChildren(WorkerLogDialog)
    controller.export.log_arrived.emit("gpu1", ["of another worker"])
    controller.export.log_arrived.emit("gpu0", ["12:00 opened", "12:01 rendered"])
    assert (log.text.toPlainText(), log.state.text()) == ("12:00 opened\n12:01 rendered", "The last 2 lines")
    log.worker.setCurrentText("gpu1")
    controller.export.log_arrived.emit("gpu1", None)
    assert (log.text.toPlainText(), log.state.text()) == ("", "gpu1 has left the farm or does not answer.")
    QTest.mouseClick(log.refresh, Qt.MouseButton.LeftButton)
    assert [what[1] for what in calls(controller, "request_log")] == ["gpu0", "gpu1", "gpu1"]
    controller.export.log_arrived.emit("gpu1", ["12:02 rendered"])
    controller.export.progress = None
    controller.export.log_arrived.emit("gpu1", None)
    assert log.text.toPlainText() == "12:02 rendered", "what was fetched stays to be read"
    assert log.state.text() == "The export has ended; `latentloom farm log gpu1` prints this log."
    log.close()


def test_the_logs_fit_on_a_low_screen(
    dialog: ExportsDialog, controller: FakeController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 360))
    job = record("walk", "running")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    controller.progress(ExportProgress("walk", 1, 9, workers=("gpu0 · 1 frame",), worker_names=("gpu0",)))
    QTest.mouseClick(dialog.rows[0].logs, Qt.MouseButton.LeftButton)
    (log,) = dialog.findChildren(WorkerLogDialog)
    assert log.width() < 640
    assert log.height() < 360
    log.close()


def test_an_export_here_has_no_logs_and_reports_the_pace_of_the_picture_beside_it(
    dialog: ExportsDialog, controller: FakeController
) -> None:
    job = record("walk", "running")
    controller.export.current = job.job_id
    controller.export.show_jobs(job)
    controller.progress(ExportProgress("walk", 37, 96, 12.0, per_second=4.91, picture_rate=59.7))
    (row,) = dialog.rows
    assert not row.logs.isVisible()
    assert row.details.text() == (
        "PNG · 37 of 96 frames · 4.9 fps · slowed by the moving picture (60 fps) · 12 s left · /films"
    )


def test_the_focus_begins_at_a_button(dialog: ExportsDialog) -> None:
    QApplication.processEvents()
    assert isinstance(dialog.focusWidget(), QAbstractButton)
