"""Files that were written: shown, copied, dragged."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QImageReader
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.messages import Level, Message
from explorer_app.window.messages.file_actions import FileActions
from explorer_app.window.messages.message_line import MessageLine


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    Image.new("RGB", (640, 320), (10, 200, 30)).save(tmp_path / "a.png")
    return tmp_path / "a.png"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    folders: list[Path] = []

    def open_url(url: QUrl) -> bool:
        folders.append(Path(url.toLocalFile()))
        return True

    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(QDesktopServices, "openUrl", open_url)
    return folders


def actions(qtbot: QtBot, path: Path) -> FileActions:
    made = FileActions(path)
    qtbot.addWidget(made)
    made.show()
    return made


def press(button: object) -> None:
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)  # type: ignore[call-overload]


def test_a_picture_is_copied_as_a_picture_and_as_a_file(qtbot: QtBot, picture: Path) -> None:
    made = actions(qtbot, picture)
    press(made.copy_button)
    data = QGuiApplication.clipboard().mimeData()
    assert data.imageData().size().width() == 640
    assert [Path(url.toLocalFile()) for url in data.urls()] == [picture]


def test_a_picture_that_is_too_large_for_qt_is_copied_as_a_file(qtbot: QtBot, picture: Path) -> None:
    usual = QImageReader.allocationLimit()
    Image.new("RGB", (700, 700)).save(picture)
    QImageReader.setAllocationLimit(1)
    try:
        made = actions(qtbot, picture)
        press(made.copy_button)
    finally:
        QImageReader.setAllocationLimit(usual)
    data = QGuiApplication.clipboard().mimeData()
    assert (made.copy_button.text(), data.hasImage()) == ("Copied", False)
    assert [Path(url.toLocalFile()) for url in data.urls()] == [picture]


@pytest.mark.parametrize("name", ["a.gif", "a.apng", "a.webp"])
def test_an_animation_is_copied_as_a_file_not_as_its_first_frame(qtbot: QtBot, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    frames = [Image.new("RGB", (8, 8), (level, 0, 0)) for level in (0, 200)]
    frames[0].save(path, {"a.apng": "PNG"}.get(name), save_all=True, append_images=frames[1:], duration=100)
    made = actions(qtbot, path)
    assert made.copy_button.text() == "Copy file"
    press(made.copy_button)
    data = QGuiApplication.clipboard().mimeData()
    assert (made.copy_button.text(), data.hasImage()) == ("Copied", False)
    assert [Path(url.toLocalFile()) for url in data.urls()] == [path]
    path.unlink()
    press(made.copy_button)
    assert not made.copy_button.isEnabled()


def test_a_webp_of_one_picture_is_copied_as_a_picture(qtbot: QtBot, tmp_path: Path) -> None:
    Image.new("RGBA", (8, 8), (200, 0, 0, 100)).save(tmp_path / "a.webp")
    made = actions(qtbot, tmp_path / "a.webp")
    press(made.copy_button)
    assert QGuiApplication.clipboard().mimeData().hasImage()


def test_a_picture_that_is_gone_reports_it(qtbot: QtBot, picture: Path) -> None:
    made = actions(qtbot, picture)
    picture.unlink()
    QGuiApplication.clipboard().setText("mine")
    press(made.copy_button)
    assert not made.copy_button.isEnabled()
    assert QGuiApplication.clipboard().text() == "mine"


def test_showing_opens_the_folder_of_a_file_and_a_folder_itself(
    qtbot: QtBot, picture: Path, opened: list[Path]
) -> None:
    for path in (picture, picture.parent):
        made = actions(qtbot, path)
        press(made.reveal_button)
    assert opened == [picture.parent, picture.parent]


def test_without_a_file_manager_the_path_is_copied(
    qtbot: QtBot, picture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: False)
    made = actions(qtbot, picture)
    press(made.reveal_button)
    assert QGuiApplication.clipboard().text() == str(picture)
    assert made.reveal_button.text() == "Path copied"


def test_a_drag_carries_the_file_and_a_small_picture_of_it(qtbot: QtBot, picture: Path) -> None:
    made = actions(qtbot, picture)
    drag = made.handle.drag()
    assert [Path(url.toLocalFile()) for url in drag.mimeData().urls()] == [picture]
    assert (drag.pixmap().width(), drag.pixmap().height()) == (96, 48)


def test_a_folder_of_frames_is_shown_and_dragged_but_is_no_picture(qtbot: QtBot, tmp_path: Path) -> None:
    made = actions(qtbot, tmp_path)
    assert made.copy_button.isHidden()
    assert made.handle.drag().pixmap().isNull()


def test_of_a_folder_of_frames_the_last_one_is_copied(qtbot: QtBot, picture: Path) -> None:
    message = Message(Level.INFO, f"Exported 3 frames to {picture.parent}.", file=picture.parent, picture=picture)
    line = MessageLine(message, 6000, None)  # type: ignore[arg-type]
    qtbot.addWidget(line)
    line.show()
    assert line.file_actions is not None
    assert line.file_actions.copy_button.text() == "Copy last frame"
    press(line.file_actions.copy_button)
    assert [Path(url.toLocalFile()) for url in QGuiApplication.clipboard().mimeData().urls()] == [picture]
    assert [Path(url.toLocalFile()) for url in line.file_actions.handle.drag().mimeData().urls()] == [picture.parent]


@pytest.mark.parametrize(("sentence", "shows"), [("Saved a.png.", True), ("Exported 3 frames to {}.", False)])
def test_a_message_about_a_file_says_where_it_is_once(qtbot: QtBot, picture: Path, sentence: str, shows: bool) -> None:
    line = MessageLine(Message(Level.INFO, sentence.format(picture.parent), file=picture), 6000, None)  # type: ignore[arg-type]
    qtbot.addWidget(line)
    assert line.file_actions is not None
    assert line.file_actions.place.isHidden() is not shows
    assert line.file_actions.place.toolTip() == str(picture)


def test_the_folder_of_a_file_follows_a_short_sentence(qtbot: QtBot, picture: Path) -> None:
    line = MessageLine(Message(Level.INFO, "Saved a.png.", file=picture), 6000, None)  # type: ignore[arg-type]
    qtbot.addWidget(line)
    line.resize(900, 60)
    line.show()
    qtbot.waitExposed(line)
    assert line.file_actions is not None
    words = line.sentence.fontMetrics().horizontalAdvance("Saved a.png.")
    assert words <= line.sentence.width() < words + 10
    assert line.file_actions.x() < line.sentence.geometry().right() + 20
