"""Values sent back to controllers: motor faders, lit rings, the screen of an OSC app. Off by default."""

from __future__ import annotations

import contextlib
import math
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from explorer_app.inputs.errors import InputError, missing_extra
from explorer_app.inputs.rtmidi_ports import RtMidiOutputs
from explorer_app.inputs.sources import midi_parts, osc_parts, port_names, stale_ports

LOOK_S = 1.0
"""How often ports are listed while values are sent to them: a system may take messages for an unplugged one."""

_CONTROL_CHANGE, _NOTE_ON, _PITCH_BEND = 0xB0, 0x90, 0xE0


class Sends(Protocol):
    """An output that takes messages for sources; another source's messages are ignored."""

    def send(self, values: Mapping[str, float]) -> None:
        """Send values, source -> 0..1. Raises OSError or RuntimeError if the system refuses."""
        ...

    def look_for_ports(self) -> None:
        """Look for ports again before the next value: one was plugged in. Called on any thread."""
        ...

    def close(self) -> None:
        """Close the output. May be called twice."""
        ...


class Feedback:
    """Sends the newest values on a thread of its own, so that no caller waits for a socket or a port.

    Each value goes out when it has changed, at most one a source every `pace_s` seconds; a value that is replaced
    before that is never sent.

    Parameters
    ----------
    outputs
        Where values go; each receives the values of its own sources.
    """

    def __init__(self, outputs: Sequence[Sends], pace_s: float = 1 / 60) -> None:
        self._outputs = outputs
        self._pace_s = pace_s
        self._lock = threading.Lock()
        self._newest: dict[str, float] = {}
        self._sent: dict[str, float] = {}
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self.failed = 0
        """Messages that the system refused."""
        self._thread = threading.Thread(target=self._run, name="controller-feedback", daemon=True)
        self._thread.start()

    def show(self, values: Mapping[str, float]) -> None:
        """Send values, source -> 0..1, if they differ from the last ones sent. Returns at once."""
        with self._lock:
            changed = {source: value for source, value in values.items() if self._sent.get(source) != value}
            self._sent = dict(values)  # only what is mapped now, so that it stays bounded
            self._newest.update(changed)
        if changed:
            self._wake.set()

    def resend_all(self) -> None:
        """Send every value again with the next `show`: a controller that was plugged in knows none of them."""
        for output in self._outputs:
            output.look_for_ports()
        with self._lock:
            self._sent = {}

    def close(self) -> None:
        """Send no more. May be called twice."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()
        for output in self._outputs:
            output.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                values, self._newest = self._newest, {}
            if not values or self._stopped.is_set():
                continue
            for output in self._outputs:
                try:
                    output.send(values)
                except (OSError, RuntimeError, ValueError):  # no receiver; values are sent again when they change
                    self.failed += 1
            self._stopped.wait(self._pace_s)


class OscOutput:
    """Sends values as OSC over UDP: to the address of an OSC source, with all of its arguments.

    Raises
    ------
    InputError
        If python-osc is missing, or the host has no address.
    """

    def __init__(self, host: str, port: int) -> None:
        try:
            from pythonosc.osc_message_builder import OscMessageBuilder
        except ImportError as error:
            raise missing_extra("OSC") from error
        self._builder = OscMessageBuilder
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
            self._address: Any = found[4]
            self._socket = socket.socket(found[0], socket.SOCK_DGRAM)
        except (OSError, UnicodeError, OverflowError) as error:
            raise InputError(f"OSC cannot send to {host}:{port}; check the address.") from error
        self._socket.setblocking(False)
        self._arguments: dict[str, dict[int, float]] = {}
        """Address -> its newest arguments: one message has them all."""

    def send(self, values: Mapping[str, float]) -> None:
        """Send the values of OSC sources."""
        addresses = set()
        for source, value in values.items():
            parts = osc_parts(source)
            if parts is not None:
                self._arguments.setdefault(parts[0], {})[parts[1]] = value
                addresses.add(parts[0])
        for address in addresses:
            arguments = self._arguments[address]
            builder = self._builder(address)
            for index in range(max(arguments) + 1):
                builder.add_arg(arguments.get(index, 0.0), "f")
            with contextlib.suppress(BlockingIOError):
                self._socket.sendto(builder.build().dgram, self._address)

    def look_for_ports(self) -> None:
        """Do nothing: a socket has no ports that come and go."""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


class MidiOutPorts(Protocol):
    """The MIDI output ports of a system."""

    def names(self) -> Sequence[str]:
        """Return the names of the ports that are plugged in."""
        ...

    def open(self, name: str) -> tuple[Callable[[Sequence[int]], object], Callable[[], object]]:
        """Open a port; return what sends a message's bytes, and what closes the port."""
        ...


class MidiOutput:
    """Sends values to the ports that have the names of the MIDI sources; a missing port is looked for again.

    Parameters
    ----------
    ports
        The system's ports; None for those of rtmidi2.
    clock
        Seconds from any origin.
    """

    def __init__(self, ports: MidiOutPorts | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._ports = ports or RtMidiOutputs()
        self._clock = clock
        self._there: dict[str, str] = {}
        """Ports that are plugged in: their lasting names -> those of the system."""
        self._looked_s = -math.inf
        self._open: dict[str, tuple[Callable[[Sequence[int]], object], Callable[[], object]]] = {}

    def send(self, values: Mapping[str, float]) -> None:
        """Send the values of MIDI sources; a port that fails delays no other."""
        failure: OSError | RuntimeError | None = None
        for source, value in values.items():
            parts = midi_parts(source)
            if parts is not None:
                try:
                    self._send(parts[0], _message(*parts[1:], value))
                except (OSError, RuntimeError) as error:
                    failure = error
        if failure is not None:
            raise failure

    def look_for_ports(self) -> None:
        """List the ports again before the next value."""
        self._looked_s = -math.inf

    def close(self) -> None:
        """Close every port."""
        for _, close in self._open.values():
            close()
        self._open.clear()

    def _look(self) -> None:
        """Close ports that were unplugged, and those that were plugged in again; sending opens them."""
        if self._clock() - self._looked_s < LOOK_S:
            return
        self._looked_s = self._clock()
        before, self._there = self._there, port_names(self._ports.names(), self._there)
        for port in stale_ports(before, self._there) & self._open.keys():
            self._open.pop(port)[1]()

    def _send(self, port: str, message: Sequence[int]) -> None:
        self._look()
        if port not in self._there:
            return  # it has no output, or is unplugged
        if port not in self._open:
            self._open[port] = self._ports.open(self._there[port])
        send, close = self._open[port]
        try:
            send(message)
        except (OSError, RuntimeError):
            self._looked_s = -math.inf
            del self._open[port]
            close()
            raise


def _message(kind: str, channel: int, number: int, value: float) -> tuple[int, ...]:
    """Return the bytes that set a control to a value, 0..1."""
    at = channel - 1
    if kind == "bend":
        bend = min(max(round((value - 0.5) * (16_384 if value < 0.5 else 16_382)) + 8192, 0), 16_383)
        return _PITCH_BEND | at, bend & 0x7F, bend >> 7
    return (_CONTROL_CHANGE if kind == "cc" else _NOTE_ON) | at, number, min(max(round(value * 127), 0), 127)
