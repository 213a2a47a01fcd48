"""OSC over UDP: a thread of its own receives packets and writes their newest values to the board."""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import struct
import threading
from collections.abc import Iterable, Sequence

from explorer_app.inputs.board import MAX_SOURCES, ValueBoard
from explorer_app.inputs.errors import InputError, missing_extra
from explorer_app.inputs.sources import osc_source

PACE_S = 0.004
"""Packets are taken together every 4 ms, a quarter of a frame: of each address only the newest is parsed."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9000

_MAX_PACKET = 65_535
_MAX_ARGUMENTS = 32
_MAX_AT_ONCE = 4096
"""Packets of one turn; a sender that is quicker than that cannot hold the thread for ever."""

_BUNDLE = b"#bundle\0"
_BUNDLE_HEAD = 16
"""Bytes of a bundle before its first element: its name and its time."""

_SIZE = struct.Struct(">i")

_FIELDS = {"f": "f", "i": "i", "d": "d", "h": "q"}
"""Type tags of numbers -> format characters of `struct`, which reads them big-endian."""

_SPANS = (1.0, 127.0, 255.0, 1023.0, 16_383.0, 65_535.0)
"""Usual ends of what controls send. A source whose value exceeds one end is scaled by the next."""


class OscInput:
    """Receives OSC until it is closed.

    A value between 0 and 1 is used unchanged. A source that was seen beyond is scaled by the next usual span: 0..127,
    0..255, 0..1023 and so on; one that was seen below 0 by the same span on both sides of 0, which becomes 0.5.

    Parameters
    ----------
    board
        Receives the values.
    host, port
        Address to listen on; port 0 takes any free one, which `port` then names.

    Raises
    ------
    InputError
        If python-osc is missing, or the address cannot be used.
    """

    def __init__(self, board: ValueBoard, host: str = DEFAULT_HOST, port: int = DEFAULT_PORT) -> None:
        try:
            from pythonosc.osc_packet import OscPacket
        except ImportError as error:
            raise missing_extra("OSC") from error
        self._parse = OscPacket
        self._board = board
        self._spans: dict[str, tuple[float, float]] = {}
        """Source -> low and high end, for those that are not 0..1."""
        self._layouts: dict[bytes, tuple[str, struct.Struct]] = {}
        """Address and type tags of a packet of numbers, as sent -> address, and the fields that follow."""
        self.received = 0
        """Packets that were understood."""
        self.dropped = 0
        """Packets that were not."""
        self._socket = _bound(host, port)
        self.host, self.port = self._socket.getsockname()[:2]
        self._stopped = threading.Event()
        _quiet_library()
        self._thread = threading.Thread(target=self._run, name="osc-input", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening. May be called twice."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        with contextlib.suppress(OSError):  # ends the wait for a packet at once
            own = "127.0.0.1" if self.host == "0.0.0.0" else self.host
            self._socket.sendto(b"", (own, self.port))
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._take(self._waiting())
            self._stopped.wait(PACE_S)

    def _waiting(self) -> list[bytes]:
        """Wait for a packet, and return the newest of every address that has arrived, bundles one by one."""
        packets: dict[bytes, bytes] = {}
        bundles: list[bytes] = []
        for index in range(_MAX_AT_ONCE):
            try:
                if (
                    index < 2
                ):  # waits for the first packet alone; a call for each packet costs half as much as receiving it
                    self._socket.settimeout(0.5 if index == 0 else 0.0)
                packet = self._socket.recv(_MAX_PACKET)
            except (BlockingIOError, TimeoutError):
                break
            except OSError:  # an earlier answer of ours was refused, as Windows reports here; or the network went away
                self._stopped.wait(PACE_S)
                break
            if packet.startswith(b"/"):
                address = packet[: packet.find(b"\0")]
                packets.pop(address, None)  # so that the order is that of arrival
                packets[address] = packet
            elif packet:
                bundles.append(packet)
        return bundles + list(packets.values())

    def _take(self, packets: Iterable[bytes]) -> None:
        for packet in packets:
            values: dict[str, float] = {}
            try:
                self._read_packet(packet, values)
            except Exception:  # a malformed packet may raise anything; the next one is read
                self.dropped += 1
                continue
            self.received += 1
            self._board.put_all(values)

    def _read_packet(self, packet: bytes, values: dict[str, float]) -> None:
        """Read a packet into `values`. Raises any exception if it is malformed.

        The library reads the first message of each address and type; `struct` unpacks the numbers of the next ones, in
        a quarter of the time. Meanwhile the thread holds the interpreter's lock, for which the window's thread waits.
        """
        header = _header(packet)
        address, fields = self._layouts.get(header, ("", None))
        if fields is not None and len(packet) == len(header) + fields.size:
            self._read(address, fields.unpack_from(packet, len(header)), values)
            return
        if packet.startswith(_BUNDLE):
            _check_sizes(packet)
        messages = self._parse(packet).messages
        for timed in messages:
            self._read(timed.message.address, timed.message.params, values)
        if header and len(messages) == 1:
            self._remember(header, packet, messages[0].message.address, messages[0].message.params)

    def _remember(self, header: bytes, packet: bytes, address: str, arguments: Sequence[object]) -> None:
        """Remember the layout of a packet that has only numbers and was read by the library."""
        tags = header.partition(b",")[2].rstrip(b"\0").decode("latin-1")
        if not tags or not set(tags) <= _FIELDS.keys():
            return
        fields = struct.Struct(">" + "".join(_FIELDS[tag] for tag in tags))
        if len(packet) == len(header) + fields.size and fields.unpack_from(packet, len(header)) == tuple(arguments):
            if len(self._layouts) >= MAX_SOURCES:
                del self._layouts[next(iter(self._layouts))]
            self._layouts[header] = address, fields

    def _read(self, address: str, arguments: Sequence[object], values: dict[str, float]) -> None:
        if not arguments:
            values[osc_source(address, 0)] = 1.0
        for index, argument in enumerate(arguments[:_MAX_ARGUMENTS]):
            if isinstance(argument, int | float) and math.isfinite(argument):
                source = osc_source(address, index)
                values[source] = self._normalised(source, float(argument))

    def _normalised(self, source: str, value: float) -> float:
        low, high = self._spans.get(source, (0.0, 1.0))
        if not low <= value <= high:
            high = next((end for end in _SPANS if max(abs(value), high) <= end), _SPANS[-1])
            low = -high if value < 0.0 or low < 0.0 else 0.0
            if len(self._spans) >= MAX_SOURCES:
                del self._spans[next(iter(self._spans))]
            self._spans[source] = low, high
        return (value - low) / (high - low)


def _header(packet: bytes) -> bytes:
    """Return the address and the type tags of a message with their padding; b"" if the packet is not a message."""
    if not packet.startswith(b"/"):
        return b""
    tags = (packet.find(b"\0") + 4) & ~3
    if packet[tags : tags + 1] != b",":
        return b""
    end = packet.find(b"\0", tags)
    return packet[: (end + 4) & ~3] if end > 0 else b""


def _check_sizes(packet: bytes) -> None:
    """Raise a ValueError if an element of a bundle is not longer than nothing.

    The library skips each element by its size: a negative one leads back, and the same element is read for ever.
    """
    bundles = [packet]
    while bundles:
        bundle = bundles.pop()
        index = _BUNDLE_HEAD
        while index + _SIZE.size <= len(bundle):
            (size,) = _SIZE.unpack_from(bundle, index)
            if size <= 0:
                raise ValueError("an element of a bundle has no size")
            index += _SIZE.size
            if bundle.startswith(_BUNDLE, index):
                bundles.append(bundle[index : index + size])
            index += size


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
        made = socket.socket(family, socket.SOCK_DGRAM)
    except (OSError, UnicodeError) as error:
        raise InputError(f"OSC cannot listen on {host}: it is not an address of this machine.") from error
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"OSC cannot listen on {host}:{port} ({reason}); choose another port or address.") from error
    return made


class _FromLibrary(logging.Filter):
    """Drops what python-osc says about packets: it logs to the root logger, and a packet is no news for a user."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "pythonosc" not in record.pathname


_FILTER = _FromLibrary()


def _quiet_library() -> None:
    """Filter the root logger's own records; records of other loggers do not pass its filters."""
    logging.getLogger().addFilter(_FILTER)
