"""The timeline's panel, by real mouse and key events."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QFontMetrics, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import GoToSeed
from explorer_app.session.session import Session, as_still
from explorer_app.session.timeline.edits import SetTimeline, counted_in, names_of, with_key, with_state
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import LINEAR, MAX_SECONDS, STATE, WALK, BeatGrid, Key, Sound, Timeline, Track
from explorer_app.window.look import fonts, theme
from explorer_app.window.timeline.timeline_painter import label_place
from explorer_app.window.timeline.timeline_panel import fps_of
from explorer_app.window.timeline.timeline_view import TimelineView, fitting_hint
from tests.helpers.mouse import wheel
from tests.helpers.panels import CTRL, Edits
from tests.helpers.timelines import GAIN, PSI, at, drag, shift, times


def test_the_head_sets_rate_length_snapping_tempo_and_looping(edits: Edits) -> None:
    panel = edits.panel
    panel.fps_button.menu().actions()[2].trigger()
    assert edits.session.timeline.fps == Fraction(24000, 1001) == fps_of("23.976")
    panel.end_field.entered.emit(12.5, True)
    panel.snap.segments["beat"].click()
    panel.bpm_field.entered.emit(90.0, True)
    panel.loop_button.click()
    timeline = edits.session.timeline
    assert (timeline.end, timeline.snap, timeline.grid.bpm, timeline.is_looping) == (Fraction(25, 2), "beat", 90, False)
    assert not panel.bpm_field.isHidden()
    assert not panel.back_button.isEnabled()


def test_steps_of_the_tempo_make_room_for_keys_as_the_last_one_needs_it(edits: Edits) -> None:
    timeline = edits.session.timeline
    in_beats = counted_in(timeline, names_of(timeline), is_beat=True)
    edits.show(replace(edits.session, timeline=in_beats))
    for bpm, final in ((110.0, False), (20.0, False), (60.0, False), (60.0, True)):
        edits.panel.bpm_field.entered.emit(bpm, final)
    assert times(edits) == [0, 8, 16]
    assert edits.session.timeline.end == 16
    assert len(edits.steps) == 1
    edits.panel.bpm_field.entered.emit(20.0, False)
    other = replace(timeline, end=Fraction(30))
    edits.show(replace(edits.session, timeline=other))
    edits.panel.bpm_field.entered.emit(40.0, True)
    assert edits.session.timeline == replace(other, grid=BeatGrid(Fraction(40))), "another project is open by now"


def test_a_tempo_that_would_put_keys_beyond_a_day_is_refused(edits: Edits) -> None:
    panel, refused = edits.panel, list[str]()
    panel.refused.connect(refused.append)
    timeline = with_key(edits.session.timeline, PSI, Fraction(MAX_SECONDS // 4), 0.5)
    timeline = counted_in(timeline, names_of(timeline), is_beat=True)
    edits.show(replace(edits.session, timeline=replace(timeline, snap="beat")))
    panel.bpm_field.entered.emit(20.0, True)
    assert len(refused) == 1
    assert (edits.steps, panel.bpm_field.value()) == ([], 120.0)
    for bpm, final in ((60.0, False), (20.0, False), (20.0, True)):
        panel.bpm_field.entered.emit(bpm, final)
    assert len(refused) == 2
    assert edits.session.timeline.grid.bpm == panel.bpm_field.value() == 60.0, "the slowest on the way that is possible"
    panel.view.select(names_of(edits.session.timeline, PSI))
    panel.view.keys.copy()
    panel.view.show_time(Fraction(MAX_SECONDS))
    panel.view.keys.paste()
    assert (len(refused), len(edits.steps)) == (3, 1)


def test_a_shorter_timeline_cuts_the_range_that_plays(edits: Edits) -> None:
    edits.show(replace(edits.session, timeline=replace(edits.session.timeline, loop=(Fraction(2), Fraction(10)))))
    for end, loop in ((9.0, (2, 9)), (6.0, (2, 6)), (2.0, None)):
        edits.panel.end_field.entered.emit(end, True)
        assert edits.session.timeline.loop == loop


def test_the_loop_check_is_reported_after_a_rest(edits: Edits, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: edits.panel.seam_badge.label.text() == "✗ loop jumps")
    closed = replace(edits.session.timeline, tracks=(Track(WALK, period=Fraction(10)),))
    edits.show(replace(edits.session, timeline=closed))
    qtbot.waitUntil(lambda: edits.panel.seam_badge.label.text() == "✓ loop closes")
    assert edits.panel.seam_badge.close_button.isHidden()
    saw = Track("slider/a", (Key(Fraction(0), 0.0, LINEAR), Key(Fraction(2), 1.0, LINEAR)), outside="loop")
    edits.show(replace(edits.session, timeline=replace(closed, tracks=(saw,))))
    qtbot.waitUntil(lambda: edits.panel.seam_badge.label.text() == "✓ loop repeats")
    assert "each time it begins again" in edits.panel.seam_badge.label.toolTip()


def test_a_loop_that_jumps_is_closed_by_a_click(edits: Edits, qtbot: QtBot) -> None:
    badge = edits.panel.seam_badge
    qtbot.waitUntil(badge.close_button.isVisible)
    badge.close_button.click()
    assert [step.label for step in edits.steps] == ["Close the loop"]
    assert times(edits) == [0, 4, 8, 10]
    qtbot.waitUntil(lambda: not badge.label.text().endswith("jumps"))


def test_an_empty_timeline_says_what_fits_into_it() -> None:
    metrics = QFontMetrics(fonts.body())
    width, line = 20 * metrics.averageCharWidth(), metrics.lineSpacing()
    texts = [fitting_hint(metrics, QRect(0, 0, width, lines * line)) for lines in (14, 5, 2, 1)]
    assert [len(text) for text in texts] == sorted({len(text) for text in texts}, reverse=True)
    assert texts[2:] == ["Press I to keep the picture.", ""], "nothing is cut"
    assert fitting_hint(metrics, QRect(0, 0, 2 * width, line), has_model=False).startswith("Open a model")


@pytest.mark.parametrize(
    ("tick", "place"),
    [(150.0, 154.0), (140.0, None), (146.0, 150.0), (290.0, 246.0), (320.0, None)],
    ids=["at the left", "scrolled out", "just seen", "at the right", "no room"],
)
def test_a_label_of_the_ruler_is_whole_or_left_out(tick: float, place: float | None) -> None:
    assert label_place(tick, 40.0, 4.0, 150.0, 300.0) == place


def test_a_narrow_panel_shows_the_volume_behind_a_button(edits: Edits) -> None:
    panel = edits.panel
    sound = Sound("drums", "a" * 64, "drums.wav", 4.0)
    edits.show(replace(edits.session, timeline=replace(edits.session.timeline, sounds=(sound,))))
    panel.resize(420, 320)
    assert panel.volume_field in panel.head.left_out
    panel.head.more_button.click()
    assert panel.volume_field.isVisible()
    panel.volume_field.window().close()


def test_buttons_of_the_head_are_whole_in_a_panel_of_a_low_screen(edits: Edits) -> None:
    panel, head = edits.panel, edits.panel.head
    panel.resize(318, 180)
    QApplication.processEvents()
    shown = [child for child in head.children() if isinstance(child, QWidget) and child.isVisible()]
    assert panel.play_button in shown
    assert panel.add_button in shown
    assert [child for child in shown if child.width() < child.minimumSizeHint().width()] == []
    assert panel.export_button in head.left_out
    head.open_rest()
    wanted: list[None] = []
    panel.export_requested.connect(lambda: wanted.append(None))
    panel.export_button.click()
    assert wanted == [None]


def test_the_dot_arms_a_track_and_buttons_play_and_record(edits: Edits, view: TimelineView) -> None:
    heard: list[Any] = []
    panel = edits.panel
    panel.armed.connect(lambda path, on: heard.append((path, on)))
    panel.play_toggled.connect(lambda on: heard.append(("play", on)))
    panel.record_toggled.connect(lambda on: heard.append(("record", on)))
    drag(view, QPoint(theme.px(11), view.scene.ruler_px + theme.px(11)))
    QTest.keyClick(view, Qt.Key.Key_Space)
    panel.record_button.click()
    assert heard == [(PSI, True), ("play", True), ("record", True)]


def test_the_playhead_stays_in_sight_and_its_time_is_reported(edits: Edits, view: TimelineView) -> None:
    edits.panel.show_time(Fraction(500))
    assert view.axis.start <= 500 <= view.axis.end
    assert edits.panel.time_label.text() == "8:20:00"


def test_the_wheel_zooms_around_the_pointer_and_scrolls(edits: Edits, view: TimelineView) -> None:
    before = view.axis
    x = before.x(4.0)
    axis = before.zoomed(2.0, x)
    assert axis.x(4.0) == pytest.approx(x)
    assert axis.scrolled(-1e9).start < 0.0
    assert axis.t(-1e6) == 0


def test_pictures_of_states_are_requested_once_and_shown(edits: Edits, view: TimelineView) -> None:
    wanted: list[Any] = []
    edits.panel.thumbnail_wanted.connect(lambda key, what: wanted.append((key, what)))
    timeline = with_state(Timeline(), GoToSeed(3).apply(Session()), Fraction(0))
    edits.show(replace(edits.session, timeline=timeline))
    edits.panel.grab()
    assert wanted
    key, what = wanted[0]
    assert what.position == GoToSeed(3).apply(Session()).position
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    edits.panel.show_thumbnail(key, image)
    wanted.clear()
    shown = edits.panel.grab().toImage()
    assert wanted == []
    ratio = shown.devicePixelRatio()
    place = view.mapTo(edits.panel, at(view, STATE, 0) + QPoint(8, 0)) * ratio
    assert shown.pixelColor(place) == Qt.GlobalColor.red


def test_small_pictures_show_the_way_between_states_but_are_not_requested_while_keys_move(
    edits: Edits, view: TimelineView
) -> None:
    timeline = Timeline(end=Fraction(10))
    for seed, t in ((3, 0), (8, 4), (1, 5)):
        timeline = with_state(timeline, GoToSeed(seed).apply(Session()), Fraction(t))
    session = replace(edits.session, timeline=timeline)
    edits.show(session)
    edits.panel.grab()
    wanted: list[Any] = []
    edits.panel.thumbnail_wanted.connect(lambda key, what: wanted.append((key, what)))
    drag(view, at(view, STATE, 5), shift(view, at(view, STATE, 5), 2.0), release=False)
    edits.panel.grab()
    assert wanted == []
    view.cancel_drag()
    edits.panel.grab()
    states = {key.value for key in timeline.tracks[0].keys}
    between = [what for key, what in wanted if key not in states]
    width = 4 * view.axis.scale
    assert width / 96 < len(between) + 1 < width / 40  # as far as there is room, and none between 4 and 5 s
    assert as_still(session_at(session, 2.0)) in between
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    for key, _ in list(wanted):
        edits.panel.show_thumbnail(key, image)
    wanted.clear()
    shown = edits.panel.grab().toImage()
    assert wanted == []
    place = view.mapTo(edits.panel, shift(view, at(view, STATE, 0), 2.0)) * shown.devicePixelRatio()
    assert shown.pixelColor(place).red() > 2 * shown.pixelColor(place).green()


def test_small_pictures_are_requested_once_a_zoom_rests(edits: Edits, view: TimelineView, qtbot: QtBot) -> None:
    timeline = Timeline(end=Fraction(10))
    for seed, t in ((3, 0), (8, 5)):
        timeline = with_state(timeline, GoToSeed(seed).apply(Session()), Fraction(t))
    edits.show(replace(edits.session, timeline=timeline))
    edits.panel.grab()
    wanted: list[Any] = []
    edits.panel.thumbnail_wanted.connect(lambda key, what: wanted.append((key, what)))
    place = at(view, STATE, 0)
    for _ in range(4):
        wheel(view.viewport(), place, 1, CTRL)
        edits.panel.grab()
    assert wanted == [], "which pictures are seen between the keys changes with each turn"
    qtbot.waitUntil(lambda: bool(wanted))


def test_while_the_playhead_moves_nothing_but_it_is_painted(
    edits: Edits, view: TimelineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    from explorer_app.window.timeline import timeline_painter, timeline_view

    painted: list[int] = []
    paint = timeline_painter.paint_still

    def count(*arguments: Any) -> None:
        painted.append(1)
        paint(*arguments)

    monkeypatch.setattr(timeline_view, "paint_still", count)
    edits.panel.grab()
    painted.clear()
    for n in range(5):
        edits.panel.show_time(Fraction(n, 10))
        edits.panel.grab()
    assert painted == []


def test_of_ten_thousand_keys_those_in_sight_are_painted_and_no_more_than_pixels() -> None:
    from explorer_app.window.timeline.track_rows import visible_keys

    every = [n / 30 for n in range(10_000)]
    assert len(visible_keys(every, 0.0, 400.0, 0.5)) <= 800
    assert visible_keys(every, 10.0, 11.0, 0.5) == list(range(300, 331))


def test_a_timeline_of_ten_thousand_keys_is_shown_in_both_themes(edits: Edits, qapp: Any) -> None:
    from explorer_app.window.look import appearance

    keys = tuple(Key(Fraction(n, 30), (n % 17) / 17) for n in range(1000))
    tracks = tuple(Track(f"slider/sefa/{n}", keys) for n in range(10))
    edits.show(Session(timeline=Timeline(tracks, end=Fraction(34))))
    for name in ("light", "dark"):
        appearance.apply(qapp, name)
        assert not edits.panel.grab().isNull()


def test_an_edit_that_is_too_much_is_refused_with_a_sentence(edits: Edits) -> None:
    from explorer_app.session.tracks import MAX_KEYS

    refused: list[str] = []
    edits.panel.refused.connect(refused.append)
    full = Timeline((Track(PSI, tuple(Key(Fraction(n, 100), 0.5) for n in range(MAX_KEYS))),))
    edits.show(Session(timeline=full))
    edits.panel.add_track(GAIN)
    assert refused == ["A timeline may have 50,000 keys, but this one would have more."]


def test_the_panel_emits_timeline_edits(edits: Edits, view: TimelineView) -> None:
    view.emit_change(replace(edits.session.timeline, is_ping_pong=True), "Back and forth")
    assert isinstance(edits.steps[0], SetTimeline)


def test_a_place_outside_of_every_track_has_no_key(view: TimelineView) -> None:
    assert view.scene.key_near(QPointF(500.0, 5000.0)) is None


def test_the_frame_of_the_focus_follows_the_focus(view: TimelineView) -> None:
    paints: list[str] = []

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if event.type() == QEvent.Type.Paint:
                paints.append("paint")
            return False

    watch = Watch()
    view.viewport().installEventFilter(watch)
    for change in (view.setFocus, view.clearFocus):
        QApplication.processEvents()
        paints.clear()
        change()
        QApplication.processEvents()
        assert paints, f"{change.__name__} paints the timeline"
