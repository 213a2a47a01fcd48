"""Connects the panel of controllers to the inputs and to what they move."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, QTimer, Slot

from explorer_app.controller import Editing, InputKind, InputState, LiveControl, Sounds
from explorer_app.inputs.sampler import Level
from explorer_app.session.patches import Patch
from explorer_app.window.docks.dock import Dock
from explorer_app.window.shell.dialogs import Dialogs

if TYPE_CHECKING:
    from explorer_app.window.controllers.controllers_panel import ControllersPanel

_LEVELS_MS = 50
"""Bars follow twenty times a second: the picture has priority."""

_FILTER = "Presets of controllers (*.patches.json)"
_KINDS: tuple[InputKind, ...] = ("midi", "gamepad", "input", "osc", "feedback")


class ControllersLink(QObject):
    """Shows inputs and levels; passes switches, addresses, learning and presets on."""

    def __init__(
        self,
        panel: ControllersPanel,
        dock: Dock,
        live: LiveControl,
        sounds: Sounds,
        editing: Editing,
        dialogs: Dialogs,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._panel, self._dock, self._live, self._dialogs = panel, dock, live, dialogs
        self._sounds, self._editing = sounds, editing
        self._levels = QTimer(self, singleShot=True, interval=_LEVELS_MS)
        self._levels.timeout.connect(self._show_levels)
        panel.level_of = self._level
        panel.inputs.switched.connect(self._switch)
        panel.inputs.address_entered.connect(self._set_address)
        panel.learn_requested.connect(live.learn_again)
        panel.learning_cancelled.connect(live.stop_learning)
        panel.take_requested.connect(live.take_values)
        panel.refused.connect(live.refuse)
        panel.save_requested.connect(self._save)
        panel.open_requested.connect(self._open)
        live.inputs.changed.connect(self._show_inputs)
        live.learning_changed.connect(self._show_learning)
        live.sampled.connect(self._sampled)
        editing.session_changed.connect(self._session_changed)
        sounds.changed.connect(self._session_changed)
        self._show_inputs()
        self._show_learning()

    def _states(self) -> dict[InputKind, InputState]:
        return {kind: self._live.inputs.state(kind) for kind in _KINDS}

    @Slot()
    def _show_inputs(self) -> None:
        self._panel.inputs.show_states(self._states())

    @Slot()
    def _show_learning(self) -> None:
        self._panel.show_learning(self._live.learning)

    @Slot()
    def _sampled(self) -> None:
        if self._dock.is_seen and not self._levels.isActive():
            self._levels.start()

    @Slot()
    def _session_changed(self) -> None:
        """Follow the playhead through the sounds."""
        if any(patch.is_of_sound for patch in self._editing.session.patches):
            self._sampled()

    def _level(self, patch: Patch) -> Level:
        return Level(self._sounds.level(patch)) if patch.is_of_sound else self._live.level(patch)

    @Slot()
    def _show_levels(self) -> None:
        self._panel.show_levels()
        self._panel.inputs.show_activity(self._states())

    @Slot(str, bool)
    def _switch(self, kind: str, on: bool) -> None:
        self._live.inputs.set_on(cast("InputKind", kind), on)

    @Slot(str, str)
    def _set_address(self, kind: str, address: str) -> None:
        self._live.inputs.set_address(cast("InputKind", kind), address)

    @Slot()
    def _save(self) -> None:
        self._dialogs.choose_target(
            "preset", "Save preset", _FILTER, "controllers.patches.json", self._live.save_preset
        )

    @Slot()
    def _open(self) -> None:
        self._dialogs.choose_file("preset", "Open preset", _FILTER, self._live.load_preset)
