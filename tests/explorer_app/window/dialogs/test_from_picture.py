"""The dialog that finds the latent of a photo, under real mouse and key events."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QScreen
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer_app.controller.photo_file import PhotoError, load_photo
from explorer_app.controller.progress import Loading
from explorer_app.controller.unfinished_search import UnfinishedSearch
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import ProjectionAdvanced
from explorer_app.session.parameters import SetParameter
from explorer_app.window.dialogs.from_picture import CropView, FromPictureDialog
from gpu_backend import Crop, ProjectionReport, Tap
from tests.helpers.fake_controller import FakeController
from tests.helpers.mouse import LEFT, drag, wheel
from tests.helpers.near import near
from tests.helpers.tools_host import ToolsHost


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "garden.png"
    Image.new("RGB", (80, 40), (90, 140, 60)).save(path)
    return path


@pytest.fixture
def host(qtbot: QtBot, controller: FakeController, messages: MessageLog) -> ToolsHost:
    host = ToolsHost(controller, messages)
    qtbot.addWidget(host)
    return host


def opened(host: ToolsHost, controller: FakeController, path: Path) -> FromPictureDialog:
    controller.files.photo_opened.emit(load_photo(path))
    QApplication.processEvents()
    dialog = host.tools.dialog
    assert dialog is not None
    return dialog


def at(view: CropView, x: float, y: float) -> QPoint:
    """The place in the view of a pixel of the photo."""
    rect = view.picture_rect()
    scale = rect.width() / 80
    return QPointF(rect.x() + x * scale, rect.y() + y * scale).toPoint()


def test_a_photo_that_is_opened_with_the_program_waits_for_the_first_picture(
    host: ToolsHost, controller: FakeController, messages: MessageLog, photo: Path
) -> None:
    frame, facts = controller.engine.preview.frame, controller.engine.model.facts
    controller.engine.preview.frame = controller.engine.model.facts = None
    controller.load(Loading("model.pkl", 0, 0, "Reading"))
    for _ in range(2):
        controller.files.photo_opened.emit(load_photo(photo))
    controller.engine.preview.frame_changed.emit()
    assert (host.tools.dialog, messages.messages) == (None, ())
    controller.load(None)
    controller.engine.preview.frame, controller.engine.model.facts = frame, facts
    for _ in range(2):
        controller.engine.preview.frame_changed.emit()
    dialog = host.tools.dialog
    assert dialog is not None
    assert dialog.isVisible()
    assert len(host.window().findChildren(FromPictureDialog)) == 1


def test_a_photo_is_searched_side_by_side_and_kept(host: ToolsHost, controller: FakeController, photo: Path) -> None:
    dialog = opened(host, controller, photo)
    assert dialog.isVisible()
    assert dialog.crop.crop == Crop(20.0, 0.0, 40.0)
    assert not dialog.stop_button.isVisible()
    assert dialog.nearest_title.text() == "B  The model's picture now", "what the frame is placed like"
    QTest.mouseClick(dialog.start_button, LEFT)
    assert controller.projection_renders.calls == [(photo, Crop(20.0, 0.0, 40.0))]
    assert dialog.crop.is_locked
    assert not dialog.stop_button.isEnabled(), "there is nothing to keep yet"
    assert controller.projection_renders.tuned == [False]
    renders = controller.projection_renders
    before = ProjectionReport("random", 0, 500, math.inf, 32)
    controller.photo_projection.take_advanced(ProjectionAdvanced(renders.number, before, None))
    assert not dialog.stop_button.isEnabled(), "drafts are matched, and there is nothing to keep yet"
    controller.projection_renders.advance(2)
    assert dialog.stop_button.isEnabled()
    assert dialog.text.text().startswith("Each layer's row: 2 of 5, loss 0.500")
    assert dialog.bar.value() == 460
    assert dialog.nearest.is_searching
    assert dialog.nearest_title.text() == "B  Nearest picture"
    assert not dialog.grab().isNull()
    QTest.mouseClick(dialog.stop_button, LEFT)
    QApplication.processEvents()
    assert host.tools.dialog is None
    assert [entry.label for entry in controller.editing.history.kept] == ["garden"]


def test_the_frame_can_be_moved_in_a_photo_that_is_thinner_than_a_pixel_of_the_view(
    host: ToolsHost, controller: FakeController, tmp_path: Path
) -> None:
    path = tmp_path / "strip.png"
    Image.new("RGB", (16, 16000)).save(path)
    view = opened(host, controller, path).crop
    drag(view, [view.rect().center(), view.rect().center() + QPoint(0, 20)])
    QTest.keyClick(view, Qt.Key.Key_Down)
    assert 7992.0 < view.crop.top < 7993.0


def test_a_search_of_the_last_run_begins_with_its_frame_and_its_tuning(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    controller.photo_projection.continued = UnfinishedSearch(photo, Crop(5.0, 6.0, 30.0), True)
    dialog = opened(host, controller, photo)
    assert dialog.crop.crop == Crop(5.0, 6.0, 30.0)
    assert dialog.tune_box.isChecked()
    QTest.mouseClick(dialog.start_button, LEFT)
    assert controller.photo_projection.continued is None
    dialog.close()
    dialog = opened(host, controller, photo)
    assert dialog.crop.crop == Crop(20.0, 0.0, 40.0)
    assert not dialog.tune_box.isChecked()
    dialog.close()


def test_a_tuning_is_requested_by_its_box(host: ToolsHost, controller: FakeController, photo: Path) -> None:
    dialog = opened(host, controller, photo)
    dialog.tune_box.click()
    QTest.mouseClick(dialog.start_button, LEFT)
    assert controller.projection_renders.tuned == [True]
    assert not dialog.tune_box.isEnabled()
    dialog.close()


def test_a_search_that_is_stopped_before_its_tuning_says_that_it_goes_without(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    dialog, renders, said = opened(host, controller, photo), controller.projection_renders, "leaves the tuning out."
    dialog.tune_box.click()
    QTest.mouseClick(dialog.start_button, LEFT)
    assert dialog.text.text() == f"Preparing: opening the network for gradients. Stop and keep {said}"
    assert dialog.tune_button.isVisible()
    assert not dialog.tune_button.isEnabled(), "there is nothing to tune to yet"
    renders.advance(2)
    assert dialog.text.text().endswith(f". Stop and keep {said}")
    QTest.mouseClick(dialog.tune_button, LEFT)
    assert renders.tunes_now()
    assert not dialog.tune_button.isEnabled()
    assert dialog.stop_button.toolTip().endswith(said)
    tuned = ProjectionReport("weights", 5, 150, 0.1, 64)
    controller.photo_projection.take_advanced(ProjectionAdvanced(renders.number, tuned, None))
    assert not dialog.tune_button.isVisible()
    assert said not in dialog.text.text()
    assert said not in dialog.stop_button.toolTip()
    dialog.close()


def test_it_fits_on_a_low_screen(
    host: ToolsHost, controller: FakeController, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QScreen, "availableGeometry", lambda _: QRect(0, 0, 640, 360))
    dialog = opened(host, controller, photo)
    assert dialog.width() < 640
    assert dialog.height() < 360
    dialog.close()


def test_escape_cancels_the_search_and_closes(host: ToolsHost, controller: FakeController, photo: Path) -> None:
    dialog = opened(host, controller, photo)
    before = controller.editing.session
    QTest.mouseClick(dialog.start_button, LEFT)
    controller.projection_renders.advance(2)
    assert controller.editing.session != before
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert controller.editing.session == before
    assert host.tools.dialog is None


def test_the_photo_shows_the_focus_before_and_during_the_search(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    dialog = opened(host, controller, photo)
    for is_locked in (False, True):
        dialog.crop.set_locked(is_locked)
        looks = []
        for widget in (dialog.crop, dialog.tune_box):
            widget.setFocus()
            QApplication.processEvents()
            looks.append(dialog.crop.grab().toImage())
        assert looks[0] != looks[1]


def test_the_dialog_says_why_no_search_can_begin(host: ToolsHost, controller: FakeController, photo: Path) -> None:
    dialog = opened(host, controller, photo)
    controller.editing.edit(SetParameter("layer", Tap("b8.conv0")))
    QTest.mouseClick(dialog.start_button, LEFT)
    assert dialog.text.text() == "A layer is shown; go back to the picture (L) to search for a photo."
    assert dialog.start_button.isVisible()
    dialog.close()


def test_a_search_that_fails_leaves_the_frame_to_be_placed_again(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    dialog = opened(host, controller, photo)
    controller.projection_renders.error = PhotoError("It is gone.")
    QTest.mouseClick(dialog.start_button, LEFT)
    assert dialog.isVisible()
    assert not dialog.crop.is_locked
    assert dialog.start_button.isVisible()
    dialog.close()


def test_the_frame_is_moved_sized_and_reset_and_stays_in_the_photo(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    dialog = opened(host, controller, photo)
    view = dialog.crop
    drag(view, [at(view, 40, 20), at(view, 10, 35)])
    assert view.crop == Crop(0.0, 0.0, 40.0)
    drag(view, [at(view, 40, 40), at(view, 30, 30)])
    assert view.crop == Crop(0.0, 0.0, near(30.0, abs=0.5))
    drag(view, [at(view, 15, 15), at(view, 25, 20)])
    assert (view.crop.left, view.crop.top) == (near(10.0, abs=0.5), near(5.0, abs=0.5))
    side = view.crop.side
    wheel(view, at(view, 20, 20), 1)
    assert view.crop.side < side
    left = view.crop.left
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert view.crop.left == pytest.approx(left + 0.4)
    QTest.keyClick(view, Qt.Key.Key_Plus)
    assert view.crop.side > side / 1.1
    QTest.mouseDClick(view, LEFT, pos=at(view, 20, 20))
    assert view.crop == Crop(20.0, 0.0, 40.0)
    dialog.close()


def test_another_photo_takes_the_place_of_the_first(host: ToolsHost, controller: FakeController, photo: Path) -> None:
    first = opened(host, controller, photo)
    second = opened(host, controller, photo)
    assert second is not first
    second.close()


def test_another_photo_ends_a_search_with_what_it_has_found(
    host: ToolsHost, controller: FakeController, photo: Path
) -> None:
    first = opened(host, controller, photo)
    QTest.mouseClick(first.start_button, LEFT)
    controller.projection_renders.advance(2)
    found = controller.editing.session
    second = opened(host, controller, photo)
    assert second is not first
    assert controller.editing.session == found
    assert [entry.label for entry in controller.editing.history.kept] == ["garden"]
    assert not second.stop_button.isVisible()
    second.close()
    assert controller.editing.session == found
