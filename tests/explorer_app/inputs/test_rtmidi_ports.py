"""Ports of rtmidi2, of which a fake stands in: no system of a test has MIDI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from explorer_app.inputs.errors import InputError
from explorer_app.inputs.rtmidi_ports import RtMidiInputs, RtMidiOutputs


class FakePort:
    """A port of rtmidi2; `ports` are those of the system."""

    ports: tuple[str, ...] = ("knobs", "keys", "knobs")
    opened: list[FakePort]

    def __init__(self, client: str) -> None:
        assert client == "Latent Loom"
        self.index: int | None = None
        self.callback: Callable[[list[int], float], None] | None = None
        self.sent: list[tuple[int, ...]] = []

    def open_port(self, index: int) -> None:
        self.index = index
        self.opened.append(self)

    def send_raw(self, *message: int) -> None:
        self.sent.append(message)

    def close_port(self) -> None:
        self.index = None


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> type[FakePort]:
    made: Any = type("Port", (FakePort,), {"opened": []})
    monkeypatch.setitem(sys.modules, "rtmidi2", SimpleNamespace(MidiIn=made, MidiOut=made))
    return made


def test_an_input_delivers_messages_until_it_is_closed(port: type[FakePort]) -> None:
    received: list[Sequence[int]] = []
    inputs = RtMidiInputs()
    assert inputs.names() == ["knobs", "keys", "knobs #2"]
    open_port = inputs.open("knobs #2", received.append)
    (opened,) = port.opened
    assert opened.index == 2
    assert opened.callback is not None
    opened.callback([176, 1, 64], 0.0)
    assert received == [[176, 1, 64]]
    open_port.close()
    open_port.close()
    assert (opened.index, opened.callback) == (None, None)


def test_an_output_sends_bytes_until_it_is_closed(port: type[FakePort]) -> None:
    send, close = RtMidiOutputs().open("keys")
    (opened,) = port.opened
    send((144, 60, 127))
    assert (opened.index, opened.sent) == (1, [(144, 60, 127)])
    close()
    assert opened.index is None


@pytest.mark.parametrize(
    "open_port", [lambda name: RtMidiInputs().open(name, print), lambda name: RtMidiOutputs().open(name)]
)
def test_a_port_that_was_unplugged_meanwhile_is_an_error_of_the_system(
    port: type[FakePort], open_port: Callable[[str], object]
) -> None:
    with pytest.raises(OSError, match="pads was unplugged"):
        open_port("pads")


def test_a_system_without_midi_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: str) -> None:
        raise RuntimeError("no sequencer.")

    monkeypatch.setitem(sys.modules, "rtmidi2", SimpleNamespace(MidiIn=refuse, MidiOut=refuse))
    for make in (RtMidiInputs, RtMidiOutputs):
        with pytest.raises(InputError, match=r"This system has no MIDI \(no sequencer\)\.$"):
            make()
