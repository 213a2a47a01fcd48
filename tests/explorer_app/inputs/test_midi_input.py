"""MIDI through ports made of Python, with real bytes."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

import pytest

from explorer_app.inputs.errors import InputError
from explorer_app.inputs.midi_input import MidiInput, PortEvent
from explorer_app.inputs.sources import port_places, source_label
from tests.helpers.live_inputs import PATIENCE_S, FakeMidiPorts, HeardBoard, TwinMidiPorts

KNOBS = "nanoKONTROL2:nanoKONTROL2 MIDI 1 20:0"
NAME = "nanoKONTROL2:nanoKONTROL2 MIDI 1"


@pytest.fixture
def ports() -> FakeMidiPorts:
    return FakeMidiPorts(KNOBS, "Midi Through:Midi Through Port-0 14:0")


@pytest.fixture
def events() -> queue.Queue[PortEvent]:
    return queue.Queue()


@pytest.fixture
def midi(ports: FakeMidiPorts, events: queue.Queue[PortEvent], stopped: Callable[[MidiInput], MidiInput]) -> MidiInput:
    """An input that has opened its port; its thread has ended, so that a test looks for ports itself."""
    midi = stopped(MidiInput(HeardBoard(), events.put, ports, look_s=1000.0))
    assert events.get(timeout=PATIENCE_S) == PortEvent(NAME, is_there=True)
    return midi


@pytest.fixture
def stopped() -> Iterator[Callable[[MidiInput], MidiInput]]:
    made: list[MidiInput] = []

    def keep(midi: MidiInput) -> MidiInput:
        made.append(midi)
        return midi

    yield keep
    for midi in made:
        midi.close()


def board_of(midi: MidiInput) -> dict[str, float]:
    return midi._board.newest()


@pytest.mark.parametrize(
    ("data", "source", "value"),
    [
        ((0xB0, 21, 127), "cc/1/21", 1.0),
        ((0xB9, 7, 0), "cc/10/7", 0.0),
        ((0x90, 60, 127), "note/1/60", 1.0),
        ((0x90, 60, 0), "note/1/60", 0.0),
        ((0x80, 60, 64), "note/1/60", 0.0),
        ((0xE2, 0, 64), "bend/3", 0.5),
        ((0xE2, 127, 127), "bend/3", 1.0),
        ((0xE2, 0, 0), "bend/3", 0.0),
    ],
)
def test_messages_become_values(
    midi: MidiInput, ports: FakeMidiPorts, data: tuple[int, ...], source: str, value: float
) -> None:
    ports.play(KNOBS, *data)
    assert board_of(midi) == {f"midi/{NAME}/{source}": pytest.approx(value)}


def test_a_message_may_come_in_pieces(midi: MidiInput, ports: FakeMidiPorts) -> None:
    ports.play(KNOBS, 0xB0, 21)
    ports.play(KNOBS, 127)
    assert board_of(midi) == {f"midi/{NAME}/cc/1/21": 1.0}


def test_messages_other_than_controls_are_counted_and_ignored(midi: MidiInput, ports: FakeMidiPorts) -> None:
    ports.play(KNOBS, 0xF8)
    ports.play(KNOBS, 300)
    assert board_of(midi) == {}
    assert (midi.received, midi.dropped) == (0, 2)


def test_ports_that_loop_back_are_left_alone(midi: MidiInput) -> None:
    assert midi.open_ports == (NAME,)


def test_a_controller_that_is_unplugged_and_plugged_in_again_goes_on(
    midi: MidiInput, ports: FakeMidiPorts, events: queue.Queue[PortEvent]
) -> None:
    ports.plugged.remove(KNOBS)
    midi.look()
    assert events.get_nowait() == PortEvent(NAME, is_there=False)
    assert ports.opened == {}
    again = KNOBS.replace("20:0", "28:0")
    ports.plugged.append(again)
    midi.look()
    assert events.get_nowait() == PortEvent(NAME, is_there=True)
    ports.play(again, 0xB0, 21, 127)
    assert board_of(midi) == {f"midi/{NAME}/cc/1/21": 1.0}


def test_two_controllers_of_one_name_are_told_apart_while_they_are_plugged_in(
    midi: MidiInput, ports: FakeMidiPorts, events: queue.Queue[PortEvent]
) -> None:
    twin = KNOBS.replace("20:0", "24:0")
    ports.plugged.append(twin)
    midi.look()
    assert events.get_nowait() == PortEvent(f"{NAME} #2", is_there=True)
    ports.play(KNOBS, 0xB0, 21, 127)
    ports.play(twin, 0xB0, 21, 0)
    first, second = f"midi/{NAME}/cc/1/21", f"midi/{NAME} #2/cc/1/21"
    assert board_of(midi) == {first: 1.0, second: 0.0}
    assert [source_label(source) for source in (first, second)] == ["nanoKONTROL2 · CC 21", "nanoKONTROL2 #2 · CC 21"]
    ports.plugged.remove(KNOBS)
    midi.look()
    assert events.get_nowait() == PortEvent(NAME, is_there=False)
    assert events.empty()
    ports.play(twin, 0xB0, 21, 127)
    assert board_of(midi)[second] == 1.0


@pytest.mark.parametrize(("unplugged", "rest"), [("left", "right"), ("right", "left")])
def test_of_two_controllers_with_one_name_of_the_system_the_one_that_stays_is_heard(
    unplugged: str, rest: str, events: queue.Queue[PortEvent], stopped: Callable[[MidiInput], MidiInput]
) -> None:
    ports = TwinMidiPorts(("fader", "left"), ("fader", "right"), ("keys", "keys"))
    midi = stopped(MidiInput(HeardBoard(), events.put, ports, look_s=1000.0))
    assert [events.get(timeout=PATIENCE_S).name for _ in range(3)] == ["fader", "fader #2", "keys"]
    (keys,) = ports.opened["keys"]
    ports.devices.remove(("fader", unplugged))
    midi.look()
    assert events.get_nowait() == PortEvent("fader #2", is_there=False)
    assert events.empty()
    ports.play(unplugged, 0xB0, 7, 0)
    ports.play(rest, 0xB0, 7, 127)
    assert board_of(midi) == {"midi/fader/cc/1/7": 1.0}
    ports.devices.insert(0, ("fader", unplugged))
    midi.look()
    assert events.get_nowait() == PortEvent("fader #2", is_there=True)
    assert events.empty()
    ports.play(unplugged, 0xB0, 8, 127)
    ports.play(rest, 0xB0, 8, 0)
    assert board_of(midi)["midi/fader/cc/1/8"] == 1.0, "the first of the system's list has no number"
    assert board_of(midi)["midi/fader #2/cc/1/8"] == 0.0
    assert ports.opened["keys"] == [keys], "a port of another name is left alone"


def test_a_controller_that_is_back_before_the_next_look_is_opened_again(
    midi: MidiInput, ports: FakeMidiPorts, events: queue.Queue[PortEvent]
) -> None:
    again = KNOBS.replace("20:0", "28:0")
    ports.plugged[:] = [again]
    midi.look()
    assert [events.get_nowait() for _ in range(2)] == [PortEvent(NAME, is_there=there) for there in (False, True)]
    assert list(ports.opened) == [again]


def test_ports_that_a_system_gives_one_name_are_counted() -> None:
    assert port_places(["knobs", "keys", "knobs", "knobs"]) == {"knobs": 0, "keys": 1, "knobs #2": 2, "knobs #3": 3}


def test_a_port_that_cannot_be_opened_is_reported_once(
    ports: FakeMidiPorts, events: queue.Queue[PortEvent], stopped: Callable[[MidiInput], MidiInput]
) -> None:
    ports.refuses = KNOBS
    midi = stopped(MidiInput(HeardBoard(), events.put, ports, look_s=1000.0))
    assert events.get(timeout=PATIENCE_S) == PortEvent(NAME, is_there=False, error="busy")
    midi.look()
    assert events.empty()


def test_a_system_that_loses_its_midi_closes_the_ports_and_waits(
    midi: MidiInput, ports: FakeMidiPorts, events: queue.Queue[PortEvent]
) -> None:
    ports.broken = RuntimeError("sequencer gone")
    midi.look()
    assert events.get_nowait() == PortEvent(NAME, is_there=False)


def test_a_system_without_midi_is_said_at_once(ports: FakeMidiPorts) -> None:
    ports.broken = RuntimeError("no sequencer.")
    with pytest.raises(InputError, match=r"This system has no MIDI \(no sequencer\)\."):
        MidiInput(HeardBoard(), ports=ports)


def test_closing_closes_the_ports(midi: MidiInput, ports: FakeMidiPorts) -> None:
    midi.close()
    midi.close()
    assert ports.opened == {}
