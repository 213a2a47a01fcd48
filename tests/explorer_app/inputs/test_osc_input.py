"""OSC over loopback, with the real library on both sides."""

from __future__ import annotations

import logging
import socket
import struct
from collections.abc import Iterator

import pytest
from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
from pythonosc.osc_message_builder import OscMessageBuilder
from pythonosc.udp_client import SimpleUDPClient

from explorer_app.inputs.errors import InputError
from explorer_app.inputs.osc_input import OscInput
from tests.helpers.live_inputs import HeardBoard


@pytest.fixture
def board() -> HeardBoard:
    return HeardBoard()


@pytest.fixture
def osc(board: HeardBoard) -> Iterator[OscInput]:
    osc = OscInput(board, port=0)
    yield osc
    osc.close()


@pytest.fixture
def client(osc: OscInput) -> Iterator[SimpleUDPClient]:
    client = SimpleUDPClient("127.0.0.1", osc.port)
    yield client
    client._sock.close()


def test_a_message_sets_one_value_an_argument(osc: OscInput, client: SimpleUDPClient, board: HeardBoard) -> None:
    client.send_message("/pad/xy", [0.25, 0.75, "name", True])
    board.wait_for("osc/pad/xy/3")
    assert board.newest() == {"osc/pad/xy/0": 0.25, "osc/pad/xy/1": 0.75, "osc/pad/xy/3": 1.0}


def test_a_message_without_arguments_is_a_press(osc: OscInput, client: SimpleUDPClient, board: HeardBoard) -> None:
    client.send_message("/go", [])
    assert board.wait_for("osc/go/0") == 1.0


def test_a_bundle_is_taken_as_a_whole(osc: OscInput, client: SimpleUDPClient, board: HeardBoard) -> None:
    bundle = OscBundleBuilder(IMMEDIATELY)
    for address, value in (("/a", 0.1), ("/b", 0.2)):
        message = OscMessageBuilder(address)
        message.add_arg(value)
        bundle.add_content(message.build())
    client.send(bundle.build())
    board.wait_for("osc/b/0")
    assert board.newest() == {"osc/a/0": pytest.approx(0.1), "osc/b/0": pytest.approx(0.2)}


@pytest.mark.parametrize(("sent", "expected"), [(64, 64 / 127), (200, 200 / 255), (512, 512 / 1023), (-0.5, 0.25)])
def test_a_value_beyond_1_is_scaled_by_the_usual_span(
    osc: OscInput, client: SimpleUDPClient, board: HeardBoard, sent: float, expected: float
) -> None:
    client.send_message("/knob", sent)
    board.wait_for("osc/knob/0", expected)


def test_a_span_grows_to_both_sides_and_stays(osc: OscInput, client: SimpleUDPClient, board: HeardBoard) -> None:
    for sent, expected in ((100.0, 100 / 127), (-0.5, 126.5 / 254), (127.0, 1.0)):
        client.send_message("/knob", sent)
        board.wait_for("osc/knob/0", expected)


def test_later_messages_of_numbers_are_read_like_the_first_without_the_library(
    osc: OscInput, board: HeardBoard
) -> None:
    osc.close()
    parsed: list[bytes] = []
    parse = osc._parse
    osc._parse = lambda packet: parsed.append(packet) or parse(packet)  # type: ignore[assignment, func-returns-value]
    kinds = (("f", 0.25), ("i", 1), ("d", 0.75), ("h", 0))
    for share in (1.0, 0.5):
        message = OscMessageBuilder("/pad")
        for kind, value in kinds:
            message.add_arg(type(value)(value * share), kind)
        osc._take([message.build().dgram])
        expected = {f"osc/pad/{i}": float(type(value)(value * share)) for i, (_kind, value) in enumerate(kinds)}
        assert board.newest() == expected
    assert (len(parsed), osc.received, osc.dropped) == (1, 2, 0)


