"""What the window says while it has no model, loads, exports, or has something to tell."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel
from pytestqt.qtbot import QtBot

from explorer_app.controller import LearningState, TuningState
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.messages import MessageLog
from explorer_app.session.edits import PLACE
from explorer_app.session.history import History
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.dialogs.learn_pictures import LearnPictures
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.library.library_panel import LibraryPanel
from explorer_app.window.shell.main_window import MainWindow
from explorer_app.window.sliders.xy_pad import XyPad
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.windows import Make, calls, dialog_of, lay_out, without_model

LONG = "ffhq-1024x1024-config-f-finetuned-on-paintings-" + "kimg-025000-" * 8


@without_model
def test_without_a_model_it_says_how_to_begin(window: MainWindow, qtbot: QtBot) -> None:
    assert window.state.isVisible()
    assert window.state.title.text() == "No model is open"
    assert not window.actions_by_key["save-picture"].isEnabled()
    qtbot.mouseClick(window.state.open_button, Qt.MouseButton.LeftButton)
    dialog_of(window, QFileDialog).close()


@without_model
def test_without_a_model_no_step_is_shown_and_no_figure_has_the_accent(
    window: MainWindow, controller: FakeController
) -> None:
    controller.editing.history = History().added(Session(), "Start")
    controller.editing.history_changed.emit()
    assert not window.history.steps.entries.entries
    assert (window.top_bar.fps.text(), window.top_bar.fps.property("role")) == ("– fps", "dim")
    controller.engine.model.facts = facts()
    controller.engine.model_changed.emit()
    window.top_bar.show_speed(24.0, 41.0)
    assert window.history.steps.entries.entries
    assert window.top_bar.fps.property("role") == "accent"


@without_model
def test_without_a_model_panels_say_what_is_missing_and_no_command_is_dead(
    window: MainWindow, controller: FakeController
) -> None:
    library, pad = window.docks["library"].panel, window.docks["pad"].panel
    assert isinstance(library, LibraryPanel)
    assert isinstance(pad, XyPad)

    def texts() -> list[str]:
        return [window.history.kept._empty, library.grid._empty, pad.field._hint]

    assert all(text.startswith("Open a model") for text in texts())
    for key in ("new-session", "export-latent"):
        assert not window.actions_by_key[key].isEnabled()
    controller.engine.model.facts = facts()
    controller.engine.model_changed.emit()
    assert not any(text.startswith("Open a model") for text in texts())
    assert window.actions_by_key["new-session"].isEnabled()


@without_model
def test_the_bundled_model_is_one_click_away(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    qtbot.mouseClick(window.state.bundled_button, Qt.MouseButton.LeftButton)
    assert calls(controller, "open_model") == [("open_model", None)]


def test_a_bundled_model_that_is_missing_is_not_offered(make: Make) -> None:
    controller = FakeController(with_model=False)
    controller.engine.model.has_bundled = False
    window = make(controller)
    assert window.state.open_button.isVisible()
    assert not window.state.bundled_button.isVisible()


def test_messages_stand_below_the_canvas_or_below_all_panels_where_the_canvas_is_narrow(
    window: MainWindow, messages: MessageLog, qtbot: QtBot
) -> None:
    lay_out(window, 1280, 720)
    strip, canvas = window.message_strip, window.canvas
    messages.error("This file is not a model: it begins with a web page; download the model itself, not the page.")
    qtbot.waitUntil(lambda: strip.isVisible() and strip.width() == canvas.width())
    assert canvas.caption.height == 0, "the strip takes its room"
    window.actions_by_key["workspace-measure"].trigger()
    qtbot.waitUntil(lambda: strip.isVisible() and strip.width() == window.workspace.width())
    assert canvas.width() < strip.width() / 2
    assert strip.lines[0].sentence.height() < 3 * strip.lines[0].fontMetrics().height(), "one line of text"
    assert canvas.caption.height > 0
    window.actions_by_key["workspace-explore"].trigger()
    qtbot.waitUntil(lambda: strip.isVisible() and strip.width() == canvas.width())


@without_model
def test_loading_shows_how_far_it_is_and_can_be_cancelled(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.load(Loading("/models/big.pkl", 430, 1000, "Reading"))
    assert window.state.isVisible()
    assert window.state.title.text() == "big.pkl"
    assert window.state.sentence.text() == "Reading 43 %"
    assert window.state.bar.value() == 430
    assert window.status_bar.message.text() == "big.pkl: reading 43 %"
    qtbot.mouseClick(window.state.cancel_button, Qt.MouseButton.LeftButton)
    assert calls(controller, "cancel_loading")
    assert window.status_bar.message.text() == "", "what is over is forgotten"


@without_model
def test_while_the_first_model_loads_the_panels_report_it(window: MainWindow, controller: FakeController) -> None:
    lay_out(window, 1600, 980)
    controller.load(Loading("/models/big.pkl", 430, 1000, "Reading"))
    for key in ("latent", "sliders", "mix"):
        notices = [
            label for label in window.docks[key].findChildren(QLabel) if label.text() == "big.pkl is being read."
        ]
        assert [label.isVisible() for label in notices] == [True], key
        assert not window.docks[key].panel.isVisible()
    controller.show_model(facts())
    controller.load(None)
    assert all(window.docks[key].panel.isVisible() for key in ("latent", "sliders", "mix"))


def test_while_there_is_a_picture_loading_is_reported_below_it(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    before = window.canvas.picture_rect()
    controller.load(Loading("/models/big.pkl", 430, 1000, "Reading"))
    QApplication.processEvents()
    line = window.message_strip.progress
    assert line.isVisible()
    assert window.state.isHidden()
    assert line.text.text() == "big.pkl: reading 43 %"
    assert line.bar.value() == 430
    assert window.canvas.frame is controller.engine.preview.frame, "the last picture stays until the next"
    assert window.canvas.picture_rect() == before, "and where it is"
    qtbot.mouseClick(line.cancel, Qt.MouseButton.LeftButton)
    assert calls(controller, "cancel_loading")
    assert window.message_strip.isHidden()


@without_model
def test_why_a_model_cannot_be_opened_is_said_once_and_how_to_open_another_beside_it(
    window: MainWindow, controller: FakeController, messages: MessageLog, qtbot: QtBot
) -> None:
    controller.load(Loading("/models/page.pkl", 0, 0, "Reading"))
    messages.error("This file is not a model: it begins with a web page.")
    controller.load(None)
    qtbot.waitUntil(lambda: len(window.message_strip.lines) == 1)
    assert window.message_strip.lines[0].sentence.text() == "This file is not a model: it begins with a web page."
    assert window.state.title.text() == "No model is open"
    assert window.state.open_button.isVisible()
    controller.show_model(facts())
    assert window.state.isHidden()


@without_model
def test_overlays_keep_their_place_when_the_canvas_is_resized(
    window: MainWindow, messages: MessageLog, qtbot: QtBot
) -> None:
    messages.warning("Nothing is open.")
    qtbot.waitUntil(lambda: len(window.message_strip.lines) == 1)
    card = window.state
    for width, height in ((1500, 900), (1100, 700)):
        window.resize(width, height)
        QApplication.processEvents()
        canvas = window.canvas.rect()
        assert abs(card.geometry().center().x() - canvas.center().x()) <= 1
        assert abs(card.geometry().center().y() - canvas.center().y()) <= 1


def test_between_the_model_and_its_first_picture_a_message_shows_the_state(make: Make) -> None:
    controller = FakeController()
    controller.engine.preview.frame = None
    window = make(controller)
    assert window.state.isVisible()
    assert window.state.sentence.text() == "Rendering the first picture."
    controller.render()
    assert window.state.isHidden()


def test_an_export_is_reported_in_the_status_bar_and_can_be_cancelled(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    assert not window.status_bar.export.isVisible()
    controller.progress(ExportProgress("evening loop", 412, 960, 21.0))
    assert window.status_bar.export_text.text() == "Export “evening loop” 412 / 960 · 21 s left"
    assert "twentieth" not in window.status_bar.export_text.toolTip()
    controller.progress(ExportProgress("evening loop", 412, 960, 21.0, picture_rate=20.0))
    assert "twentieth" in window.status_bar.export_text.toolTip()
    assert window.actions_by_key["cancel-export"].isEnabled()
    qtbot.mouseClick(window.status_bar.export_cancel, Qt.MouseButton.LeftButton)
    assert calls(controller, "cancel_export")
    controller.progress(ExportProgress("evening loop", 413, 960, 21.0, is_stopping=True))
    assert "stopping" in window.status_bar.export_text.text()
    assert not window.status_bar.export_cancel.isEnabled()
    controller.progress(None)
    assert not window.status_bar.export.isVisible()


def test_work_whose_dialog_is_closed_is_in_the_status_bar_and_a_click_opens_the_dialog(
    window: MainWindow, controller: FakeController
) -> None:
    work = window.status_bar.work
    assert work.isHidden()
    controller.learning.show(LearningState(is_running=True))
    assert work.isVisible()
    assert work.text() == "Learning to read pictures 0 %"
    work.click()
    dialog = dialog_of(window, LearnPictures)
    assert dialog.isVisible()
    dialog.close()
    controller.learning.show(LearningState())
    controller.tuning.show(TuningState(share=0.42))
    assert work.text() == "Tuning for this GPU 42 %"
    controller.tuning.show(TuningState())
    assert work.isHidden()


def test_the_export_dialog_starts_the_export(window: MainWindow, controller: FakeController, tmp_path: Path) -> None:
    window.actions_by_key["export"].trigger()
    dialog = dialog_of(window, ExportDialog)
    QTest.keyClicks(dialog.path.seeds, "1-3")
    QTest.keyClick(dialog.path.seeds, Qt.Key.Key_Return)
    dialog.names.folder.line.setText(str(tmp_path))
    QTest.mouseClick(dialog.export, Qt.MouseButton.LeftButton)
    (call,) = calls(controller, "start_export")
    assert len(call[1].keys) == 4, "where one is, then the seeds"  # type: ignore[attr-defined]


def test_a_very_long_model_name_moves_nothing(window: MainWindow, controller: FakeController) -> None:
    sizes = [dock.size() for dock in window.workspace.docks]
    controller.show_model(facts(name=LONG))
    QApplication.processEvents()
    assert window.width() == 1280
    assert [dock.size() for dock in window.workspace.docks] == sizes
    assert window.top_bar.model_button.width() < 320
    assert LONG in window.top_bar.model_button.toolTip()


def test_the_device_is_reported_with_its_reason(window: MainWindow) -> None:
    assert window.top_bar.device_button.text() == "CPU · fp32 ▾"
    assert window.top_bar.device_button.toolTip() == "CPU: this version renders on the processor."


def test_figures_above_keep_their_width(window: MainWindow, controller: FakeController, qtbot: QtBot) -> None:
    before = (window.top_bar.fps.width(), window.top_bar.time.width())
    controller.render(total_ms=1234.5)
    qtbot.waitUntil(lambda: "1234" in window.top_bar.time.text() or "1235" in window.top_bar.time.text())
    assert (window.top_bar.fps.width(), window.top_bar.time.width()) == before


@pytest.mark.parametrize("zoom", ["fit", "one-to-one"])
def test_a_message_covers_and_moves_no_picture(
    window: MainWindow, messages: MessageLog, qtbot: QtBot, zoom: str
) -> None:
    window.actions_by_key[zoom].trigger()
    before = window.canvas.picture_rect()
    messages.info("Saved seed0001.png.")
    qtbot.waitUntil(lambda: len(window.message_strip.lines) == 1)
    QApplication.processEvents()
    assert window.canvas.picture_rect() == before
    strip = window.message_strip
    assert (
        strip.mapTo(window, strip.rect().topLeft()).y()
        >= window.canvas.mapTo(window, window.canvas.rect().bottomLeft()).y()
    )
    assert window.status_bar.message.text() == "", "it says what goes on, not what went on"


def test_small_pictures_arrive_where_they_were_requested(make: Make, qtbot: QtBot) -> None:
    controller = FakeController(serves_thumbnails=True)
    window = make(controller)
    shown: list[object] = []
    history = window.history.show_thumbnail

    def note(key: Hashable, image: QImage) -> None:
        shown.append(key)
        history(key, image)

    window.history.show_thumbnail = note  # type: ignore[method-assign]
    controller.editing.edit(SetParameter(PLACE, Position(4, 4)))
    qtbot.waitUntil(lambda: bool(shown))
