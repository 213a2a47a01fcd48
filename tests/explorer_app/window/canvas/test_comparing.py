"""Before and after, and two pictures with a line between them, in the window."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from explorer_app.controller.progress import Loading
from explorer_app.messages import MessageLog
from explorer_app.session.edits import GoToSeed
from explorer_app.session.session import ModelReference, Session
from explorer_app.window.canvas.compare_view import Side
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController, facts
from tests.helpers.panels import double_click, drag
from tests.helpers.windows import calls


@pytest.fixture
def walked(window: MainWindow, controller: FakeController) -> MainWindow:
    """A window whose person went to seeds 1 and 2."""
    for seed in (1, 2):
        controller.editing.edit(GoToSeed(seed))
    window.canvas.setFocus()
    return window


def have(controller: FakeController, *seeds: int) -> None:
    """Have the whole pictures of the steps at these seeds made."""
    for entry in controller.editing.history.entries:
        if entry.session.position.x in seeds:
            now, controller.editing.session = controller.editing.session, entry.session
            controller.whole_pictures.made[entry.session] = controller.render()
            controller.editing.session = now
    controller.whole_pictures.changed.emit()


def shown_colour(window: MainWindow, share: float) -> QColor:
    """The colour in the upper part of the picture, at a share of its width."""
    rect = window.canvas.picture_rect()
    place = QPointF(rect.left() + share * rect.width(), rect.top() + 0.03 * rect.height())
    return window.canvas.grab().toImage().pixelColor(place.toPoint())


def test_a_held_key_shows_the_picture_before_the_step_and_its_release_returns(
    walked: MainWindow, controller: FakeController
) -> None:
    view, before = walked.comparing.view, controller.editing.history.entries[-2].session
    QTest.keyPress(walked.canvas, Qt.Key.Key_B)
    assert view.isVisible()
    assert view.sides[0].name == "Before “Go to seed”"
    assert view.sides[0].image is None
    assert ("whole_picture", before) in controller.calls
    have(controller, 1)
    assert view.sides[0].image is not None
    QTest.keyRelease(walked.canvas, Qt.Key.Key_B)
    assert not view.isVisible()
    assert not walked.actions_by_key["before"].isChecked()
    assert controller.editing.session.position.x == 2.0


def test_without_a_step_before_the_key_shows_nothing(window: MainWindow, controller: FakeController) -> None:
    QTest.keyClick(window.canvas, Qt.Key.Key_B)
    assert not window.comparing.view.isVisible()
    assert not window.actions_by_key["before"].isChecked()


def test_leaving_the_window_ends_what_the_key_shows(walked: MainWindow) -> None:
    QTest.keyPress(walked.canvas, Qt.Key.Key_B)
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    QApplication.sendEvent(app, QEvent(QEvent.Type.ApplicationDeactivate))
    assert not walked.comparing.view.isVisible()


def test_two_kept_pictures_share_the_canvas_and_the_line_is_dragged(
    walked: MainWindow, controller: FakeController
) -> None:
    for entry in controller.editing.history.entries[-2:]:
        controller.editing.kept.star(entry.number, True)
    have(controller, 1, 2)
    walked.docks["history"].header.tabs[1].click()
    walked.history.kept.selectAll()
    walked.actions_by_key["compare"].trigger()
    view, rect = walked.comparing.view, walked.canvas.picture_rect()
    assert [side.name for side in view.sides] == ["Seed 1", "Seed 2"]
    left, right = shown_colour(walked, 0.2), shown_colour(walked, 0.8)
    assert left != right
    middle = QPointF(rect.center().x(), rect.center().y())
    drag(view, middle, QPointF(rect.left() + 0.9 * rect.width(), rect.center().y()))
    assert view.share == pytest.approx(0.9)
    assert shown_colour(walked, 0.8) == left
    double_click(view, middle)
    assert view.share == 0.5
    QTest.keyClick(view, Qt.Key.Key_Right)
    assert view.share == pytest.approx(0.55)
    QTest.keyClick(view, Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier)
    assert view.share == pytest.approx(0.54)
    QTest.keyClick(view, Qt.Key.Key_Escape)
    assert not view.isVisible()
    assert walked.canvas.hasFocus()


def test_what_is_being_rendered_is_said_clear_of_the_divider(window: MainWindow) -> None:
    view = window.comparing.view
    window.resize(window.minimumSize())
    view.show_two(Side("Gewitterwolkenformation" * 3), Side("Now"))
    rect, image = window.canvas.picture_rect(), view.grab().toImage()
    for y in range(int(rect.top()), int(rect.bottom())):
        if abs(y - rect.center().y()) > 12:  # the grip of the divider
            beside = {image.pixelColor(int(rect.center().x()) - dx, y).rgb() for dx in range(4, 12)}
            assert len(beside) == 1, f"text at the divider, at {y} px"


def test_one_entry_is_compared_with_the_picture_as_it_is_now(walked: MainWindow, controller: FakeController) -> None:
    walked.history.compare_requested.emit((controller.editing.history.entries[-2].number,))
    assert [side.name for side in walked.comparing.view.sides] == ["Go to seed", "Now"]
    controller.show_model(facts(name="Other", model_id="ef" * 32))
    assert not walked.comparing.view.isVisible(), "another model has other pictures"


def test_a_picture_of_another_model_names_the_model_that_shows_it(
    walked: MainWindow, controller: FakeController
) -> None:
    controller.show_model(facts(name="Other", model_id="ef" * 32))
    walked.history.compare_requested.emit((controller.editing.history.entries[-2].number,))
    assert [side.name for side in walked.comparing.view.sides] == ["Go to seed, with Other", "Now"]


def test_the_same_command_or_escape_anywhere_ends_a_comparison(walked: MainWindow, controller: FakeController) -> None:
    view, compare = walked.comparing.view, walked.actions_by_key["compare"]
    compare.trigger()
    assert view.isVisible()
    compare.trigger()
    assert not view.isVisible()
    compare.trigger()
    walked.latent.setFocus()
    QTest.keyClick(walked.latent, Qt.Key.Key_Escape)
    assert not view.isVisible()


def test_more_than_two_selected_pictures_are_not_compared(walked: MainWindow, controller: FakeController) -> None:
    for entry in controller.editing.history.entries:
        controller.editing.kept.star(entry.number, True)
    walked.docks["history"].header.tabs[1].click()
    walked.history.kept.selectAll()
    walked.actions_by_key["compare"].trigger()
    assert not walked.comparing.view.isVisible()
    assert calls(controller, "whole_picture") == []


def test_without_a_second_picture_a_message_says_what_is_needed(window: MainWindow, messages: MessageLog) -> None:
    QTest.keyClick(window.canvas, Qt.Key.Key_C)
    assert not window.comparing.is_on
    assert "nothing to compare yet" in messages.messages[-1].sentence


def test_two_models_are_compared_on_the_same_latent(window: MainWindow, controller: FakeController) -> None:
    other = facts(name="Other", path="/models/other.pkl", model_id="b" * 64)
    window.comparing.hold_model(Path(other.path))
    controller.show_model(other)
    assert [side.name for side in window.comparing.view.sides] == ["Landscapes 256", "Other"]
    held, made = window.comparing.view.sides
    assert held.image is not None
    assert made.image is None
    controller.whole_pictures.made[controller.editing.session] = controller.render()
    controller.whole_pictures.changed.emit()
    assert window.comparing.view.sides[1].image is not None
    QTest.keyClick(window.comparing.view, Qt.Key.Key_Escape)
    assert not window.comparing.is_on


def test_two_models_of_equal_names_are_told_apart_also_before_the_session_is_fitted(
    window: MainWindow, controller: FakeController
) -> None:
    first, other = (facts(name="network", path=f"/{run}/network.pkl", model_id=run * 64) for run in "ab")
    controller.show_model(first)
    controller.editing.session = replace(Session(), model=ModelReference(first.path, first.name, first.model_id))
    window.comparing.hold_model(Path(other.path))
    controller.show_model(other)
    assert [side.name for side in window.comparing.view.sides] == ["network (a)", "network (b)"]


def test_a_model_that_was_not_chosen_for_it_is_not_compared(window: MainWindow, controller: FakeController) -> None:
    window.comparing.hold_model(Path("/models/refused.pkl"))
    controller.show_model(facts(name="Other", path="/models/other.pkl", model_id="b" * 64))
    assert not window.comparing.is_on


def test_a_folder_of_snapshots_is_gone_through_with_a_slider_below_the_canvas(
    window: MainWindow, controller: FakeController, tmp_path: Path
) -> None:
    bar = window.area.snapshot_bar
    assert bar.isHidden()
    for number in (1, 2, 10):
        (tmp_path / f"net-{number}.pkl").write_text("")
    controller.snapshots.open_folder(tmp_path)
    assert bar.isVisible()
    assert (bar.place.text(), bar.slider.ends) == ("1 of 3", (0, 2))
    QTest.keyClick(bar.slider, Qt.Key.Key_Right)
    QTest.keyClick(bar.slider, Qt.Key.Key_Right)
    assert bar.place.text() == "3 of 3"
    controller.load(Loading(str(tmp_path / "net-10.pkl"), 43, 100, "Reading"))
    assert bar.name.full_text == "net-10 · reading"
    assert window.message_strip.isHidden(), "a line below the slider would move it away from the pointer"
    controller.load(Loading("/models/big.pkl", 43, 100, "Reading"))
    assert window.message_strip.progress.isVisible()
    controller.load(None)
    assert [call[1].name for call in controller.calls if call[0] == "open_model"][-1] == "net-10.pkl"
    QTest.mouseClick(bar.close_button, Qt.MouseButton.LeftButton)
    assert bar.isHidden()
