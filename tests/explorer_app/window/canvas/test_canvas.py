"""The canvas under real mouse and key events."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest
from PySide6.QtCore import QObject, QPoint, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QContextMenuEvent, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu
from pytestqt.qtbot import QtBot

from explorer_app.controller import Preview
from explorer_app.session.edits import Edit
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.gestures.plane_drag import KEY_STEP, SEEDS_PER_PX, SLOW, PlaneDrag
from explorer_app.window.look import theme
from gpu_backend import Frame, FrameTimings, RenderRequest, TappedLayer, ValueStatistics
from tests.helpers.fake_controller import facts, landscape
from tests.helpers.mouse import LEFT, MIDDLE, SHIFT, drag, move, press, release, wheel

START = Position(3.0, 2.0)
MIDDLE_POINT = QPoint(300, 200)


def frame(side: int = 256, *, is_draft: bool = False) -> Frame:
    return Frame(RenderRequest("m"), landscape(0, 0, side), FrameTimings(1, 0, 1), is_draft=is_draft)


@dataclass
class Ears:
    """What a canvas said."""

    edits: list[tuple[Edit, bool]] = field(default_factory=list)
    cancelled: int = 0
    painted: list[Frame] = field(default_factory=list)

    @property
    def last(self) -> Position:
        edit = self.edits[-1][0]
        assert isinstance(edit, SetParameter)
        assert isinstance(edit.value, Position)
        return edit.value

    @property
    def finals(self) -> int:
        return sum(final for _, final in self.edits)

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.fixture
def canvas(qtbot: QtBot) -> Canvas:
    canvas = Canvas()
    qtbot.addWidget(canvas)
    canvas.resize(600, 500)
    canvas.show_model(facts())
    canvas.show_session(Session(position=START))
    canvas.show_frame(frame())
    with qtbot.waitExposed(canvas):
        canvas.show()
    canvas.setFocus()
    canvas.repaint()
    return canvas


@pytest.fixture
def ears(canvas: Canvas) -> Ears:
    ears = Ears()
    canvas.edited.connect(lambda edit, final: ears.edits.append((edit, final)))
    canvas.gesture_cancelled.connect(ears.cancel)
    canvas.painted.connect(ears.painted.append)
    return ears


def test_a_drag_walks_the_plane_and_is_one_gesture(canvas: Canvas, ears: Ears) -> None:
    drag(canvas, [MIDDLE_POINT, QPoint(340, 200), QPoint(420, 260)])

    assert ears.last.x == pytest.approx(START.x + 120 * SEEDS_PER_PX)
    assert ears.last.y == pytest.approx(START.y + 60 * SEEDS_PER_PX)
    assert [final for _, final in ears.edits] == [False, False, True]


def test_shift_slows_a_drag_without_a_jump(canvas: Canvas, ears: Ears) -> None:
    press(canvas, MIDDLE_POINT)
    move(canvas, QPoint(400, 200))
    fast = ears.last.x
    move(canvas, QPoint(500, 200), keys=SHIFT)
    release(canvas, QPoint(500, 200))

    assert ears.last.x - fast == pytest.approx(100 * SEEDS_PER_PX * SLOW)


def test_a_click_without_a_way_is_no_edit(canvas: Canvas, ears: Ears) -> None:
    drag(canvas, [MIDDLE_POINT])
    assert ears.edits == []


def test_a_drag_that_comes_back_to_where_it_began_ends_its_gesture(canvas: Canvas, ears: Ears) -> None:
    drag(canvas, [MIDDLE_POINT, MIDDLE_POINT + QPoint(48, 0), MIDDLE_POINT])
    assert ears.finals == 1
    assert ears.last.x == pytest.approx(START.x)


def test_escape_during_a_drag_cancels_it_and_the_rest_of_the_drag_does_nothing(canvas: Canvas, ears: Ears) -> None:
    press(canvas, MIDDLE_POINT)
    move(canvas, QPoint(350, 200))
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    move(canvas, QPoint(450, 200))
    release(canvas, QPoint(450, 200))

    assert ears.cancelled == 1
    assert len(ears.edits) == 1
    assert ears.finals == 0


def test_undo_during_a_drag_cancels_it_and_leaves_a_press_without_a_way_alone(canvas: Canvas, ears: Ears) -> None:
    assert not canvas.cancel_stroke()
    press(canvas, MIDDLE_POINT)
    assert not canvas.cancel_stroke(), "undo reverts the last step"
    release(canvas, MIDDLE_POINT)
    press(canvas, MIDDLE_POINT)
    move(canvas, QPoint(350, 200))
    assert canvas.cancel_stroke()
    move(canvas, QPoint(450, 200))
    release(canvas, QPoint(450, 200))
    assert len(ears.edits) == 1
    assert ears.finals == 0


def test_a_session_that_arrives_during_a_drag_does_not_pull_the_hand_back(canvas: Canvas, ears: Ears) -> None:
    press(canvas, MIDDLE_POINT)
    move(canvas, QPoint(324, 200))
    canvas.show_session(Session(position=Position(90, 90)))
    move(canvas, QPoint(348, 200))
    release(canvas, QPoint(348, 200))

    assert ears.last.x == pytest.approx(START.x + 48 * SEEDS_PER_PX)


def test_a_move_with_another_button_after_a_release_that_never_came_does_not_walk(canvas: Canvas, ears: Ears) -> None:
    press(canvas, MIDDLE_POINT)
    move(canvas, QPoint(340, 200), Qt.MouseButton.RightButton)
    canvas._way.flush()
    assert ears.edits == []


def test_without_a_picture_a_drag_does_nothing(qtbot: QtBot) -> None:
    canvas = Canvas()
    qtbot.addWidget(canvas)
    ears = Ears()
    canvas.edited.connect(lambda edit, final: ears.edits.append((edit, final)))
    canvas.show()

    drag(canvas, [QPoint(20, 20), QPoint(90, 90)])
    QTest.keyClick(canvas, Qt.Key.Key_Left)

    assert ears.edits == []


def test_the_wheel_zooms_at_the_pointer(canvas: Canvas) -> None:
    before = canvas.picture_rect()
    at = QPoint(round(before.left() + 60), round(before.top() + 40))
    share = (at.x() - before.left()) / before.width(), (at.y() - before.top()) / before.height()

    wheel(canvas, at, 2)

    after = canvas.picture_rect()
    assert after.width() > before.width() * 1.3
    assert after.left() + share[0] * after.width() == pytest.approx(at.x(), abs=1)
    assert after.top() + share[1] * after.height() == pytest.approx(at.y(), abs=1)


@pytest.mark.parametrize("by", ["middle", "space"])
def test_middle_drag_and_space_drag_pan_and_do_not_walk(canvas: Canvas, ears: Ears, by: str) -> None:
    before = canvas.picture_rect()
    if by == "space":
        QTest.keyPress(canvas, Qt.Key.Key_Space)
    drag(canvas, [MIDDLE_POINT, QPoint(330, 180)], MIDDLE if by == "middle" else LEFT)
    if by == "space":
        QTest.keyRelease(canvas, Qt.Key.Key_Space)

    after = canvas.picture_rect()
    assert (after.left() - before.left(), after.top() - before.top()) == pytest.approx((30, -20), abs=1)
    assert after.size() == before.size()
    assert ears.edits == []


def test_after_space_is_let_go_a_drag_walks_again(canvas: Canvas, ears: Ears) -> None:
    QTest.keyClick(canvas, Qt.Key.Key_Space)
    drag(canvas, [MIDDLE_POINT, QPoint(330, 180)])
    assert ears.finals == 1


def test_fit_and_one_to_one(canvas: Canvas) -> None:
    canvas.one_to_one()
    assert canvas.picture_rect().width() * canvas.devicePixelRatioF() == 256
    canvas.fit()
    fitted = canvas.picture_rect()
    assert fitted.height() > 400
    assert fitted.center().x() == pytest.approx(canvas.width() / 2, abs=1)


@pytest.mark.parametrize(
    ("key", "way"),
    [
        (Qt.Key.Key_Left, (-1, 0)),
        (Qt.Key.Key_Right, (1, 0)),
        (Qt.Key.Key_Up, (0, -1)),
        (Qt.Key.Key_Down, (0, 1)),
    ],
)
def test_arrow_keys_walk(canvas: Canvas, ears: Ears, key: Qt.Key, way: tuple[int, int]) -> None:
    QTest.keyClick(canvas, key)
    assert (ears.last.x, ears.last.y) == pytest.approx((START.x + way[0] * KEY_STEP, START.y + way[1] * KEY_STEP))
    assert [final for _, final in ears.edits] == [False, True]


def test_shift_slows_the_arrow_keys(canvas: Canvas, ears: Ears) -> None:
    QTest.keyClick(canvas, Qt.Key.Key_Right, SHIFT)
    assert ears.last.x == pytest.approx(START.x + KEY_STEP * SLOW)


def test_a_walk_by_keys_ends_when_the_keyboard_goes_elsewhere(canvas: Canvas, ears: Ears) -> None:
    QTest.keyPress(canvas, Qt.Key.Key_Right)
    canvas.clearFocus()
    assert ears.finals == 1


# -- flicks ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick_hand")
def test_a_flick_glides_on_until_clicked(canvas: Canvas, ears: Ears, qtbot: QtBot) -> None:
    canvas.glides = True
    drag(canvas, [MIDDLE_POINT, QPoint(340, 200), QPoint(400, 200)])
    let_go = ears.last.x

    qtbot.waitUntil(lambda: ears.last.x > let_go + 0.2)
    assert ears.finals == 0

    press(canvas, MIDDLE_POINT)
    release(canvas, MIDDLE_POINT)
    stopped = len(ears.edits)
    assert ears.finals == 1
    qtbot.wait(60)
    assert len(ears.edits) == stopped


@pytest.mark.usefixtures("quick_hand")
def test_without_the_setting_a_flick_stops_where_the_hand_lets_go(canvas: Canvas, ears: Ears, qtbot: QtBot) -> None:
    drag(canvas, [MIDDLE_POINT, QPoint(340, 200), QPoint(400, 200)])
    assert ears.edits[-1][1]
    count = len(ears.edits)
    qtbot.wait(60)
    assert len(ears.edits) == count


@pytest.mark.usefixtures("quick_hand")
def test_escape_stops_a_glide_and_brings_back_what_was(canvas: Canvas, ears: Ears) -> None:
    canvas.glides = True
    drag(canvas, [MIDDLE_POINT, QPoint(340, 200), QPoint(400, 200)])
    assert canvas.is_walking
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert not canvas.is_walking
    assert ears.cancelled == 1
    assert ears.finals == 0


def test_a_gesture_that_rested_before_letting_go_does_not_flick() -> None:
    drag = PlaneDrag(START)
    for now_ms in (0, 10, 20):
        drag.move(0.1, 0, slow=False, now_ms=now_ms)
    assert drag.flick(25) is not None
    assert drag.flick(200) is None


# -- painting -------------------------------------------------------------------------------------------------------


def test_a_frame_is_reported_once_it_is_painted_and_only_once(canvas: Canvas, ears: Ears, qtbot: QtBot) -> None:
    new = frame()
    canvas.show_frame(new)
    qtbot.waitUntil(lambda: ears.painted == [new])
    canvas.repaint()
    assert ears.painted == [new]


def test_a_frame_is_painted_at_once_and_of_many_that_were_shown_while_hidden_the_newest(
    canvas: Canvas, ears: Ears, qtbot: QtBot
) -> None:
    at_once = frame(16)
    canvas.show_frame(at_once)
    assert ears.painted == [at_once]
    canvas.hide()
    frames = [frame(16) for _ in range(50)]
    for item in frames:
        canvas.show_frame(item)
    canvas.show()
    qtbot.waitUntil(lambda: len(ears.painted) > 1)
    assert ears.painted == [at_once, frames[-1]]


def test_a_further_frame_is_painted_where_the_last_one_was_placed(
    canvas: Canvas, ears: Ears, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[QRectF] = []
    place = canvas.picture_rect

    def count() -> QRectF:
        placed.append(place())
        return placed[-1]

    monkeypatch.setattr(canvas, "picture_rect", count)
    for zoom in (None, 0.8):
        if zoom is not None:
            canvas.zoom_by(zoom)
            canvas.repaint()
            assert placed.pop() == place()
        for side in (64, 128):
            canvas.show_frame(frame(side))
            qtbot.waitUntil(lambda: ears.painted[-1:] == [canvas.frame])
        assert placed == []


def test_a_frame_that_touches_the_edge_repaints_no_background_and_keeps_the_focus_ring(
    canvas: Canvas, ears: Ears, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    canvas.caption.set_shown(False)
    canvas.repaint()
    assert canvas.hasFocus()
    assert canvas.picture_rect().bottom() == canvas.rect().bottom() + 1
    whole: list[QRectF] = []
    paint_all = canvas._paint_all

    def count(painter: QPainter, target: QRectF) -> None:
        whole.append(target)
        paint_all(painter, target)

    monkeypatch.setattr(canvas, "_paint_all", count)
    canvas.show_frame(newest := frame(64))
    qtbot.waitUntil(lambda: ears.painted[-1:] == [newest])
    assert whole == []
    backing = canvas.backingStore()
    assert backing is not None
    shown = cast("QImage", backing.paintDevice()).copy()
    canvas.repaint()
    assert len(whole) == 1
    assert cast("QImage", backing.paintDevice()).copy() == shown


class Waits(QObject):
    """A preview that records how long it was waited for."""

    frame_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait_for_frame(self, timeout_s: float) -> None:
        self.seconds.append(timeout_s)

    def frame_painted(self, _frame: Frame) -> None:
        pass


def test_a_frame_is_waited_for_only_when_none_is_to_be_painted(canvas: Canvas) -> None:
    preview = Waits()
    assert canvas.wait_for_frame(0.5)
    canvas.follow(cast("Preview", preview))
    canvas.setUpdatesEnabled(False)
    canvas.show_frame(frame())
    assert not canvas.wait_for_frame(0.5)
    assert preview.seconds == []
    canvas.setUpdatesEnabled(True)
    canvas.repaint()
    assert canvas.wait_for_frame(0.5)
    assert preview.seconds == [0.5]


def test_a_layer_as_large_as_the_picture_before_it_is_not_painted_smoothly_for_that(canvas: Canvas) -> None:
    canvas.show_frame(frame(16))
    canvas.show_frame(frame(16))
    assert canvas._smooth_px == QSize(16, 16)
    layer = TappedLayer("b16.conv1", (1, 16, 16), (), ValueStatistics(0.0, 1.0, -1.0, 1.0))
    canvas.show_frame(replace(frame(16), tap=layer))
    assert canvas._smooth_px.isEmpty()


def test_the_frame_lives_as_long_as_its_picture_and_no_longer(canvas: Canvas) -> None:
    pixels = landscape(5, 5, 64).copy()
    alive = weakref.ref(pixels)
    canvas.show_frame(Frame(RenderRequest("m"), pixels, FrameTimings(1, 0, 1)))
    del pixels
    gc.collect()
    canvas.repaint()
    assert alive() is not None
    canvas.show_frame(frame())
    gc.collect()
    assert alive() is None


def test_colours_and_pixels_are_the_frames_own_at_one_to_one(canvas: Canvas) -> None:
    pixels = np.zeros((256, 256, 4), np.uint8)
    pixels[..., 3] = 255
    pixels[:, ::2, 2] = 255  # every other column red
    pixels[:, 1::2, 0] = 255  # the others blue
    canvas.show_frame(Frame(RenderRequest("m"), pixels, FrameTimings(1, 0, 1)))
    canvas.one_to_one()
    shot = canvas.grab().toImage()
    corner = canvas.picture_rect().topLeft() * canvas.devicePixelRatioF()
    colours = [shot.pixelColor(round(corner.x()) + x, round(corner.y()) + 5) for x in range(4)]
    row = [(colour.red(), colour.green(), colour.blue()) for colour in colours]
    assert row == [(255, 0, 0), (0, 0, 255), (255, 0, 0), (0, 0, 255)]


def test_a_draft_is_drawn_where_the_full_picture_was(canvas: Canvas) -> None:
    full = canvas.picture_rect()
    canvas.show_frame(frame(64, is_draft=True))
    assert canvas.picture_rect() == full
    assert "256 × 256" in canvas.caption.text()
    shot = canvas.grab().toImage()
    ratio = canvas.devicePixelRatioF()
    well = theme.current().well
    inside = full.adjusted(2, 2, -2, -2)
    for corner in (inside.topLeft(), inside.bottomRight()):
        assert shot.pixelColor((corner * ratio).toPoint()).name() != well


def test_the_caption_shows_size_zoom_and_what_the_hand_can_do(canvas: Canvas) -> None:
    assert canvas.caption.text().startswith("256 × 256 → fit ")
    assert "drag to walk, Shift slows, wheel zooms" in canvas.caption.text()
    canvas.one_to_one()
    assert "→ 100 %" in canvas.caption.text()


def test_a_large_picture_is_shrunk_by_averaging(canvas: Canvas) -> None:
    pixels = np.zeros((2048, 2048, 4), np.uint8)
    pixels[..., 3] = 255
    pixels[::2, ::2, :3] = 255  # a fine grid: a quarter white on average
    canvas.show_model(facts(resolution=2048))
    canvas.show_frame(Frame(RenderRequest("m"), pixels, FrameTimings(1, 0, 1)))
    shot = canvas.grab().toImage()
    centre = (canvas.picture_rect().center() * canvas.devicePixelRatioF()).toPoint()
    reds = [shot.pixelColor(centre.x() + x, centre.y() + y).red() for x in range(6) for y in range(6)]
    assert max(reds) - min(reds) < 40
    assert 40 < sum(reds) / len(reds) < 90


def test_the_canvas_has_a_name_and_can_be_reached_by_tab(canvas: Canvas) -> None:
    assert canvas.accessibleName() == "Picture"
    assert canvas.focusPolicy() & Qt.FocusPolicy.TabFocus


def test_the_canvas_can_be_deleted_while_its_menu_is_open(canvas: Canvas) -> None:
    canvas.addAction(QAction("Keep", canvas))
    QTimer.singleShot(0, canvas, lambda: [menu.close() for menu in canvas.findChildren(QMenu)])
    at = canvas.mapToGlobal(MIDDLE_POINT)
    QApplication.sendEvent(canvas, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, MIDDLE_POINT, at))
    (menu,) = canvas.findChildren(QMenu)
    assert menu.isVisible(), "the event waits for no end of the menu, which would then be freed twice"
    assert [action.text() for action in menu.actions()] == ["Keep"]
    gone: list[bool] = []
    menu.destroyed.connect(lambda: gone.append(True))
    menu.close()
    QApplication.sendPostedEvents(menu, 0)
    assert gone == [True]
