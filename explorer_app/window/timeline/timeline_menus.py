"""The menus of the timeline: add a track, a track's own, the keys'; closing deletes each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from explorer_app.session.parameter_names import parameter_name
from explorer_app.session.parameters import Parameter, parameters_of
from explorer_app.session.session import Session
from explorer_app.session.timeline.baking import baked_walk
from explorer_app.session.timeline.easing import NAMES, as_bezier
from explorer_app.session.timeline.edits import (
    TimelineError,
    counted_in,
    eased_keys,
    key_at,
    moved_track,
    retargeted,
    with_grid,
    without_track,
)
from explorer_app.session.timeline.noise_loop import FULL_CIRCLE, noise_loop_of, with_noise_loop
from explorer_app.session.tracks import NOISE_LOOP, STATE, WALK, Easing, Outside, Track
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.timeline.timeline_view import TimelineView
from explorer_app.window.timeline.track_rows import WAYS
from gpu_backend import Directions, ModelFacts, PathKind

_OUTSIDE: dict[Outside, str] = {"hold": "Hold the ends", "loop": "Repeat", "mirror": "Back and forth"}
_PERIODS = (2, 4, 5, 8, 10, 15, 20, 30, 60)
_RADII = (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5)
_SWINGS = (5, 10, 20, 30, 45, 60, 90)
"""Radii of a noise loop in degrees."""

_LEFT_OUT = ("text", "flag", "source", "mask")
"""Kinds of parameters that make no picture, or that no track is useful for."""


def add_track_menu(
    parent: QWidget,
    session: Session,
    facts: ModelFacts,
    directions: Directions | None,
    add: Callable[[str], None],
) -> QMenu:
    """Return the menu of everything that can get a track and has none."""
    menu = _new_menu(parent)
    menu.setToolTipsVisible(True)
    there = {track.path for track in session.timeline.tracks}
    _entry(menu, "Picture", "Keys keep the whole picture (I).", STATE in there, partial(add, STATE))
    _entry(menu, "Latent", "Keys keep the latent alone.", "pinned_blend" in there, partial(add, "pinned_blend"))
    _entry(menu, "Walk", "The latent wanders and comes back to its start.", WALK in there, partial(add, WALK))
    if facts.noise_layers:
        tip = "The noise goes round a circle: it changes steadily, and comes back to its start."
        _entry(menu, "Noise loop", tip, NOISE_LOOP in there, partial(add, NOISE_LOOP))
    menu.addSeparator()
    own = ("pinned_blend", NOISE_LOOP)
    others: list[Parameter] = [
        row for row in parameters_of(session, facts) if row.kind not in _LEFT_OUT and row.path not in own
    ]
    groups = {"Layers of noise": "noise.layer/", "Layer ranges": "rows/", "Mix": "mix/"}
    plain = [row for row in others if not row.path.startswith((*groups.values(), "slider/"))]
    for row in plain:
        _parameter_entry(menu, row.path, session, row.path in there, partial(add, row.path))
    names = [] if directions is None else [f"slider/{name}" for name in directions.names]
    moved = [row.path for row in others if row.path.startswith("slider/")]
    _submenu(menu, "Sliders", dict.fromkeys((*moved, *names[:64])), session, there, add)
    for title, prefix in groups.items():
        _submenu(menu, title, [row.path for row in others if row.path.startswith(prefix)], session, there, add)
    return menu


def track_menu(view: TimelineView, path: str, session: Session) -> QMenu:
    """Return the menu of a track."""
    menu = _new_menu(view)
    timeline = view.timeline
    track = timeline.track(path)
    if track is None:
        return menu
    mute = _entry(menu, "Mute", "The track moves nothing.", False, lambda: None)
    mute.setCheckable(True)
    mute.setChecked(track.is_muted)
    mute.triggered.connect(lambda on: view.replace_track(replace(track, is_muted=on), "Mute track"))
    arm = _entry(menu, "Arm for recording", "Record armed tracks only.", False, lambda: None)
    arm.setCheckable(True)
    arm.setChecked(path in view.scene.armed)
    arm.triggered.connect(lambda on: view.armed.emit(path, on))
    if path in (STATE, "pinned_blend"):
        _choices(menu, "Way", WAYS, track.way, partial(_set_way, view, track))
    if path == NOISE_LOOP:
        _noise_loop_entries(menu, view, session)
    if path == WALK:
        _walk_entries(menu, view, track, session)
    else:
        _choices(menu, "Outside of the keys", _OUTSIDE, track.outside, partial(_set_outside, view, track))
    clip = retargeted(view.keys.clip, path)
    tip = "The copied keys of a track of numbers, from the playhead on."
    _entry(menu, "Paste keys here", tip, not clip, partial(view.keys.paste, clip))
    menu.addSeparator()
    place = [item.path for item in timeline.tracks].index(path)
    up, down = place == 0, place == len(timeline.tracks) - 1
    _entry(menu, "Move up", "", up, lambda: view.emit_change(moved_track(timeline, path, place - 1), "Move track"))
    _entry(menu, "Move down", "", down, lambda: view.emit_change(moved_track(timeline, path, place + 1), "Move track"))
    menu.addSeparator()
    _entry(menu, "Remove track", "", False, lambda: view.emit_change(without_track(timeline, path), "Remove track"))
    return menu


def ruler_menu(view: TimelineView, t: Fraction) -> QMenu:
    """Return the menu of the ruler at a time in seconds: the whole timeline, what plays, where beats begin."""
    menu = _new_menu(view)
    menu.setToolTipsVisible(True)
    tip = "Zoom out until the whole timeline is seen; Ctrl and the wheel zoom in."
    _entry(menu, "Show the whole timeline", tip, view.is_fitted, view.fit)
    menu.addSeparator()
    grid = view.timeline.grid
    here = max(Fraction(0), round(t * view.timeline.fps) / view.timeline.fps)
    _range_entries(menu, view, here)
    tip = "Bar 1 begins at this frame, and keys snap to its beats."
    _entry(menu, "First beat here", tip, False, partial(_set_first_beat, view, here))
    tip = "Bar 1 begins with the timeline."
    _entry(menu, "First beat at the start", tip, not grid.offset, partial(_set_first_beat, view, Fraction(0)))
    return menu


def _range_entries(menu: QMenu, view: TimelineView, here: Fraction) -> None:
    """Add what a drag in the bar above the ruler does: choose what plays."""
    timeline = view.timeline
    (first, last), end = timeline.playing_range, timeline.end
    start = here, last if here < last else end
    stop = first if first < here else Fraction(0), min(here, end)

    def play(loop: tuple[Fraction, Fraction] | None) -> None:
        view.emit_change(replace(timeline, loop=loop), "Loop")

    _entry(menu, "Play from here", "What plays begins at this frame.", here >= end, partial(play, start))
    _entry(menu, "Play up to here", "What plays ends at this frame.", not here, partial(play, stop))
    _entry(menu, "Play the whole timeline", "From its start to its end.", timeline.loop is None, partial(play, None))
    menu.addSeparator()


def _new_menu(parent: QWidget) -> QMenu:
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    return menu


def _set_first_beat(view: TimelineView, t: Fraction) -> None:
    timeline = view.timeline
    try:
        moved = with_grid(timeline, replace(timeline.grid, offset=t))
    except TimelineError as error:
        view.refused.emit(error.sentence)
        return
    view.emit_change(replace(moved, snap="beat"), "First beat")


def key_menu(view: TimelineView) -> QMenu:
    """Return the menu of the selected keys."""
    menu = _new_menu(view)
    timeline, names = view.timeline, view.selection
    keys = [key for name in names if (key := key_at(timeline, name)) is not None]
    kinds = {key.easing.kind for key in keys}
    group = QActionGroup(menu)
    for kind, text in NAMES.items():
        action = menu.addAction(text)
        action.setCheckable(True)
        action.setChecked(kinds == {kind})
        group.addAction(action)
        action.triggered.connect(partial(_ease, view, kind))
    menu.addSeparator()
    in_beats = bool(keys) and all(key.is_beat for key in keys)
    beats = menu.addAction("Count in beats")
    beats.setCheckable(True)
    beats.setChecked(in_beats)
    beats.triggered.connect(lambda on: view.emit_change(counted_in(timeline, names, is_beat=on), "Count keys"))
    menu.addSeparator()
    _entry(menu, "Copy\tCtrl+C", "", False, view.keys.copy)
    _entry(menu, "Paste at the playhead\tCtrl+V", "", not view.keys.clip, view.keys.paste)
    _entry(menu, "Delete\tDel", "", False, view.keys.delete)
    return menu


def _ease(view: TimelineView, kind: str, _checked: bool = False) -> None:
    """Give the selected keys an easing; a Bezier curve begins with the shape that is there."""
    timeline = view.timeline
    if kind != "bezier":
        view.emit_change(eased_keys(timeline, view.selection, Easing(kind)), "Easing")  # type: ignore[arg-type]
        return
    for name in view.selection:
        key = key_at(timeline, name)
        if key is not None:
            timeline = eased_keys(timeline, [name], as_bezier(key.easing))
    view.emit_change(timeline, "Easing")


def _walk_entries(menu: QMenu, view: TimelineView, track: Track, session: Session) -> None:
    periods = {str(number): f"{number} s" for number in _PERIODS}
    radii = {str(number): f"{number:g}" for number in _RADII}

    def change(label: str, **fields: object) -> None:
        view.replace_track(replace(track, **fields), label)  # type: ignore[arg-type]

    period = f"{float(track.period):g}"
    _choices(menu, "Period", periods, period, lambda text: change("Walk's period", period=Fraction(text)))
    _choices(menu, "Radius", radii, f"{track.radius:g}", lambda text: change("Walk's radius", radius=float(text)))
    _entry(menu, "Another walk", "", False, lambda: change("Another walk", seed=track.seed + 1))
    still = replace(session, timeline=view.timeline)
    _entry(
        menu, "Bake to keys", "Keys of the latent in place of the walk.", False,
        lambda: view.emit_change(baked_walk(still), "Bake walk"),
    )  # fmt: skip


def _noise_loop_entries(menu: QMenu, view: TimelineView, session: Session) -> None:
    timeline = view.timeline
    period, radius = noise_loop_of(timeline)
    periods = {str(number): f"{number} s" for number in _PERIODS}
    radii = {f"{number:g}": f"{number:g}°" for number in _SWINGS} | {f"{FULL_CIRCLE:g}": "Full circle"}

    change = partial(with_noise_loop, timeline, session.noise.phase, view.time)

    def set_period(text: str) -> None:
        view.emit_change(change(period=Fraction(text), radius=radius), "Period of the noise loop")

    def set_radius(text: str) -> None:
        view.emit_change(change(period=period, radius=float(text)), "Radius of the noise loop")

    _choices(menu, "Period", periods, f"{float(period):g}", set_period)
    _choices(menu, "Radius", radii, f"{radius:g}", set_radius)


def _set_way(view: TimelineView, track: Track, way: PathKind) -> None:
    view.replace_track(replace(track, way=way), "Way of the track")


def _set_outside(view: TimelineView, track: Track, outside: Outside) -> None:
    view.replace_track(replace(track, outside=outside), "Outside of the keys")


def _choices(
    menu: QMenu, title: str, choices: dict[str, str] | dict[Outside, str], chosen: str, choose: Callable[..., None]
) -> None:
    sub = menu.addMenu(title)
    group = QActionGroup(sub)
    for key, text in choices.items():
        action = sub.addAction(text[:1].upper() + text[1:])
        action.setCheckable(True)
        action.setChecked(key == chosen)
        group.addAction(action)
        action.triggered.connect(partial(_choose, choose, key))


def _choose(choose: Callable[..., None], key: str, _checked: bool = False) -> None:
    choose(key)


def _submenu(
    menu: QMenu, title: str, paths: Iterable[str], session: Session, there: set[str], add: Callable[[str], None]
) -> None:
    chosen = list(paths)
    if not chosen:
        return
    sub = menu.addMenu(title)
    for path in chosen:
        _parameter_entry(sub, path, session, path in there, partial(add, path))


def _parameter_entry(menu: QMenu, path: str, session: Session, disabled: bool, call: Callable[[], None]) -> None:
    name = parameter_name(path, session)
    _entry(menu, menu_text(name), plain_tip(name), disabled, call)


def _entry(menu: QMenu, text: str, tip: str, disabled: bool, call: Callable[[], None]) -> QAction:
    action = menu.addAction(text)
    action.setToolTip(tip or text)
    action.setEnabled(not disabled)
    action.triggered.connect(lambda _checked=False: call())
    return action
