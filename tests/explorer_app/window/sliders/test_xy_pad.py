"""The XY pad: real drags over its field."""

from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import SetParameters
from explorer_app.session.session import Session, Slider
from explorer_app.window.sliders.xy_pad import PadAxis, XyPad
from tests.helpers.fake_controller import directions, facts
from tests.helpers.mouse import drag, move, press, release


class Watched(XyPad):
    """Remembers what it emitted, and shows the session that its edits make."""

    def __init__(self) -> None:
        super().__init__()
        self.edits: list[tuple[SetParameters, bool]] = []
        self.cancels = 0
        self.paths: list[Any] = []
        self.session = Session()
        self.edited.connect(self._take)
        self.gesture_cancelled.connect(self._cancel)
        self.path_drawn.connect(lambda *path: self.paths.append(path))

    def _take(self, edit: SetParameters, final: bool) -> None:
        self.edits.append((edit, final))
        self.session = edit.apply(self.session)
        self.show_session(self.session)

    def _cancel(self) -> None:
        self.cancels += 1

    @property
    def amounts(self) -> tuple[float, float]:
        return self.session.slider("sefa/0").amount, self.session.slider("sefa/1").amount


@pytest.fixture
def pad(qtbot: QtBot) -> Watched:
    made = Watched()
    qtbot.addWidget(made)
    made.resize(300, 360)
    made.show_model(facts(), directions())  # type: ignore[arg-type]
    made.show()
    return made


def place(pad: XyPad, right: float, up: float) -> QPoint:
    area = pad.field._area()
    return QPoint(round(area.left() + right * area.width()), round(area.bottom() - up * area.height()))


def test_a_drag_moves_both_directions_as_one_gesture(pad: Watched) -> None:
    drag(pad.field, [place(pad, 0.5, 0.5), place(pad, 0.75, 0.75), place(pad, 1.0, 0.25)])
    assert pad.amounts == pytest.approx((6.0, -2.925), abs=0.1)
    assert [final for _, final in pad.edits].count(True) == 1
    assert pad.edits[-1][1]
    assert len({edit.target for edit, _ in pad.edits}) == 1


def test_the_knob_follows_the_sliders_and_stays_on_the_pad(pad: Watched) -> None:
    pad.show_session(Session(sliders=(Slider("sefa/0", 3.0), Slider("sefa/1", -100.0))))
    assert pad.field._place.x() == pytest.approx(0.75)
    assert pad.field._place.y() == 0.0
    assert pad.values.text() == "+3.00, −100.00"


def test_the_middle_is_zero_even_where_a_range_is_not_centred_on_it() -> None:
    axis = PadAxis("world/sun", centre=1.0, reach=3.0)
    assert [axis.amount(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [-2.0, -1.0, 0.0, 2.0, 4.0]
    assert [axis.share(amount) for amount in (-9.0, -1.0, 0.0, 2.0, 9.0)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert PadAxis("world/snow", centre=3.0, reach=3.0).share(-1.0) == 0.5


def test_escape_cancels_and_a_double_click_resets(pad: Watched) -> None:
    press(pad.field, place(pad, 0.9, 0.9))
    QTest.keyClick(pad.field, Qt.Key.Key_Escape)
    assert pad.cancels == 1
    assert not pad.field.is_held
    QTest.mouseDClick(pad.field, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, place(pad, 0.9, 0.9))
    assert pad.amounts == (0.0, 0.0)


def test_undo_in_a_drag_cancels_it(pad: Watched) -> None:
    assert not pad.field.undo_drag()
    press(pad.field, place(pad, 0.9, 0.9))
    move(pad.field, place(pad, 0.8, 0.8))
    assert pad.field.undo_drag()
    assert pad.cancels == 1
    count = len(pad.edits)
    move(pad.field, place(pad, 0.2, 0.2))
    release(pad.field, place(pad, 0.2, 0.2))
    assert len(pad.edits) == count


def test_arrow_keys_step_and_shift_goes_finely(pad: Watched) -> None:
    QTest.keyClick(pad.field, Qt.Key.Key_Right)
    QTest.keyClick(pad.field, Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier)
    assert pad.amounts == pytest.approx((0.6, -0.0585))
    assert all(final for _, final in pad.edits)
    QTest.keyClick(pad.field, Qt.Key.Key_Backspace)
    assert pad.amounts == (0.0, 0.0)


def test_draw_turns_one_drag_into_a_path_and_leaves_the_sliders(pad: Watched) -> None:
    pad.draw.click()
    drag(pad.field, [place(pad, 0.5, 0.5), place(pad, 0.7, 0.6), place(pad, 1.0, 1.0)])
    ((paths, points),) = pad.paths
    assert paths == ("slider/sefa/0", "slider/sefa/1")
    assert points[0][1:] == pytest.approx((0.0, 0.0), abs=0.1)
    assert points[-1][1:] == pytest.approx((6.0, 5.85), abs=0.1)
    assert [t for t, *_ in points] == sorted(t for t, *_ in points)
    assert pad.cancels == 1  # the live preview of the path
    assert not any(final for _, final in pad.edits)
    assert not pad.draw.isChecked()


def test_alt_draws_too_and_a_click_draws_nothing(pad: Watched) -> None:
    alt = Qt.KeyboardModifier.AltModifier
    QTest.mousePress(pad.field, Qt.MouseButton.LeftButton, alt, place(pad, 0.5, 0.5))
    QTest.mouseRelease(pad.field, Qt.MouseButton.LeftButton, alt, place(pad, 0.5, 0.5))
    assert pad.paths == []
    QTest.mousePress(pad.field, Qt.MouseButton.LeftButton, alt, place(pad, 0.5, 0.5))
    move(pad.field, place(pad, 0.8, 0.8), keys=alt)
    QTest.mouseRelease(pad.field, Qt.MouseButton.LeftButton, alt, place(pad, 0.8, 0.8))
    assert len(pad.paths) == 1


def test_other_directions_are_chosen_and_stay_with_a_model_that_has_them(pad: Watched) -> None:
    pad.across.setCurrentIndex(4)
    pad.across.activated.emit(4)
    press(pad.field, place(pad, 1.0, 0.5))
    assert pad.session.slider("sefa/4").amount == pytest.approx(5.4, abs=0.1)
    pad.show_model(facts(model_id="b" * 64), directions())  # type: ignore[arg-type]
    assert pad.across.currentData() == "sefa/4"
    pad.show_model(None, None)
    assert not pad.field.isEnabled()
    pad.grab()


@pytest.mark.parametrize(("at", "axis"), [((0.9, 0.6), 0), ((0.1, 0.4), 0), ((0.4, 0.95), 1), ((0.6, 0.05), 1)])
def test_the_next_direction_that_is_found_is_for_the_axis_where_a_picture_was_dropped(
    at: tuple[float, float], axis: int, pad: Watched
) -> None:
    pad.await_direction(QPointF(place(pad, *at)))
    pad.show_model(None, None)
    pad.show_model(facts(), directions(9))  # type: ignore[arg-type]
    chosen = [box.currentData() for box in (pad.across, pad.up)]
    assert chosen[axis] == "sefa/8"
    assert chosen[1 - axis] == f"sefa/{1 - axis}"
    pad.show_model(facts(), directions(10))  # type: ignore[arg-type]
    assert [box.currentData() for box in (pad.across, pad.up)] == chosen, "only the next one"
