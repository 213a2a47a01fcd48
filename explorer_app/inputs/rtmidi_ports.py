"""The system's MIDI ports, through rtmidi2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from explorer_app.inputs.errors import InputError, missing_extra, reason_of
from explorer_app.inputs.sources import port_places


class _RtMidi:
    """Ports of one direction.

    Raises
    ------
    InputError
        If rtmidi2 is missing, or the system has no MIDI.
    """

    def __init__(self, kind: Literal["MidiIn", "MidiOut"]) -> None:
        try:
            import rtmidi2
        except ImportError as error:
            raise missing_extra("MIDI") from error
        self._make: Callable[[], Any] = lambda: getattr(rtmidi2, kind)("Latent Loom")
        try:
            self._lister = self._make()
        except RuntimeError as error:
            raise InputError(f"This system has no MIDI ({reason_of(error)}).") from error

    def names(self) -> Sequence[str]:
        """Return the names of the ports that are plugged in; of several with one name, each is counted."""
        return list(port_places(self._lister.ports))

    def _open_port(self, name: str) -> Any:
        """Open a port by its name. Raises OSError if it was unplugged, RuntimeError if the system refuses."""
        index = port_places(self._lister.ports).get(name)
        if index is None:
            raise OSError(f"{name} was unplugged")
        port = self._make()
        port.open_port(index)
        return port


class RtMidiInputs(_RtMidi):
    """Implements `explorer_app.inputs.midi_input.MidiPorts`."""

    def __init__(self) -> None:
        super().__init__("MidiIn")

    def open(self, name: str, receive: Callable[[Sequence[int]], None]) -> RtMidiInput:
        """Open a port by its name; see `MidiPorts`."""
        port = self._open_port(name)
        port.callback = lambda message, _time: receive(message)
        return RtMidiInput(port)


class RtMidiInput:
    """An open input port."""

    def __init__(self, port: Any) -> None:
        self._port = port

    def close(self) -> None:
        """Stop delivering. May be called twice."""
        if self._port is not None:
            port, self._port = self._port, None
            port.callback = None
            port.close_port()


class RtMidiOutputs(_RtMidi):
    """Implements `explorer_app.inputs.feedback.MidiOutPorts`."""

    def __init__(self) -> None:
        super().__init__("MidiOut")

    def open(self, name: str) -> tuple[Callable[[Sequence[int]], object], Callable[[], object]]:
        """Open a port by its name; return what sends the bytes of a message, and what closes it."""
        port = self._open_port(name)
        return (lambda message: port.send_raw(*message)), port.close_port
