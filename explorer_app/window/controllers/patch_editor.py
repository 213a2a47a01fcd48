"""The settings of the selected patch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QMenu, QPushButton, QWidget

from explorer_app.inputs.sources import is_live
from explorer_app.session.patches import MAX_CURVE, MAX_FOLLOW_S, Patch
from explorer_app.window.controls.drive_menu import add_sound_sources
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import below
from explorer_app.window.controls.switch import Switch
from explorer_app.window.look import theme

_MODES = (
    ("set", "Set", "The source's value replaces the parameter's."),
    ("add", "Add", "The source's value is added to the parameter's."),
)
_MOST = 1e6


class PatchEditor(QWidget):
    """Range, mode, curve, smoothing, pick-up, and whether the patch acts.

    Signals
    -------
    changed(object, bool)
        The patch with another setting; True for the last one of a gesture.
    learn_requested()
        Another control is to take the place of the source.
    remove_requested()
        The patch is to go.
    """

    changed = Signal(object, bool)
    learn_requested = Signal()
    remove_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Settings of the patch")
        self._patch: Patch | None = None
        self._sounds: tuple[str, ...] = ()
        self.low = self._number("Value at the source's minimum", -_MOST, _MOST, "low")
        self.high = self._number("Value at the source's maximum", -_MOST, _MOST, "high")
        self.curve = self._number(
            "Curve", -MAX_CURVE, MAX_CURVE, "curve", tip="above 0 the low end gets finer control, below 0 the high end"
        )
        self.attack = self._number("Attack in seconds", 0.0, MAX_FOLLOW_S, "attack_s", tip="smooths a rising source")
        self.release = self._number("Release in seconds", 0.0, MAX_FOLLOW_S, "release_s", tip="smooths a falling one")
        self.mode = SegmentedControl(_MODES, "Mode")
        self.mode.chosen.connect(lambda mode: self._change(True, mode=mode))
        self.on = Switch("On")
        self.on.setToolTip("Turn this patch on or off.")
        self.on.clicked.connect(lambda on: self._change(True, is_on=on))
        self.pick_up = Switch("Pick up")
        self.pick_up.setToolTip("Wait until the control passes the parameter's value, so that nothing jumps.")
        self.pick_up.clicked.connect(lambda on: self._change(True, is_picked_up=on))
        self.source = QPushButton("Source…")
        self.source.setToolTip("Replace the source with a sound of the timeline or the microphone.")
        self.source.clicked.connect(lambda _on: self.open_sources())
        self.learn = QPushButton("Learn")
        self.learn.setToolTip("Replace this control: move the new one.")
        self.learn.clicked.connect(lambda _on: self.learn_requested.emit())
        self.remove = QPushButton("Remove")
        self.remove.setToolTip("Remove this patch (Delete in the list).")
        self.remove.clicked.connect(lambda _on: self.remove_requested.emit())
        self._build()

    def _number(self, name: str, low: float, high: float, field: str, tip: str = "") -> NumberField:
        number = NumberField(
            low, high, decimals=2, step=0.05, widest="−00.00", reset=0.0 if low in (0.0, -high) else None
        )
        number.setAccessibleName(name)
        number.setToolTip(f"{name}{': ' if tip else ''}{tip}.")
        number.entered.connect(lambda value, final: self._change(final, **{field: value}))
        return number

    def _build(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, theme.px(4), 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(6)
        # As narrow as the panel without a selection: a click on a row must not widen the dock.
        lines = (
            self._line(_dim("Range"), self.low, _dim("to"), self.high, None, self.mode),
            self._line(_dim("Curve"), self.curve, None, self.on, self.pick_up),
            self._line(_dim("Attack"), self.attack, None, _dim("Release"), self.release),
            self._line(self.source, None, self.learn, self.remove),
        )
        for row, line in enumerate(lines):
            grid.addLayout(line, row, 0)

    @staticmethod
    def _line(*parts: QWidget | None) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(6)
        for part in parts:
            if part is None:
                line.addStretch(1)
            else:
                line.addWidget(part)
        return line

    def open_sources(self) -> QMenu | None:
        """Open the menu of what can be heard, and return it; None without a patch."""
        patch = self._patch
        if patch is None:
            return None
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

        def take(heard: Patch) -> None:
            self._change(True, source=heard.source)

        add_sound_sources(menu, patch.parameter, self._sounds, take, hears=True)
        menu.popup(below(self.source))
        return menu

    def show_patch(self, patch: Patch, sounds: tuple[str, ...] = ()) -> None:
        """Show a patch without emitting; `sounds` are the names of the timeline's sounds."""
        self._patch, self._sounds = patch, sounds
        for number, value in (
            (self.low, patch.low),
            (self.high, patch.high),
            (self.curve, patch.curve),
            (self.attack, patch.attack_s),
            (self.release, patch.release_s),
        ):
            number.show_number(value)
        self.mode.show_choice(patch.mode)
        self.on.setChecked(patch.is_on)
        self.pick_up.setChecked(patch.is_picked_up)
        self.pick_up.setEnabled(is_live(patch.source) and patch.mode == "set")
        self.learn.setEnabled(is_live(patch.source))

    def _change(self, final: bool, **changes: Any) -> None:
        if self._patch is not None:
            self._patch = replace(self._patch, **changes)
            self.changed.emit(self._patch, final)


def _dim(text: str) -> QLabel:
    label = QLabel(text)
    theme.set_role(label, "dim")
    return label
