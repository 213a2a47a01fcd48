"""Which live inputs and outputs are open: switches, addresses, controllers that come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal, Slot

from explorer_app.audio.capture import AudioInput, InputDevice, default_input
from explorer_app.inputs.board import ValueBoard
from explorer_app.inputs.errors import InputError
from explorer_app.inputs.feedback import Feedback, MidiOutPorts, MidiOutput, OscOutput, Sends
from explorer_app.inputs.gamepad_input import GamepadInput, Pads
from explorer_app.inputs.midi_input import MidiInput, MidiPorts, PortEvent
from explorer_app.inputs.osc_input import DEFAULT_HOST, DEFAULT_PORT, OscInput
from explorer_app.messages import MessageLog
from explorer_app.session.patches import INPUT
from explorer_app.settings import Settings
from gpu_backend import LoomError, dataclass

InputKind = Literal["midi", "gamepad", "input", "osc", "feedback"]

KINDS: tuple[InputKind, ...] = ("midi", "gamepad", "input", "osc", "feedback")
"""Inputs that are shown and remembered, in this order; "input" is a microphone or line input."""

INPUT_NAMES: Mapping[InputKind, str] = {"midi": "MIDI", "gamepad": "Gamepad", "input": "Microphone", "osc": "OSC"}
"""What sources come from, by the beginning of their names -> as the panel calls it."""

DEFAULT_ADDRESS = f"{DEFAULT_HOST}:{DEFAULT_PORT}"
FEEDBACK_ADDRESS = f"{DEFAULT_HOST}:{DEFAULT_PORT + 1}"


@dataclass(frozen=True, slots=True)
class InputState:
    """The state of an input or output.

    Attributes
    ----------
    is_on
        Whether it is open.
    address
        "127.0.0.1:9000" of OSC in and out; empty otherwise.
    ports
        Names of the controllers that are plugged in, of MIDI and of gamepads.
    problem
        Why it could not be opened; empty if it could.
    received
        Messages since it was opened.
    dropped
        Packets that could not be understood.
    """

    is_on: bool = False
    address: str = ""
    ports: tuple[str, ...] = ()
    problem: str = ""
    received: int = 0
    dropped: int = 0


class LiveInputs(QObject):
    """Opens and closes live inputs; the switches are remembered in the preferences.

    Parameters
    ----------
    midi_ports, midi_out_ports
        The system's MIDI ports; None for those of rtmidi2.
    make_pads
        Makes the system's gamepads; None for SDL's.
    open_microphone
        Opens a sound input, by default the system's.

    Attributes
    ----------
    board
        The newest values of all inputs.
    """

    changed = Signal()
    """What `state` returns, counters apart."""
    _port_changed = Signal(object)

    def __init__(
        self,
        settings: Settings,
        messages: MessageLog,
        *,
        midi_ports: Callable[[], MidiPorts] | None = None,
        midi_out_ports: Callable[[], MidiOutPorts] | None = None,
        make_pads: Callable[[], Pads] | None = None,
        open_microphone: Callable[[], InputDevice] = default_input,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self.board = ValueBoard()
        self._settings = settings
        self._messages = messages
        self._midi_ports = midi_ports
        self._midi_out_ports = midi_out_ports
        self._make_pads = make_pads
        self._open_microphone = open_microphone
        self._microphone: AudioInput | None = None
        self._osc: OscInput | None = None
        self._midi: MidiInput | None = None
        self._gamepads: GamepadInput | None = None
        self._feedback: Feedback | None = None
        self._problems: dict[InputKind, str] = {}
        self._known_ports: set[str] = set()
        """Ports that were open since the start: one that appears first is no news, one that returns is."""
        self._port_changed.connect(self._take_port, Qt.ConnectionType.QueuedConnection)

    @property
    def is_any_on(self) -> bool:
        """Whether an input or output is open."""
        return any(
            item is not None for item in (self._osc, self._midi, self._gamepads, self._microphone, self._feedback)
        )

    @property
    def can_receive(self) -> bool:
        """Whether an input is open."""
        return any(item is not None for item in (self._osc, self._midi, self._gamepads))

    def state(self, kind: InputKind) -> InputState:
        """Return the state of an input or output."""
        problem = self._problems.get(kind, "")
        if kind == "input":
            microphone = self._microphone
            return InputState(
                microphone is not None, problem=problem, received=microphone.received if microphone else 0
            )
        if kind in ("midi", "gamepad"):
            plugged = self._midi if kind == "midi" else self._gamepads
            if plugged is None:
                return InputState(problem=problem)
            return InputState(True, "", plugged.open_ports, problem, plugged.received, plugged.dropped)
        address = self.address(kind)
        if kind == "feedback":
            return InputState(self._feedback is not None, address, problem=problem)
        osc = self._osc
        if osc is None:
            return InputState(False, address, problem=problem)
        return InputState(True, address, (), problem, osc.received, osc.dropped)

    def address(self, kind: InputKind) -> str:
        """Return "host:port" of OSC in or out."""
        default = FEEDBACK_ADDRESS if kind == "feedback" else DEFAULT_ADDRESS
        return self._settings.choice(f"live.{kind}-address", default)

    def restore(self) -> None:
        """Open what was open when the program ended; what cannot be opened this time is tried again the next time."""
        for kind in KINDS:
            if self._settings.choice(f"live.{kind}") == "on":
                self.set_on(kind, True)
                self._settings.choose(f"live.{kind}", "on")

    def set_on(self, kind: InputKind, on: bool) -> bool:
        """Open or close an input or output; return whether it is open. A refusal is in its state and in a message."""
        self._close(kind)
        self._problems.pop(kind, None)
        if on:
            self._try_on(kind)
            if kind in self._problems:
                self._messages.warning(self._problems[kind])
        is_on = self.state(kind).is_on
        self._settings.choose(f"live.{kind}", "on" if is_on else "off")
        self.changed.emit()
        return is_on

    def set_address(self, kind: InputKind, address: str) -> bool:
        """Set "host:port" of OSC in or out, and open it there if it was open; return whether the address was taken."""
        try:
            host, port = parsed_address(address)
        except InputError as error:
            self._messages.warning(error.sentence)
            self.changed.emit()
            return False
        self._settings.choose(f"live.{kind}-address", f"{host}:{port}")
        if self.state(kind).is_on or self._problems.get(kind):
            self.set_on(kind, True)
        else:
            self.changed.emit()
        return True

    def open_available(self) -> bool:
        """Open every input if none is open, since a control is to be learned; return whether one is open.

        An input that this system does not have is said only if there is none at all.
        """
        if self.can_receive:
            return True
        for kind in ("midi", "gamepad", "osc"):
            self._try_on(kind)
        if not self.can_receive:
            for sentence in dict.fromkeys(self._problems.values()):
                self._messages.warning(sentence)
        return self.can_receive

    def show(self, values: dict[str, float]) -> None:
        """Send values back to the controllers, source -> 0..1, if that is switched on."""
        if self._feedback is not None:
            self._feedback.show(values)

    @property
    def sends(self) -> bool:
        """Whether values are sent back."""
        return self._feedback is not None

    def close(self) -> None:
        """Close everything; what was on stays remembered. May be called twice."""
        for kind in KINDS:
            self._close(kind)

    # -- inside -----------------------------------------------------------------------------------------------------

    def _try_on(self, kind: InputKind) -> None:
        """Open an input; if it is refused, keep the reason."""
        self._problems.pop(kind, None)
        try:
            self._open(kind)
        except LoomError as error:
            self._problems[kind] = error.sentence
        self._settings.choose(f"live.{kind}", "on" if self.state(kind).is_on else "off")
        self.changed.emit()

    def _open(self, kind: InputKind) -> None:
        match kind:
            case "osc":
                self._osc = OscInput(self.board, *parsed_address(self.address("osc")))
            case "midi":
                ports = None if self._midi_ports is None else self._midi_ports()
                self._midi = MidiInput(self.board, self._port_changed.emit, ports)
            case "gamepad":
                self._gamepads = GamepadInput(self.board, self._port_changed.emit, self._make_pads)
            case "input":
                self._microphone = AudioInput(self.board.put_all, self._open_microphone)
            case "feedback":
                self._feedback = Feedback(self._outputs())

    def _outputs(self) -> list[Sends]:
        """Return where values are sent: to OSC always, to MIDI where the system has it."""
        outputs: list[Sends] = [OscOutput(*parsed_address(self.address("feedback")))]
        try:
            outputs.append(MidiOutput(None if self._midi_out_ports is None else self._midi_out_ports()))
        except InputError as error:
            self._messages.note(error.sentence)
        return outputs

    def _close(self, kind: InputKind) -> None:
        if kind == "osc" and self._osc is not None:
            self._osc.close()
            self._osc = None
            self.board.forget("osc/")
        elif kind == "midi" and self._midi is not None:
            self._midi.close()
            self._midi = None
            self.board.forget("midi/")
        elif kind == "gamepad" and self._gamepads is not None:
            self._gamepads.close()
            self._gamepads = None
            self.board.forget("gamepad/")
        elif kind == "input" and self._microphone is not None:
            self._microphone.close()
            self._microphone = None
            self.board.forget(INPUT)
        elif kind == "feedback" and self._feedback is not None:
            self._feedback.close()
            self._feedback = None

    @Slot(object)
    def _take_port(self, event: PortEvent) -> None:
        if self._midi is None and self._gamepads is None:
            return  # the event was sent before its input was switched off
        if event.error:
            self._messages.warning(
                f"{event.name} cannot be opened ({event.error}); another program may use it. Close that, and plug the "
                "controller in again."
            )
        elif not event.is_there:
            self._messages.warning(
                f"{event.name} was unplugged. What it controls keeps its values, and follows it when it is back."
            )
        elif event.name in self._known_ports:
            self._messages.info(f"{event.name} is back.")
        if event.is_there:
            self._known_ports.add(event.name)
            if self._feedback is not None:
                self._feedback.resend_all()
        self.changed.emit()


def parsed_address(text: str) -> tuple[str, int]:
    """Return host and port of "host:port"; a port without a host means this machine.

    Raises
    ------
    InputError
        If it is neither.
    """
    host, _, port = text.strip().rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65_536):
        raise InputError(
            f"An OSC address is a host and a port between 1 and 65535, as {DEFAULT_ADDRESS}, not {text!r}."
        )
    return host.strip("[]") or DEFAULT_HOST, int(port)
