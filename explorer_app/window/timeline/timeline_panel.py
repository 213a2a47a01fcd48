"""The timeline's panel: transport, time, rate, snapping, loop check, and the timeline itself."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

from PySide6.QtCore import QPoint, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.adapting import fit_timeline
from explorer_app.session.parameters import parameters_of
from explorer_app.session.session import Session
from explorer_app.session.timeline.edits import (
    PASTE,
    SetTimeline,
    TimelineError,
    between_value,
    with_grid,
    with_key,
    with_loop_closed,
    with_parameter_key,
    with_state,
    with_track,
)
from explorer_app.session.timeline.evaluation import moves_something
from explorer_app.session.timeline.noise_loop import with_noise_loop
from explorer_app.session.timeline.playing import time_text
from explorer_app.session.timeline.seam import seam
from explorer_app.session.tracks import MAX_SECONDS, NOISE_LOOP, STATE, WALK, Snap, Timeline, Track
from explorer_app.window.controls.drive_menu import add_drive_menu
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.look import icons, theme
from explorer_app.window.timeline.seam_badge import SeamBadge
from explorer_app.window.timeline.sound_lanes import SoundLanes
from explorer_app.window.timeline.sound_menu import choose_sounds, sound_menu
from explorer_app.window.timeline.take_painter import Takes
from explorer_app.window.timeline.timeline_menus import add_track_menu, key_menu, ruler_menu, track_menu
from explorer_app.window.timeline.timeline_scene import RULER_PX
from explorer_app.window.timeline.timeline_view import LABEL_PX, TimelineView
from gpu_backend import Directions, LoomError, ModelFacts

FPS_CHOICES = ("12", "15", "23.976", "24", "25", "29.97", "30", "48", "50", "60")

_SEAM_MS = 250
"""The loop is checked once edits have rested for so long."""


class TimelinePanel(QWidget):
    """Shows and edits the session's timeline.

    Signals
    -------
    edited(object, bool)
        An edit, and whether it is the last one of a gesture.
    gesture_cancelled()
        Escape ended a gesture.
    sought(object, bool)
        Time in seconds for the playhead, and whether it is the last one of a gesture.
    play_toggled(bool), record_toggled(bool)
        Play or pause; record what is moved, or stop.
    armed(str, bool)
        A parameter is to be recorded, or no longer.
    keep_requested(), export_requested()
        Keep the picture at the playhead; export the timeline.
    refused(str)
        A sentence about an edit that is impossible.
    thumbnail_wanted(object, object)
        The small picture of a session, under a key.
    sounds_chosen(object), sound_changed(object, str, bool), sound_removed(str)
        Files to add; a sound that was moved or made louder, as `edited`; the name of one to remove.
    volume_changed(float, bool)
        How loud the sounds are heard together, 0..1.
    tempo_wanted(str), locate_requested(str), drive_requested(object)
        The tempo of a sound for the grid; its file is to be found; a patch to add.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("timeline",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    sought = Signal(object, bool)
    play_toggled = Signal(bool)
    record_toggled = Signal(bool)
    armed = Signal(str, bool)
    keep_requested = Signal()
    export_requested = Signal()
    refused = Signal(str)
    thumbnail_wanted = Signal(object, object)
    sounds_chosen = Signal(object)
    sound_changed = Signal(object, str, bool)
    sound_removed = Signal(str)
    volume_changed = Signal(float, bool)
    tempo_wanted = Signal(str)
    locate_requested = Signal(str)
    drive_requested = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = Session()
        self._facts: ModelFacts | None = None
        self._directions: Directions | None = None
        self._time = Fraction(0)
        self._tempo_steps: list[Timeline] = []
        """The timeline before a gesture of the tempo, and those of its steps."""
        self.view = TimelineView()
        self.lanes = SoundLanes(self.view)
        self.start_button = self._button("to-start", "To the start of what plays (Home).", self._to_start)
        self.play_button = self._button("play", "Play or pause (Space, in the timeline).", self._play)
        self.record_button = self._button(
            "record",
            "Record what you move while it plays; each gesture becomes keys.",
            self._record,
            "bad",
        )
        self.loop_button = self._button("loop", "Begin again at the end.", self._set_looping)
        self.back_button = self._button("ping-pong", "Play forwards, then backwards.", self._set_ping_pong)
        for button in (self.play_button, self.record_button, self.loop_button, self.back_button):
            button.setCheckable(True)
        self.time_label = QLabel("0:00:00")
        theme.set_role(self.time_label, "strong")
        self.time_label.setToolTip("Time of the playhead: minutes, seconds, frames.")
        self.time_label.setFixedWidth(self.time_label.fontMetrics().horizontalAdvance("000:00:00") + theme.px(4))
        self.fps_button = QToolButton()
        theme.set_role(self.fps_button, "chip")
        self.fps_button.setToolTip("Frames per second of playing, of snapping and of an export.")
        self.fps_button.setAccessibleName("Frames per second")
        self.fps_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.fps_button.setMenu(self._fps_menu())
        self.end_field = NumberField(0.1, float(MAX_SECONDS), decimals=1, step=1.0, widest="00000.0")
        self.end_field.setSuffix(" s")
        self.end_field.setToolTip("Length of the timeline in seconds, 0.1 to a day.")
        self.end_field.setAccessibleName("Length in seconds")
        self.end_field.entered.connect(self._set_end)
        self.snap = SegmentedControl(
            (
                ("frame", "frame", "Keys snap to frames; hold Alt for a moment without."),
                ("beat", "beat", "Keys snap to quarters of a beat; hold Alt for a moment without."),
                ("off", "off", "Keys do not snap."),
            ),
            "Snap",
        )
        self.snap.chosen.connect(self._set_snap)
        self.bpm_field = NumberField(1.0, 999.0, decimals=1, step=1.0, widest="000.0")
        self.bpm_field.setSuffix(" bpm")
        self.bpm_field.setToolTip(
            "Beats per minute, 1 to 999; keys that count in beats move with them; the timeline makes room."
        )
        self.bpm_field.setAccessibleName("Beats per minute")
        self.bpm_field.entered.connect(self._set_bpm)
        self.volume_field = NumberField(0.0, 100.0, decimals=0, step=5.0, reset=100.0, widest="000")
        self.volume_field.setPrefix("vol ")
        self.volume_field.setSuffix(" %")
        self.volume_field.setToolTip(
            "Volume of all sounds while they play, 0 to 100 %; exports are not quieter. A double-click sets 100 %."
        )
        self.volume_field.setAccessibleName("Volume in percent")
        self.volume_field.entered.connect(lambda percent, final: self.volume_changed.emit(percent / 100.0, final))
        self.keep_button = QPushButton("Keep picture")
        self.keep_button.setAccessibleName("Keep picture")
        self.keep_button.setToolTip("Make a key of the whole picture at the playhead (I).")
        self.keep_button.clicked.connect(self.keep_requested)
        self.add_button = QPushButton("+ Track")
        self.add_button.setToolTip("Add a track for a parameter, or a sound.")
        self.add_button.clicked.connect(self._add_track)
        self.export_button = QPushButton("Export…")
        self.export_button.setAccessibleName("Export")
        theme.set_role(self.export_button, "main")
        self.export_button.setToolTip("Export the timeline as pictures or a video (Ctrl+E).")
        self.export_button.clicked.connect(self.export_requested)
        self._lay_out()
        self._seam_timer = QTimer(self, singleShot=True, interval=_SEAM_MS)
        self._seam_timer.timeout.connect(self._show_seam)
        self._connect_view()
        self._show_head()

    def _button(self, name: str, tip: str, call: object, token: str = "text") -> QToolButton:
        button = QToolButton()
        theme.set_role(button, "flat")
        button.setIcon(icons.icon(name, token))
        button.setToolTip(tip)
        button.setAccessibleName(tip.rstrip("."))
        button.clicked.connect(call)
        return button

    def _lay_out(self) -> None:
        self.snap_label = QLabel("snap")
        theme.set_role(self.snap_label, "dim")
        self.head = FittingRow(
            (
                *(self.start_button, self.play_button, self.record_button, self.loop_button, self.back_button),
                *(self.time_label, self.fps_button, self.end_field, self.snap_label, self.snap, self.bpm_field),
                *(self.volume_field, None, self.keep_button, self.add_button, self.export_button),
            ),
            (
                *(self.snap_label, self.start_button, self.back_button, self.end_field, self.fps_button),
                *(self.snap, self.bpm_field, self.volume_field, self.keep_button, self.export_button),
            ),
            self,
        )
        self.seam_badge = SeamBadge(self.view)
        self.seam_badge.setGeometry(0, 0, theme.px(LABEL_PX) - 1, theme.px(RULER_PX) - 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.head)
        layout.addWidget(self.view, 1)
        layout.addWidget(self.lanes)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Tell the sounds how much room they share with the tracks."""
        super().resizeEvent(event)
        self.lanes.set_room(self.height() - self.head.sizeHint().height() - theme.px(RULER_PX))

    def _connect_view(self) -> None:
        view = self.view
        view.changed.connect(self._changed)
        view.cancelled.connect(self.gesture_cancelled)
        view.refused.connect(self.refused)
        view.sought.connect(self.sought)
        view.play_toggled.connect(self.play_button.click)
        view.key_wanted.connect(self._add_key)
        view.armed.connect(self.armed)
        view.track_menu_requested.connect(self._open_track_menu)
        view.key_menu_requested.connect(lambda place: key_menu(view).popup(place))
        view.ruler_menu_requested.connect(lambda t, place: ruler_menu(view, t).popup(place))
        view.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.seam_badge.close_requested.connect(self.close_loop)
        self.lanes.changed.connect(self.sound_changed)
        self.lanes.cancelled.connect(self.gesture_cancelled)
        self.lanes.menu_requested.connect(self._open_sound_menu)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Offer the parameters of a model."""
        self._facts, self._directions = facts, directions
        self.setEnabled(facts is not None)
        self.view.forget_pictures()

    def show_session(self, session: Session) -> None:
        """Show a session's timeline."""
        self._session = session
        self.view.show_session(session)
        self.lanes.show_sounds(session.timeline.sounds)
        self._show_head()
        self._seam_timer.start()

    def show_time(self, t: Fraction) -> None:
        """Show the playhead's time."""
        self._time = t
        self.time_label.setText(time_text(t, self._session.timeline.fps))
        self.view.show_time(t)

    def show_playing(self, is_playing: bool, is_recording: bool, armed: frozenset[str], takes: Takes) -> None:
        """Show whether it plays and records, what is armed, and what is recorded, which grows meanwhile."""
        self.play_button.setChecked(is_playing)
        self.play_button.setIcon(icons.icon("pause" if is_playing else "play"))
        self.record_button.setChecked(is_recording)
        self.view.show_recording(armed, is_recording, takes)

    def show_volume(self, volume: float) -> None:
        """Show how loud the sounds are heard together, 0..1."""
        self.volume_field.show_number(100.0 * volume)

    def show_thumbnail(self, key: object, image: object) -> None:
        """Show the small picture of a key."""
        self.view.show_thumbnail(key, image)

    def _show_head(self) -> None:
        timeline = self._session.timeline
        self.time_label.setText(time_text(self._time, timeline.fps))
        self.fps_button.setText(f"{_fps_text(timeline.fps)} fps")
        self.end_field.show_number(float(timeline.end))
        self.snap.show_choice(timeline.snap)
        self.bpm_field.show_number(float(timeline.grid.bpm))
        self.view.show_unit("beats" if timeline.snap == "beat" else "seconds")
        self.loop_button.setChecked(timeline.is_looping)
        self.back_button.setChecked(timeline.is_ping_pong)
        self.back_button.setEnabled(timeline.is_looping)
        no_tempo = () if timeline.snap == "beat" else (self.bpm_field,)
        self.head.set_absent((*no_tempo, *(() if timeline.sounds else (self.volume_field,))))

    @Slot()
    def _show_seam(self) -> None:
        """Show whether the loop closes; computing it takes milliseconds, so it waits until edits rest."""
        timeline = self._session.timeline
        if timeline.is_looping and not timeline.is_ping_pong and moves_something(timeline):
            first, last = timeline.playing_range
            self.seam_badge.show_seam(seam(self._session, float(first), float(last)))
        else:
            self.seam_badge.show_seam(None)

    # -- edits ------------------------------------------------------------------------------------------------------

    @Slot(object, str, bool)
    def _changed(self, timeline: Timeline, label: str, final: bool) -> None:
        if label == PASTE and self._facts is not None:  # maybe from a project of another model
            fitted = fit_timeline(timeline, self._facts)
            if len(fitted.tracks) < len(timeline.tracks):
                self.refused.emit("Keys of parameters that this model does not have were not pasted.")
            timeline = fitted
        self.edited.emit(SetTimeline(timeline, label), final)

    def _set(self, timeline: Timeline, label: str, final: bool = True) -> None:
        self.edited.emit(SetTimeline(timeline, label), final)

    @Slot(bool)
    def _play(self, on: bool) -> None:
        self.play_toggled.emit(on)

    @Slot(bool)
    def _record(self, on: bool) -> None:
        self.record_toggled.emit(on)

    def _set_looping(self, on: bool) -> None:
        self._set(replace(self._session.timeline, is_looping=on), "Loop")

    def _set_ping_pong(self, on: bool) -> None:
        self._set(replace(self._session.timeline, is_ping_pong=on), "Back and forth")

    def _set_end(self, seconds: float, final: bool) -> None:
        timeline = self._session.timeline
        end = Fraction(round(seconds * 10), 10)
        loop = timeline.loop
        if loop is not None:
            loop = (loop[0], min(loop[1], end)) if loop[0] < end else None
        self._set(replace(timeline, end=end, loop=loop), "Length of the timeline", final)

    def _set_snap(self, snap: Snap) -> None:
        self._set(replace(self._session.timeline, snap=snap), "Snap")

    def _set_bpm(self, bpm: float, final: bool) -> None:
        """Set the tempo. Steps of one gesture start from the timeline before it: a slow one on the way adds no room."""
        steps = self._tempo_steps
        if self._session.timeline not in steps:
            steps[:] = [self._session.timeline]
        try:
            steps.append(with_grid(steps[0], replace(steps[0].grid, bpm=Fraction(round(bpm * 10), 10))))
        except TimelineError as error:
            if final:
                self.refused.emit(error.sentence)
        changed, is_edit = steps[-1], len(steps) > 1
        if final:
            steps.clear()
        if is_edit:
            self._set(changed, "Tempo", final)
        if final:
            self._show_head()

    def _set_fps(self, text: str) -> None:
        self._set(replace(self._session.timeline, fps=fps_of(text)), "Frames per second")

    def _to_start(self) -> None:
        self.sought.emit(self._session.timeline.playing_range[0], True)

    @Slot()
    def close_loop(self) -> None:
        """Give each track at the end of what plays the value that it has at the start."""
        self._try(lambda: with_loop_closed(self._session.timeline, self._session), "Close the loop")

    @Slot(str, object)
    def _add_key(self, path: str, t: Fraction) -> None:
        """Make a key at a time that moves nothing; of a whole picture, the present one."""
        timeline = self._session.timeline
        if path == WALK:
            return
        if path == STATE:
            self._try(lambda: with_state(timeline, self._session, t), "Keep picture here")
        else:
            self._try(lambda: with_key(timeline, path, t, between_value(timeline, path, self._session, t)), "Add key")

    def add_track(self, path: str) -> None:
        """Add a track: of a walk with its usual period, of a parameter with a key at the playhead."""
        timeline = self._session.timeline
        if path == WALK:
            self._try(lambda: with_track(timeline, Track(WALK, period=timeline.end)), "Add walk")
        elif path == NOISE_LOOP:
            phase = self._session.noise.phase
            self._try(lambda: with_noise_loop(timeline, phase, self._time), "Add noise loop")
        elif path == STATE:
            self._try(lambda: with_state(timeline, self._session, self._time), "Keep picture here")
        elif path == "pinned_blend":
            self._try(lambda: with_parameter_key(timeline, self._session, path, self._time), "Add track")
        else:
            self._add_key(path, self._time)

    def _try(self, change: object, label: str) -> None:
        try:
            self._set(change(), label)  # type: ignore[operator]
        except LoomError as error:
            self.refused.emit(error.sentence)

    # -- menus ------------------------------------------------------------------------------------------------------

    def _add_track(self) -> None:
        if self._facts is not None:
            menu = add_track_menu(self, self._session, self._facts, self._directions, self.add_track)
            menu.addSeparator()
            menu.addAction("Add sound…").triggered.connect(self.choose_sounds)
            menu.popup(self.add_button.mapToGlobal(QPoint(0, self.add_button.height())))

    @Slot(str, QPoint)
    def _open_track_menu(self, path: str, place: QPoint) -> None:
        menu = track_menu(self.view, path, self._session)
        menu.addSeparator()
        names = [sound.name for sound in self._session.timeline.sounds]
        add_drive_menu(menu, path, names, self.drive_requested.emit)
        menu.popup(place)

    @Slot(str, QPoint)
    def _open_sound_menu(self, name: str, place: QPoint) -> None:
        menu = self.sound_menu(name)
        if menu is not None:
            menu.popup(place)

    def sound_menu(self, name: str) -> QMenu | None:
        """Return the menu of a sound; None if no sound has that name."""
        sound = next((item for item in self._session.timeline.sounds if item.name == name), None)
        if sound is None or self._facts is None:
            return None
        sliders = [] if self._directions is None else [f"slider/{name}" for name in self._directions.names[:32]]
        own = [row.path for row in parameters_of(self._session, self._facts) if not row.path.startswith("noise.layer")]
        return sound_menu(
            self,
            sound,
            self._session,
            dict.fromkeys((*own, "position.x", "position.y", *sliders)),
            change=self.sound_changed.emit,
            edit=self.edited.emit,
            drive=self.drive_requested.emit,
            use_tempo=self.tempo_wanted.emit,
            locate=self.locate_requested.emit,
            remove=self.sound_removed.emit,
        )

    def choose_sounds(self) -> None:
        """Choose sound files for the timeline."""
        choose_sounds(self, self.sounds_chosen.emit)

    def _fps_menu(self) -> QMenu:
        menu = QMenu(self)
        for text in FPS_CHOICES:
            menu.addAction(f"{text} fps").triggered.connect(lambda _=False, text=text: self._set_fps(text))
        return menu


def fps_of(text: str) -> Fraction:
    """Return frames a second of a text: 23.976 and 29.97 are broadcast rates."""
    return {"23.976": Fraction(24000, 1001), "29.97": Fraction(30000, 1001)}.get(text) or Fraction(text)


def _fps_text(fps: Fraction) -> str:
    return f"{float(fps):.3f}".rstrip("0").rstrip(".")
