"""The switches of inputs: MIDI, gamepads, a microphone, OSC, and sending back; each with its address or ports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QLineEdit, QSizePolicy, QWidget

from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.switch import Switch
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.look import theme

if TYPE_CHECKING:
    from explorer_app.controller import InputKind, InputState

_GLOW_MS = 150
"""Time for which the lamp is lit after a message."""


class ActivityLamp(QWidget):
    """A small lamp that is lit while messages arrive."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._count = 0
        self._glow = QTimer(self, singleShot=True, interval=_GLOW_MS)
        self._glow.timeout.connect(self.update)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.setToolTip(f"Lights up while {name} arrives.")

    @property
    def is_lit(self) -> bool:
        """Whether a message has just arrived."""
        return self._glow.isActive()

    def show_count(self, count: int) -> None:
        """Shine if more messages have arrived than were shown."""
        if count > self._count:
            self._glow.start()
            self.update()
        self._count = count

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        """Return the size of the lamp."""
        return QSize(theme.px(12), theme.px(12))

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the lamp."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(QColor(tokens.good if self.is_lit else tokens.edge), 1.5))
        painter.setBrush(QColor(tokens.good) if self.is_lit else Qt.BrushStyle.NoBrush)
        painter.drawEllipse(QPointF(self.rect().center()) + QPointF(0.5, 0.5), theme.px(3.5), theme.px(3.5))
        painter.end()


class AddressField(QLineEdit):
    """A field for an address; Escape brings back the address that is used."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._used = ""
        self.setAccessibleName(name)
        self.setMaxLength(120)

    def show_used(self, address: str) -> None:
        """Show the address that is used; one that is being typed stays."""
        self._used = address
        if not (self.hasFocus() and self.isModified()):
            self.setText(address)

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802 - Qt's name
        """Let Escape discard what was typed."""
        if event.key() == Qt.Key.Key_Escape and self.isModified():
            self.setText(self._used)
            self.selectAll()
        else:
            super().keyPressEvent(event)


class InputRows(QWidget):
    """One row an input.

    Signals
    -------
    switched(str, bool)
        An input was switched on or off.
    address_entered(str, str)
        "host:port" was typed for "osc" or "feedback".
    """

    switched = Signal(str, bool)
    address_entered = Signal(str, str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.switches: dict[InputKind, Switch] = {}
        self.lamps: dict[InputKind, ActivityLamp] = {}
        self.fields: dict[InputKind, AddressField] = {}
        self.ports: dict[InputKind, HintLabel] = {"midi": HintLabel(""), "gamepad": HintLabel("")}
        self.problem = WrappedLabel()
        self.problem.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        theme.set_role(self.problem, "warn")
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        self._add(grid, 0, "midi", "MIDI", "Listen to every MIDI controller that is plugged in.", self.ports["midi"])
        self._add(grid, 1, "gamepad", "Gamepad", "Follow the sticks and buttons of gamepads.", self.ports["gamepad"])
        listens = "Let the loudness, bands and onsets of a microphone or line input move parameters."
        self._add(grid, 2, "input", "Microphone", listens, HintLabel("right-click a parameter to choose it"))
        self._add(grid, 3, "osc", "OSC", "Receive OSC messages over UDP.", self._field("osc", "Address to listen on"))
        self._add(
            grid,
            4,
            "feedback",
            "Send back",
            "Send values to motor faders and OSC apps, so that they follow the picture.",
            self._field("feedback", "Address of the OSC app"),
        )
        grid.addWidget(self.problem, 5, 0, 1, 3)

    def _add(self, grid: QGridLayout, row: int, kind: InputKind, text: str, tip: str, beside: QWidget) -> None:
        switch = self.switches[kind] = Switch(text)
        switch.setToolTip(tip)
        switch.clicked.connect(lambda on: self.switched.emit(kind, on))
        grid.setRowMinimumHeight(row, theme.px(theme.ROW))
        grid.addWidget(switch, row, 0)
        grid.addWidget(beside, row, 1)
        if kind != "feedback":
            lamp = self.lamps[kind] = ActivityLamp(text)
            grid.addWidget(lamp, row, 2)

    def _field(self, kind: InputKind, name: str) -> AddressField:
        field = self.fields[kind] = AddressField(name)
        field.setToolTip(
            f"{name}, as 127.0.0.1:9000; 0.0.0.0:9000 listens to other machines too."
            if kind == "osc"
            else f"{name}, as 192.168.0.20:9001."
        )
        field.editingFinished.connect(lambda: self._entered(kind))
        return field

    def _entered(self, kind: InputKind) -> None:
        field = self.fields[kind]
        if field.isModified():
            field.setModified(False)
            self.address_entered.emit(kind, field.text())

    def show_states(self, states: dict[InputKind, InputState]) -> None:
        """Show the state of the inputs."""
        for kind, state in states.items():
            self.switches[kind].setChecked(state.is_on)
            if kind in self.fields:
                self.fields[kind].show_used(state.address)
        for kind, label in self.ports.items():
            names = ", ".join(name.split(":")[0] for name in states[kind].ports)
            label.show_name(names or ("none is plugged in" if states[kind].is_on else ""))
        problems = dict.fromkeys(state.problem for state in states.values() if state.problem)
        self.problem.setText("\n".join(problems))
        self.problem.setVisible(bool(problems))
        self.show_activity(states)

    def show_activity(self, states: dict[InputKind, InputState]) -> None:
        """Let the lamps of inputs shine that have received something."""
        for kind, lamp in self.lamps.items():
            lamp.show_count(states[kind].received)
