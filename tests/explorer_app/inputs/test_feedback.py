"""Values sent back to controllers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from pythonosc.osc_message import OscMessage

from explorer_app.inputs.errors import InputError
from explorer_app.inputs.feedback import LOOK_S, Feedback, MidiOutput, OscOutput
from tests.helpers.live_inputs import PATIENCE_S, FakeMidiOutPorts


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.bind(("127.0.0.1", 0))
    listener.settimeout(PATIENCE_S)
    yield listener
    listener.close()


def test_an_osc_source_gets_its_value_at_its_own_address(listener: socket.socket) -> None:
    output = OscOutput("127.0.0.1", listener.getsockname()[1])
    output.send({"osc/pad/1": 0.75, "midi/a/cc/1/2": 0.5})
    message = OscMessage(listener.recv(1000))
    assert (message.address, message.params) == ("/pad", [0.0, 0.75])
    output.send({"osc/pad/0": 0.25})
    assert OscMessage(listener.recv(1000)).params == [0.25, 0.75], "an address keeps its other arguments"
    output.close()


def test_an_address_that_does_not_exist_is_refused_with_a_sentence() -> None:
    with pytest.raises(InputError, match="OSC cannot send to no such host:9001"):
        OscOutput("no such host", 9001)


@pytest.mark.parametrize(
    ("source", "value", "message"),
    [
        ("midi/fader/cc/1/7", 1.0, (0xB0, 7, 127)),
        ("midi/fader/cc/16/7", 0.5, (0xBF, 7, 64)),
        ("midi/fader/note/1/36", 1.0, (0x90, 36, 127)),
        ("midi/fader/bend/2", 0.5, (0xE1, 0, 64)),
        ("midi/fader/bend/2", 1.0, (0xE1, 127, 127)),
    ],
)
def test_a_midi_source_gets_its_value_as_its_own_message(source: str, value: float, message: tuple[int, ...]) -> None:
    ports = FakeMidiOutPorts("fader 20:0")
    MidiOutput(ports).send({source: value, "osc/sun/0": 1.0})
    assert ports.sent == [("fader 20:0", message)]


def test_two_ports_of_one_name_get_the_values_of_their_own_sources() -> None:
    ports = FakeMidiOutPorts("fader 20:0", "fader 24:0")
    MidiOutput(ports).send({"midi/fader #2/cc/1/7": 1.0})
    assert ports.sent == [("fader 24:0", (0xB0, 7, 127))]


def test_a_port_that_fails_is_opened_again_for_the_next_value() -> None:
    ports = FakeMidiOutPorts("fader 20:0")
    output = MidiOutput(ports)
    ports.broken = True
    with pytest.raises(RuntimeError):
        output.send({"midi/fader/cc/1/7": 1.0})
    ports.broken = False
    output.send({"midi/fader/cc/1/7": 0.0, "midi/unplugged/cc/1/7": 0.0})
    assert ports.sent == [("fader 20:0", (0xB0, 7, 0))]


def test_a_port_that_fails_delays_no_other() -> None:
    class OnePortFails(FakeMidiOutPorts):
        def open(self, name: str) -> tuple[Callable[[Sequence[int]], object], Callable[[], object]]:
            if name == "fader":
                raise OSError("unplugged just now")
            return super().open(name)

    ports = OnePortFails("fader", "keys")
    output = MidiOutput(ports)
    with pytest.raises(OSError, match="unplugged"):
        output.send({"midi/fader/cc/1/7": 1.0, "midi/keys/cc/1/7": 1.0})
    assert ports.sent == [("keys", (0xB0, 7, 127))]


def test_a_controller_that_is_plugged_in_gets_every_value_at_once() -> None:
    sink = Sink()
    sink.may_go_on.set()
    ports = FakeMidiOutPorts("fader 20:0")
    output = MidiOutput(ports, clock=lambda: 0.0)
    feedback = Feedback([output, sink], pace_s=0.0)
    values = {"midi/fader/cc/1/7": 1.0, "midi/fader/cc/1/8": 0.0}
    feedback.show(values)
    assert sink.has_begun.acquire(timeout=PATIENCE_S)
    ports.plugged[:] = ["fader 28:0"]
    feedback.resend_all()
    feedback.show(values)
    assert sink.has_begun.acquire(timeout=PATIENCE_S)
    feedback.close()
    assert sink.sent == [values, values]
    assert ports.sent[2:] == [("fader 28:0", (0xB0, 7, 127)), ("fader 28:0", (0xB0, 8, 0))]


def test_a_port_that_was_plugged_in_again_gets_values_although_the_system_still_takes_them_for_the_old_one() -> None:
    now_s = 0.0
    ports = FakeMidiOutPorts("fader 20:0")
    output = MidiOutput(ports, clock=lambda: now_s)
    output.send({"midi/fader/cc/1/7": 1.0})
    ports.plugged[:] = ["fader 28:0"]
    now_s = LOOK_S
    output.send({"midi/fader/cc/1/7": 0.0})
    assert ports.sent == [("fader 20:0", (0xB0, 7, 127)), ("fader 28:0", (0xB0, 7, 0))]
    assert ports.closed == ["fader 20:0"]


def test_ports_with_one_name_of_the_system_are_opened_again_once_their_number_changes() -> None:
    now_s = 0.0
    ports = FakeMidiOutPorts("fader", "fader #2", "keys")
    output = MidiOutput(ports, clock=lambda: now_s)
    output.send({"midi/fader/cc/1/7": 1.0, "midi/fader #2/cc/1/7": 1.0, "midi/keys/cc/1/7": 1.0})
    ports.plugged[:] = ["fader", "keys"]
    now_s = LOOK_S
    output.send({"midi/fader/cc/1/7": 0.0, "midi/fader #2/cc/1/7": 0.0})
    assert sorted(ports.closed) == ["fader", "fader #2"]
    assert ports.sent[3:] == [("fader", (0xB0, 7, 0))]


class Sink:
    """An output that notes what it gets, and may be held up."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, float]] = []
        self.may_go_on = threading.Event()
        self.has_begun = threading.Semaphore(0)

    def send(self, values: Mapping[str, float]) -> None:
        self.sent.append(dict(values))
        self.has_begun.release()
        self.may_go_on.wait(PATIENCE_S)
        if "broken" in values:
            raise OSError("nobody listens")

    def look_for_ports(self) -> None:
        pass

    def close(self) -> None:
        pass


def test_a_slow_output_blocks_no_frame_and_skips_replaced_values() -> None:
    sink = Sink()
    feedback = Feedback([sink], pace_s=0.0)
    feedback.show({"a": 0.1})
    assert sink.has_begun.acquire(timeout=PATIENCE_S)
    for value in (0.2, 0.3, 0.4):
        feedback.show({"a": value})
    sink.may_go_on.set()
    assert sink.has_begun.acquire(timeout=PATIENCE_S)
    feedback.close()
    assert sink.sent == [{"a": 0.1}, {"a": 0.4}]


def test_only_what_has_changed_is_sent_and_a_failure_ends_nothing() -> None:
    sink = Sink()
    sink.may_go_on.set()
    feedback = Feedback([sink], pace_s=0.0)
    for values in ({"a": 0.1, "broken": 0.0}, {"a": 0.1, "broken": 0.0}, {"a": 0.1, "broken": 0.5}):
        feedback.show(values)
        if values != {"a": 0.1, "broken": 0.0} or not sink.sent:
            assert sink.has_begun.acquire(timeout=PATIENCE_S)
    feedback.close()
    assert sink.sent == [{"a": 0.1, "broken": 0.0}, {"broken": 0.5}]
    assert feedback.failed == 2
