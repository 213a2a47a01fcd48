"""Connects the timeline's panel to the playhead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPointF, Slot

from explorer_app.controller import Engine, Playback
from explorer_app.messages import MessageLog
from explorer_app.session.timeline.edits import snapped
from explorer_app.window.library.kept_drop import KeptDrop

if TYPE_CHECKING:
    from explorer_app.window.timeline.timeline_panel import TimelinePanel


class TimelineLink(QObject):
    """Passes the playhead to the panel, and the panel's requests back."""

    def __init__(
        self, panel: TimelinePanel, playback: Playback, engine: Engine, messages: MessageLog, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._panel = panel
        self._playback = playback
        panel.sought.connect(playback.seek)
        panel.play_toggled.connect(playback.set_playing)
        panel.record_toggled.connect(playback.set_recording)
        panel.armed.connect(playback.set_armed)
        panel.keep_requested.connect(playback.keep_picture)
        panel.refused.connect(messages.warning)
        KeptDrop(panel.view.viewport(), self._take_kept)
        playback.moved.connect(self._show_time)
        playback.playing_changed.connect(self._show_playing)
        engine.model_changed.connect(panel.view.forget_pictures)
        self._show_time()
        self._show_playing()

    def _take_kept(self, numbers: tuple[int, ...], place: QPointF) -> None:
        """Make keys of kept pictures from the time on where they were dropped."""
        view = self._panel.view
        self._playback.keep_entries(numbers, snapped(view.timeline, view.axis.t(place.x())))

    @Slot()
    def _show_time(self) -> None:
        self._panel.show_time(self._playback.time)

    @Slot()
    def _show_playing(self) -> None:
        playback = self._playback
        self._panel.show_playing(playback.is_playing, playback.is_recording, playback.armed, playback.recorded)