def test_a_message_of_other_types_or_of_a_wrong_length_is_left_to_the_library(osc: OscInput, board: HeardBoard) -> None:
    osc.close()
    good = b"/sun\0\0\0\0,f\0\0" + struct.pack(">f", 0.5)
    odd = (good[:-1], good[:-4], good[:8] + b",T\0\0", good[:8], b"/sun", good + good, b"", b"/", b"/\0\0\0,")
    for packet in odd:
        osc._layouts.clear()
        osc.received = osc.dropped = 0
        osc._take([packet])
        alone = osc.received, osc.dropped, board.newest()
        osc._take([good])
        assert osc._layouts
        osc.received = osc.dropped = 0
        osc._take([packet])
        assert (osc.received, osc.dropped) == alone[:2]
        assert board.newest() == alone[2] or not osc.received, packet


def test_a_value_that_is_not_finite_changes_neither_value_nor_span(
    osc: OscInput, client: SimpleUDPClient, board: HeardBoard
) -> None:
    client.send_message("/knob", float("inf"))
    client.send_message("/other", float("nan"))
    for address, source in (("/knob", "osc/knob/0"), ("/other", "osc/other/0")):
        client.send_message(address, 0.5)
        board.wait_for(source, 0.5)


def test_malformed_packets_are_dropped_quietly_and_counted(
    osc: OscInput, client: SimpleUDPClient, board: HeardBoard, caplog: pytest.LogCaptureFixture
) -> None:
    raw = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for packet in (b"/x\0\0,f\0\0\1", b"/y", b"no osc at all", b"#bundle\0\0", b"/z\0\0,?\0\0", b"\xff" * 900):
        raw.sendto(packet, ("127.0.0.1", osc.port))
    raw.close()
    client.send_message("/sun", 0.5)
    board.wait_for("osc/sun/0", 0.5)
    assert osc.dropped >= 3
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("size", [-4, -20, -(2**31), 0])
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_bundle_whose_element_has_no_size_is_dropped_and_the_next_packet_is_read(
    osc: OscInput, client: SimpleUDPClient, board: HeardBoard, size: int, *, is_nested: bool
) -> None:
    packet = b"#bundle\0" + bytes(8) + struct.pack(">i", size)
    if is_nested:
        packet = b"#bundle\0" + bytes(8) + struct.pack(">i", len(packet)) + packet
    client._sock.sendto(packet, ("127.0.0.1", osc.port))
    client.send_message("/sun", 0.5)
    board.wait_for("osc/sun/0", 0.5)
    assert osc.dropped == 1


def test_of_one_address_only_the_newest_packet_of_a_turn_is_parsed(board: HeardBoard) -> None:
    osc = OscInput(board, port=0)
    osc.close()
    packets = [OscMessageBuilder("/sun") for _ in range(3)]
    for index, packet in enumerate(packets):
        packet.add_arg(index / 4)
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    for packet in packets:
        receiver.sendto(packet.build().dgram, receiver.getsockname())
    osc._socket = receiver
    assert osc._waiting() == [packets[-1].build().dgram]
    receiver.close()


def test_a_port_in_use_is_refused_with_a_sentence(osc: OscInput, board: HeardBoard) -> None:
    with pytest.raises(InputError, match=rf"cannot listen on 127.0.0.1:{osc.port} .*choose another port"):
        OscInput(board, port=osc.port)


@pytest.mark.parametrize("host", ["198.51.100.7", "no such host"])
def test_an_address_of_another_machine_is_refused_with_a_sentence(host: str, board: HeardBoard) -> None:
    with pytest.raises(InputError, match="OSC cannot listen on"):
        OscInput(board, host=host, port=0)


def test_it_listens_on_this_machine_only_unless_told_otherwise(osc: OscInput) -> None:
    assert osc.host == "127.0.0.1"


def test_closing_twice_does_no_harm(osc: OscInput) -> None:
    osc.close()
    osc.close()
