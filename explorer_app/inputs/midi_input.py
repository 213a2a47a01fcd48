"""MIDI: every port of the system, as long as it is plugged in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from explorer_app.inputs.board import ValueBoard
from explorer_app.inputs.errors import InputError, missing_extra, reason_of
from explorer_app.inputs.rtmidi_ports import RtMidiInputs
from explorer_app.inputs.sources import midi_source, port_names, stale_ports
from gpu_backend import dataclass

LOOK_S = 1.0
"""How often ports are listed."""

_OWN_PREFIXES = ("Midi Through", "RtMidi", "Latent Loom")
"""Ports that loop back what is sent, our own among them."""


class OpenPort(Protocol):
    """A port that delivers messages until it is closed."""

    def close(self) -> None:
        """Stop delivering. May be called twice."""
        ...


class MidiPorts(Protocol):
    """The MIDI input ports of a system."""

    def names(self) -> Sequence[str]:
        """Return the names of the ports that are plugged in.

        Raises
        ------
        OSError, RuntimeError
            If the system has no MIDI at the moment.
        """
        ...

    def open(self, name: str, receive: Callable[[Sequence[int]], None]) -> OpenPort:
        """Open a port by its name; `receive` gets the bytes of each message, on a thread of the system.

        Raises
        ------
        OSError, RuntimeError
            If it cannot be opened.
        """
        ...


@dataclass(frozen=True, slots=True)
class PortEvent:
    """A port was plugged in, unplugged, or could not be opened."""

    name: str
    is_there: bool
    error: str = ""


class MidiInput:
    """Opens every port that there is, and follows what is plugged and unplugged.

    Parameters
    ----------
    board
        Receives the values.
    tell
        Called with each `PortEvent`, on this input's thread; also for ports that exist at the start.
    ports
        The system's ports; None for those of rtmidi2.

    Raises
    ------
    InputError
        If rtmidi2 or mido is missing, or the system has no MIDI.
    """

    def __init__(
        self,
        board: ValueBoard,
        tell: Callable[[PortEvent], object] = lambda event: None,
        ports: MidiPorts | None = None,
        look_s: float = LOOK_S,
    ) -> None:
        try:
            from mido.parser import Parser
        except ImportError as error:
            raise missing_extra("MIDI") from error
        self._make_parser: Callable[[], Any] = Parser
        self._board = board
        self._tell = tell
        self._ports = ports or RtMidiInputs()
        self._look_s = look_s
        self._there: dict[str, str] = {}
        """Ports that are plugged in: their lasting names -> those of the system."""
        self._open: dict[str, OpenPort] = {}
        self._refused: set[str] = set()
        self._stopped = threading.Event()
        self.received = 0
        """Messages that were understood."""
        self.dropped = 0
        """Messages that were not, or that name no control."""
        try:
            self._ports.names()
        except (OSError, RuntimeError) as error:
            raise InputError(f"This system has no MIDI ({reason_of(error)}).") from error
        self._thread = threading.Thread(target=self._run, name="midi-ports", daemon=True)
        self._thread.start()

    @property
    def open_ports(self) -> tuple[str, ...]:
        """Names of the ports that are open."""
        return tuple(self._open)

    def close(self) -> None:
        """Close every port. May be called twice."""
        self._stopped.set()
        self._thread.join()
        for port in self._open.values():
            port.close()
        self._open.clear()

    def look(self) -> None:
        """Open new ports, close removed ones. Called on this input's thread."""
        try:
            names = [name for name in self._ports.names() if not name.startswith(_OWN_PREFIXES)]
        except (OSError, RuntimeError):
            names = []
        before, there = self._there, port_names(names, self._there)
        self._there = there
        gone = stale_ports(before, there)
        again = {name for name in gone if name in self._open and there.get(name) == before[name]}  # no news for a user
        for name in [name for name in self._open if name in gone]:
            self._open.pop(name).close()
            if name not in again:
                self._tell(PortEvent(name, is_there=False))
        self._refused -= gone
        for name in [name for name in there if name not in self._open and name not in self._refused]:
            try:
                self._open[name] = self._ports.open(there[name], self._receiver(name))
            except (OSError, RuntimeError) as error:
                self._refused.add(name)  # until it is plugged in again
                self._tell(PortEvent(name, is_there=False, error=reason_of(error)))
            else:
                if name not in again:
                    self._tell(PortEvent(name, is_there=True))

    def _run(self) -> None:
        while True:
            self.look()
            if self._stopped.wait(self._look_s):
                return

    def _receiver(self, port: str) -> Callable[[Sequence[int]], None]:
        """Return what takes the bytes of a port; a message may come in pieces."""
        parser = self._make_parser()

        def receive(data: Sequence[int]) -> None:
            try:
                parser.feed(data)
            except (TypeError, ValueError):
                self.dropped += 1
                return
            for message in parser:
                found = _source_value(port, message)
                if found is None:
                    self.dropped += 1
                else:
                    self.received += 1
                    self._board.put(*found)

        return receive


def _source_value(port: str, message: Any) -> tuple[str, float] | None:
    """Return the source and the value, 0..1, of a mido message; None for one that is no control."""
    match message.type:
        case "control_change":
            return midi_source(port, "cc", message.channel + 1, message.control), message.value / 127
        case "note_on":
            return midi_source(port, "note", message.channel + 1, message.note), message.velocity / 127
        case "note_off":
            return midi_source(port, "note", message.channel + 1, message.note), 0.0
        case "pitchwheel":
            # 8192 steps below the middle and 8191 above: each side has its own unit, so that rest is exactly 0.5.
            return midi_source(port, "bend", message.channel + 1), 0.5 + message.pitch / (
                16_384 if message.pitch < 0 else 16_382
            )
        case _:
            return None
