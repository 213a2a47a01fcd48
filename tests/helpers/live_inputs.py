"""A board that signals arrivals, and fake MIDI ports."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from explorer_app.inputs.board import ValueBoard
from explorer_app.inputs.gamepad_input import PadState
from explorer_app.inputs.sources import port_places

PATIENCE_S = 30.0
"""Timeout for a thread on a busy machine."""


class HeardBoard(ValueBoard):
    """A board whose writes can be waited for."""

    def __init__(self, limit: int = 1024) -> None:
        super().__init__(limit)
        self._heard = threading.Condition()

    def put(self, source: str, value: float) -> None:
        super().put(source, value)
        with self._heard:
            self._heard.notify_all()

    def put_all(self, values: dict[str, float]) -> None:
        super().put_all(values)
        with self._heard:
            self._heard.notify_all()

    def wait_for(self, source: str, value: float | None = None) -> float:
        """Wait until a source has a value, or this one, and return it."""

        def is_there() -> bool:
            found = self.newest().get(source)
            return found is not None and (value is None or abs(found - value) < 1e-6)

        with self._heard:
            assert self._heard.wait_for(is_there, PATIENCE_S), f"{source}: {self.newest()}"
        return self.newest()[source]


class FakePort:
    """An open port."""

    def __init__(self, ports: FakeMidiPorts, name: str, receive: Callable[[Sequence[int]], None]) -> None:
        self._ports, self._name, self.receive = ports, name, receive

    def close(self) -> None:
        if self._ports.opened.get(self._name) is self:
            del self._ports.opened[self._name]


class FakeMidiPorts:
    """Input ports that a test connects, sends through and disconnects."""

    def __init__(self, *names: str) -> None:
        self.plugged = list(names)
        self.opened: dict[str, FakePort] = {}
        self.refuses: str = ""
        self.broken: Exception | None = None

    def names(self) -> Sequence[str]:
        if self.broken is not None:
            raise self.broken
        return list(self.plugged)

    def open(self, name: str, receive: Callable[[Sequence[int]], None]) -> FakePort:
        if name == self.refuses:
            raise RuntimeError("busy")
        port = self.opened[name] = FakePort(self, name, receive)
        return port

    def play(self, name: str, *data: int) -> None:
        """Deliver bytes, as a thread of the system would."""
        self.opened[name].receive(list(data))


class TwinMidiPorts:
    """Input ports of a system that gives several devices one name, as macOS does; an open port stays with its device.

    `devices` are (name of the system, device) pairs in the order of the system.
    """

    def __init__(self, *devices: tuple[str, str]) -> None:
        self.devices = list(devices)
        self.opened: dict[str, list[Callable[[Sequence[int]], None]]] = {}

    def names(self) -> Sequence[str]:
        return list(port_places([name for name, _ in self.devices]))

    def open(self, name: str, receive: Callable[[Sequence[int]], None]) -> TwinPort:
        device = self.devices[self.names().index(name)][1]
        self.opened.setdefault(device, []).append(receive)
        return TwinPort(self, device, receive)

    def play(self, device: str, *data: int) -> None:
        """Deliver bytes of a device to everything that has opened it."""
        for receive in self.opened.get(device, ()):
            receive(list(data))


class TwinPort:
    """An open port of `TwinMidiPorts`."""

    def __init__(self, ports: TwinMidiPorts, device: str, receive: Callable[[Sequence[int]], None]) -> None:
        self._ports, self._device, self._receive = ports, device, receive

    def close(self) -> None:
        opened = self._ports.opened[self._device]
        if self._receive in opened:
            opened.remove(self._receive)


class FakeMidiOutPorts:
    """Output ports that record messages."""

    def __init__(self, *names: str) -> None:
        self.plugged = list(names)
        self.sent: list[tuple[str, tuple[int, ...]]] = []
        self.closed: list[str] = []
        self.broken = False
        self.heard = threading.Event()

    def names(self) -> Sequence[str]:
        return list(self.plugged)

    def open(self, name: str) -> tuple[Callable[[Sequence[int]], object], Callable[[], object]]:
        def send(message: Sequence[int]) -> None:
            if self.broken:
                raise RuntimeError("gone")
            self.sent.append((name, tuple(message)))
            self.heard.set()

        return send, lambda: self.closed.append(name)


class ScriptedPads:
    """Gamepads that a test moves."""

    def __init__(self, *pads: PadState) -> None:
        self.pads = list(pads)
        self.is_closed = False

    def states(self) -> Iterator[PadState]:
        return iter(list(self.pads))

    def close(self) -> None:
        self.is_closed = True
