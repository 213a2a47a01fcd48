"""Actions and files of the main window, each asked of the controller."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QRect, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QDialog, QFileDialog, QLabel, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.logs import log_path
from explorer_app.messages import MessageLog
from explorer_app.session.edits import PLACE, ZeroSliders, set_truncation
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.settings import RecentModel, Settings
from explorer_app.window.dialogs.about import AboutDialog
from explorer_app.window.dialogs.shortcuts_dialog import ShortcutsDialog
from explorer_app.window.export.export_dialog import ExportDialog
from explorer_app.window.model.model_details import ModelDetails
from explorer_app.window.shell import help_commands
from explorer_app.window.shell.file_commands import MODEL_FILES, picture_name
from explorer_app.window.shell.main_window import MainWindow
from gpu_backend import Truncation
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.mouse import drop
from tests.helpers.windows import calls, dialog_of, dock


@pytest.mark.parametrize(
    ("key", "what"),
    [("R", "random_seed"), ("A", "mix_in_current"), ("Ctrl+Z", "undo"), ("Ctrl+Shift+Z", "redo"), ("Ctrl+Y", "redo")],
)
def test_shortcuts_ask_the_controller(window: MainWindow, controller: FakeController, key: str, what: str) -> None:
    for x in (1.0, 2.0, 3.0):
        controller.editing.edit(SetParameter(PLACE, Position(x, 0)))
    controller.editing.undo()
    controller.calls.clear()
    QTest.keySequence(window.canvas, key)
    assert len(calls(controller, what)) == 1


def test_zoom_keys_work_on_the_canvas(window: MainWindow) -> None:
    fitted = window.canvas.picture_rect()
    QTest.keySequence(window.canvas, "1")
    assert window.canvas.picture_rect().width() * window.devicePixelRatioF() == 256
    QTest.keySequence(window.canvas, "+")
    assert window.canvas.picture_rect().width() * window.devicePixelRatioF() == 320
    QTest.keySequence(window.canvas, "F")
    assert window.canvas.picture_rect() == fitted


def test_keys_that_are_typed_into_a_field_stay_there(window: MainWindow, controller: FakeController) -> None:
    window.commands.files.export_sequence()
    dialog = dialog_of(window, ExportDialog)
    dialog.names.name.setFocus()
    dialog.names.name.clear()
    controller.calls.clear()
    QTest.keyClicks(dialog.names.name, "frk1")
    assert dialog.names.name.text() == "frk1"
    assert controller.calls == []
    dialog.close()


def test_sliders_and_truncation_are_reset_by_their_actions(window: MainWindow, controller: FakeController) -> None:
    controller.editing.edit(SetParameter("slider/sefa/0", 2.0))
    controller.editing.edit(set_truncation(Truncation(0.1, 3)))
    window.actions_by_key["zero-sliders"].trigger()
    window.actions_by_key["reset-truncation"].trigger()
    assert calls(controller, "edit")[-2] == ("edit", ZeroSliders(), True)
    assert controller.editing.session.truncation == Session().truncation
    assert controller.editing.session.sliders == ()


def test_undo_says_what_it_takes_back_and_is_off_when_there_is_nothing(
    window: MainWindow, controller: FakeController
) -> None:
    assert not window.actions_by_key["undo"].isEnabled()
    controller.editing.edit(SetParameter(PLACE, Position(1, 0)))
    assert window.actions_by_key["undo"].isEnabled()
    assert window.actions_by_key["undo"].text() == "&Undo walk"
    controller.editing.undo()
    assert window.actions_by_key["redo"].text() == "&Redo walk"
    assert not window.actions_by_key["undo"].isEnabled()


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("Sun height", "&Undo sun height"),
        ("From Cats & Dogs", "&Undo from Cats && Dogs"),
        ("PCA 3", "&Undo PCA 3"),
        ("XY pad", "&Undo XY pad"),
    ],
)
def test_names_in_undo_stay_as_they_are(window: MainWindow, controller: FakeController, label: str, text: str) -> None:
    controller.editing.edit(SetParameter(PLACE, Position(1, 0), label))
    assert window.actions_by_key["undo"].text() == text


def test_the_buttons_beside_the_history_obey_their_actions(
    window: MainWindow, controller: FakeController, qtbot: QtBot
) -> None:
    controller.editing.edit(SetParameter(PLACE, Position(1, 0)))
    buttons = {
        button.accessibleName(): button for button in dock(window, "history").header.findChildren(QAbstractButton)
    }
    controller.calls.clear()
    qtbot.mouseClick(buttons["Undo"], Qt.MouseButton.LeftButton)
    assert calls(controller, "undo")
    assert not buttons["Undo"].isEnabled()
    assert buttons["Redo"].isEnabled()


def test_a_star_is_given_and_taken(window: MainWindow, controller: FakeController) -> None:
    QTest.keySequence(window.canvas, "K")
    current = controller.editing.history.current
    assert current is not None
    assert controller.editing.history.is_kept(current.number)
    QTest.keySequence(window.canvas, "K")
    assert not controller.editing.history.is_kept(current.number)


def test_drifting_is_shown_wherever_it_was_begun(window: MainWindow, controller: FakeController) -> None:
    window.actions_by_key["drift"].trigger()
    assert calls(controller, "set_drifting") == [("set_drifting", True)]
    assert window.actions_by_key["drift"].isChecked()
    controller.editing.set_drifting(False)
    assert not window.actions_by_key["drift"].isChecked()


def test_flick_glide_is_remembered(window: MainWindow, settings: Settings) -> None:
    window.actions_by_key["glide"].trigger()
    assert settings.values.flick_glide
    assert window.canvas.glides


def test_every_menu_holds_its_actions(window: MainWindow) -> None:
    def texts(menu: str, inside: str = "") -> list[str]:
        actions = [action for action in window.menus[menu].actions() if not action.isSeparator()]
        if inside:
            (below,) = [action.menu() for action in actions if action.text().replace("&", "") == inside]
            assert isinstance(below, QMenu)
            actions = below.actions()
        return [action.text().replace("&", "") for action in actions]

    assert texts("File")[:2] == ["Open model…", "Open recent"]
    assert {"Zoom", "Compare two", "Output", "Panels", "Theme", "Reset layout"} <= set(texts("View"))
    assert len(texts("View")) <= 21, "at 720 px there is room for no more"
    assert texts("View", "Zoom") == ["Fit", "1:1", "Zoom in", "Zoom out"]
    assert texts("View", "Theme") == ["System theme", "Dark theme", "Light theme"]
    assert {"Latent", "Sliders", "Mix", "Performance", "Model", "History"} <= set(texts("View", "Panels"))
    assert "Open model…" in texts("Model")
    assert texts("Help") == ["Tour", "Shortcuts", "Copy report", "Show log file", "About Latent Loom"]


@pytest.mark.parametrize(
    ("key", "kind"),
    [("shortcuts", ShortcutsDialog), ("about", AboutDialog), ("inspect", ModelDetails), ("export", ExportDialog)],
)
def test_dialogs_open_once_and_do_not_block(window: MainWindow, key: str, kind: type[QDialog], qtbot: QtBot) -> None:
    window.actions_by_key[key].trigger()
    window.actions_by_key[key].trigger()
    QApplication.processEvents()
    dialogs = [dialog for dialog in window.findChildren(kind) if dialog.isVisible()]
    assert len(dialogs) == 1
    QTest.keyClick(dialogs[0], Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(kind))


def test_about_shows_all_of_its_text(window: MainWindow, qtbot: QtBot) -> None:
    window.actions_by_key["about"].trigger()
    dialog = dialog_of(window, AboutDialog)
    qtbot.waitExposed(dialog)
    for label in dialog.findChildren(QLabel):
        needed = label.heightForWidth(label.width()) if label.wordWrap() else label.sizeHint().height()
        assert label.height() >= needed, label.text()
    dialog.close()


def test_the_folder_of_the_log_file_is_opened_or_its_path_is_reported(
    window: MainWindow, messages: MessageLog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    path = tmp_path / "logs" / "latentloom.log"
    monkeypatch.setattr(help_commands, "log_path", lambda: path)

    def open_url(url: QUrl) -> bool:
        opened.append(url.toLocalFile())
        return True

    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    window.actions_by_key["log-folder"].trigger()
    assert messages.messages[-1].sentence == f"The log file is {path}."
    path.parent.mkdir()
    window.actions_by_key["log-folder"].trigger()
    assert opened == [str(path.parent)]
    assert str(log_path()) in window.actions_by_key["log-folder"].toolTip()


def test_the_report_is_copied(window: MainWindow, messages: MessageLog) -> None:
    messages.note("Something happened.", "with particulars")
    window.actions_by_key["report"].trigger()
    text = QGuiApplication.clipboard().text()
    assert "Latent Loom" in text
    assert facts().model_id in text
    assert "[note] Something happened.\n    with particulars" in text


@pytest.mark.parametrize(
    ("key", "what", "name"),
    [
        ("open-model", "open_model", "m.pkl"),
        ("open-session", "open_session", "s.loom"),
        ("save-session", "save_session", "s.loom"),
        ("open-picture", "open_picture", "p.png"),
        ("save-picture", "save_picture", "p.png"),
    ],
)
def test_a_chosen_file_goes_to_the_controller_and_its_folder_is_remembered(
    window: MainWindow, controller: FakeController, settings: Settings, tmp_path: Path, key: str, what: str, name: str
) -> None:
    window.actions_by_key[key].trigger()
    chooser = dialog_of(window, QFileDialog)
    chooser.fileSelected.emit(str(tmp_path / name))
    chooser.close()
    assert calls(controller, what) == [(what, tmp_path / name)]
    assert tmp_path in (settings.folder("model"), settings.folder("session"), settings.folder("picture"))


def test_a_session_is_saved_by_the_name_that_it_has(
    window: MainWindow, controller: FakeController, tmp_path: Path
) -> None:
    for project, name in ((None, "session.loom"), (tmp_path / "piece.loom", "piece.loom")):
        controller.files.project = project
        window.actions_by_key["save-session"].trigger()
        chooser = dialog_of(window, QFileDialog)
        (chosen,) = chooser.selectedFiles()
        assert Path(chosen).name == name
        assert project in (None, Path(chosen))
        chooser.close()
        chooser.deleteLater()


def test_a_new_session_is_requested(window: MainWindow, controller: FakeController) -> None:
    window.actions_by_key["new-session"].trigger()
    assert calls(controller, "new_session") == [("new_session",)]


def test_a_picture_is_named_after_its_seed() -> None:
    assert picture_name(Session(position=Position(12, 3))) == "seed0312"
    assert picture_name(Session(position=Position(-5, 0))) == "seed4294967291", "seeds begin again beyond the first"
    assert picture_name(Session(position=Position(12.5, 3))) == "picture"


@pytest.mark.parametrize("name", ["model.pkl", "model.pt", "evening.loom", "seed0001.png"])
def test_files_may_be_dropped_on_the_window(
    window: MainWindow, controller: FakeController, tmp_path: Path, name: str
) -> None:
    event = drop(window, str(tmp_path / name))
    assert event.isAccepted()
    assert calls(controller, "open_file") == [("open_file", tmp_path / name)]
    assert "Drop" not in window.canvas.caption.text()


def test_recent_models_open_from_the_chip_above(
    window: MainWindow, controller: FakeController, settings: Settings
) -> None:
    settings.change(recent_models=(RecentModel("/m/a.pkl", "A", "1"), RecentModel("/m/b.pkl", "B", "2")))
    menu = window.top_bar.model_button.menu()
    menu.aboutToShow.emit()
    assert [action.text() for action in menu.actions()[:2]] == ["A", "B"]
    menu.actions()[1].trigger()
    assert calls(controller, "open_model") == [("open_model", "/m/b.pkl")]


def test_only_files_that_load_are_promised(window: MainWindow) -> None:
    promises = [window.actions_by_key["open-model"].toolTip(), MODEL_FILES]
    promises += [button.toolTip() for button in (window.model.open_button, window.state.open_button)]
    for promise in promises:
        for suffix in (".pkl", ".pt", ".safetensors"):
            assert suffix in promise
        assert ".onnx" not in promise


class SmallScreen:
    """A screen of 800 x 500, as one of 1600 x 1000 at 200 %."""

    def availableGeometry(self) -> QRect:  # noqa: N802 - Qt's name
        return QRect(0, 0, 800, 500)


def test_a_dialog_is_no_larger_than_the_screen(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "screen", SmallScreen)
    for key in ("shortcuts", "inspect"):
        window.actions_by_key[key].trigger()
        dialog = next(each for each in window.findChildren(QDialog) if each.isVisible())
        assert dialog.height() <= 452
        dialog.close()
