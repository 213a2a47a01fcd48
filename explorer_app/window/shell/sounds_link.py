"""Connects the timeline panel's sounds to their reading and playing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

from explorer_app.controller import Sounds
from explorer_app.settings import Settings

_VOLUME = "sound.volume"

if TYPE_CHECKING:
    from explorer_app.window.timeline.timeline_panel import TimelinePanel


class SoundsLink(QObject):
    """Passes waveforms to the panel, and requests about sounds back."""

    def __init__(self, panel: TimelinePanel, sounds: Sounds, settings: Settings, parent: QObject) -> None:
        super().__init__(parent)
        self._panel = panel
        self._sounds = sounds
        self._settings = settings
        percent = settings.choice(_VOLUME, "100")
        volume = min(int(percent), 100) / 100.0 if percent.isdecimal() else 1.0
        panel.show_volume(volume)
        sounds.set_volume(volume)
        panel.volume_changed.connect(self._set_volume)
        panel.lanes.serve(sounds.analysis, sounds.is_missing)
        panel.sounds_chosen.connect(sounds.add)
        panel.sound_changed.connect(sounds.change)
        panel.sound_removed.connect(sounds.remove)
        panel.tempo_wanted.connect(sounds.use_tempo)
        panel.drive_requested.connect(sounds.drive)
        panel.locate_requested.connect(self._locate)
        sounds.changed.connect(panel.lanes.update)

    @Slot(float, bool)
    def _set_volume(self, volume: float, final: bool) -> None:
        self._sounds.set_volume(volume)
        if final:
            self._settings.choose(_VOLUME, str(round(100 * volume)))

    @Slot(str)
    def _locate(self, name: str) -> None:
        from explorer_app.window.timeline.sound_menu import choose_sounds

        choose_sounds(self._panel, partial(self._located, name), many=False)

    def _located(self, name: str, paths: list[Path]) -> None:
        if paths:
            self._sounds.locate(name, paths[0])
