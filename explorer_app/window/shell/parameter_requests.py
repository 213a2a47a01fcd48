"""Handles the events that the menus of controls post to their window: animate, learn, forget or drive a parameter."""

from __future__ import annotations

from PySide6.QtCore import QEvent

from explorer_app.controller import Editing, LiveControl, Playback, Sounds
from explorer_app.window.controls.parameter_menu import (
    AnimateRequest,
    DriveRequest,
    ForgetRequest,
    LearnRequest,
    MappingQuery,
    SoundQuery,
)


class ParameterRequests:
    """Passes requests on, and answers queries about a parameter."""

    def __init__(self, editing: Editing, playback: Playback, live: LiveControl, sounds: Sounds) -> None:
        self._editing = editing
        self._playback = playback
        self._live = live
        self._sounds = sounds

    def handle(self, event: QEvent) -> bool:
        """Carry out an event's request; return whether it is such a request."""
        match event:
            case AnimateRequest():
                self._playback.animate(event.path)
            case LearnRequest():
                self._live.learn(event.path, event.low, event.high)
            case ForgetRequest():
                self._live.forget(event.path)
            case DriveRequest():
                self._sounds.drive(event.patch)
            case SoundQuery():
                event.sounds = tuple(sound.name for sound in self._editing.session.timeline.sounds)
                event.hears = self._live.inputs.state("input").is_on
            case MappingQuery():
                event.is_mapped = self._live.is_mapped(event.path)
            case _:
                return False
        return True
