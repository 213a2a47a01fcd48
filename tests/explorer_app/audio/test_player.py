"""Playing sounds: what is heard when, and how the picture's clock follows it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from explorer_app.audio.decoding import write_wav
from explorer_app.audio.mixing import MIX_HZ
from explorer_app.audio.player import FOUND, LOST, Player, Route, Stream, default_device
from explorer_app.session.timeline.playing import played
from explorer_app.session.tracks import Sound, Timeline
from gpu_backend import LoomError

SECONDS = 2.0
DIGEST = "a" * 64


class HandDevice:
    """A device that a test drives: it asks for samples when it is told to."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.has_begun = threading.Event()
        self.has_closed = threading.Event()
        self.is_closed = False

    def start(self, stream: Stream) -> None:
        self.stream = stream
        self.has_begun.set()

    def close(self) -> None:
        self.is_closed = True
        self.has_closed.set()

    def ask(self, count: int) -> np.ndarray:
        assert self.stream is not None
        return np.frombuffer(self.stream.send(count), np.float32).reshape(-1, 2)


class Bench:
    """A player over a hand-driven device, with a clock that a test winds."""

    def __init__(self, folder: Path, open_device: Callable[[], HandDevice] | None = None) -> None:
        ramp = np.linspace(0.0, 0.9, int(SECONDS * MIX_HZ), dtype=np.float32)
        write_wav(folder / "ramp.wav", ramp[:, None], MIX_HZ)
        self.ramp = ramp
        self.device = HandDevice()
        self.now_s = 0.0
        self.said: list[str] = []
        self.has_said = threading.Event()
        self.player = Player(self._say, open_device or (lambda: self.device), lambda: self.now_s, self._say)
        self.paths = {DIGEST: folder / "ramp.wav"}

    def _say(self, sentence: str) -> None:
        self.said.append(sentence)
        self.has_said.set()

    def timeline(self, **changes: object) -> Timeline:
        sound = Sound("ramp", DIGEST, "ramp.wav", SECONDS)
        return Timeline(end=Fraction(2), sounds=(sound,), **changes)  # type: ignore[arg-type]

    def start(self, timeline: Timeline, t: Fraction = Fraction(0)) -> None:
        self.player.start(timeline, self.paths, t)
        assert self.device.has_begun.wait(30)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_the_volume_acts_on_what_plays_and_on_what_plays_next(bench: Bench) -> None:
    bench.player.set_volume(0.5)
    bench.start(bench.timeline(), Fraction(1))
    assert bench.device.ask(960)[:, 0] == pytest.approx(0.5 * bench.ramp[MIX_HZ : MIX_HZ + 960], abs=1e-3)
    bench.player.set_volume(7.0)
    assert bench.device.ask(960)[:, 0] == pytest.approx(bench.ramp[MIX_HZ + 960 : MIX_HZ + 1920], abs=1e-3)
    bench.player.stop()


def test_the_device_gets_the_sound_from_the_playhead_on(bench: Bench) -> None:
    bench.start(bench.timeline(), Fraction(1))
    heard = bench.device.ask(960)
    assert heard[:, 0] == pytest.approx(bench.ramp[MIX_HZ : MIX_HZ + 960], abs=1e-3)
    bench.player.stop()
    assert bench.device.is_closed
    assert bench.player.elapsed_s() is None


def test_the_clock_of_the_picture_is_what_was_heard_to_20_ms_whenever_the_device_asks(bench: Bench) -> None:
    bench.start(bench.timeline())
    assert bench.player.elapsed_s() == 0.0
    for step in range(5):  # the device asks for 20 ms every 20 ms: what it took before is heard when it asks
        bench.device.ask(960)
        for part in (0.0, 0.01, 0.0199):
            bench.now_s = step * 0.02 + part
            elapsed_s = bench.player.elapsed_s()
            assert elapsed_s is not None
            assert abs(elapsed_s - bench.now_s) < 0.02
    bench.now_s = 0.5  # a device that asks late: the picture waits for the sound
    assert bench.player.elapsed_s() == pytest.approx(0.1)
    bench.player.stop()


def test_silence_for_want_of_sound_does_not_count(bench: Bench) -> None:
    bench.start(bench.timeline())
    heard = bench.device.ask(10 * MIX_HZ)  # more than is ever mixed ahead
    bench.device.ask(1)
    filled = int(np.count_nonzero(heard[:, 0]))
    assert 0 < filled < MIX_HZ
    elapsed_s = bench.player.elapsed_s()
    assert elapsed_s is not None
    assert elapsed_s < 1.0
    bench.player.stop()


def test_a_device_that_falls_silent_is_reported_once_and_the_picture_goes_by_the_clock(bench: Bench) -> None:
    bench.start(bench.timeline())
    bench.device.ask(960)
    bench.now_s = 3.0
    assert bench.player.elapsed_s() is None
    assert bench.player.elapsed_s() is None
    assert len(bench.said) == 1
    assert "stopped answering" in bench.said[0]
    bench.player.stop()


def heard_at(bench: Bench, device: HandDevice, second: float) -> bool:
    """Ask until sound comes, which is mixed on another thread; return whether it is that of a second of the ramp."""
    block = device.ask(64)
    while not block[:, 0].any():
        block = device.ask(64)
    first = int(np.flatnonzero(block[:, 0])[0])
    return float(block[first, 0]) == pytest.approx(float(bench.ramp[round(second * MIX_HZ)]), abs=1e-3)


def test_a_device_that_answers_again_plays_from_where_the_picture_is(bench: Bench) -> None:
    bench.start(bench.timeline())
    bench.device.ask(960)
    bench.now_s = 1.5
    assert bench.player.elapsed_s() is None, "the picture goes by the clock"
    assert heard_at(bench, bench.device, 1.5)
    bench.device.ask(1)
    assert bench.player.elapsed_s() == pytest.approx(1.5, abs=0.02)
    assert bench.said == [LOST, FOUND]
    bench.now_s = 3.5
    assert bench.player.elapsed_s() is None
    assert bench.said == [LOST, FOUND, LOST], "it is told each time"
    bench.player.stop()


def test_a_device_that_is_pulled_out_is_replaced_by_another_one(tmp_path: Path) -> None:
    devices = [HandDevice(), HandDevice()]
    left: list[HandDevice | None] = [devices[0], None, devices[1]]
    has_failed = threading.Event()

    def opened() -> HandDevice:
        device = left.pop(0)
        if device is None:
            has_failed.set()
            raise LoomError("No sound device was found.")
        return device

    bench = Bench(tmp_path, opened)
    bench.player.start(bench.timeline(), bench.paths, Fraction(0))
    assert devices[0].has_begun.wait(30)
    devices[0].ask(960)
    bench.now_s = 0.25
    for now_s in (1.5, 7.0):
        bench.now_s = now_s
        assert bench.player.elapsed_s() is None
    assert devices[0].has_closed.wait(30)
    assert has_failed.wait(30)
    assert not devices[1].has_begun.is_set()
    bench.now_s = 13.0
    assert bench.player.elapsed_s() is None
    assert devices[1].has_begun.wait(30)
    assert heard_at(bench, devices[1], 1.0), "13 s are six times round and a second more"
    assert bench.said == [LOST, FOUND]
    bench.player.stop()
    assert devices[1].is_closed


def test_without_a_device_a_sentence_reports_it_and_nothing_is_heard(tmp_path: Path) -> None:
    def none() -> HandDevice:
        raise LoomError("No sound device was found.")

    bench = Bench(tmp_path, none)
    bench.player.start(bench.timeline(), bench.paths, Fraction(0))
    assert bench.has_said.wait(30)
    assert bench.player.elapsed_s() is None
    bench.player.stop()
    assert bench.said == ["No sound device was found."]


def test_a_device_that_does_not_start_is_closed(tmp_path: Path) -> None:
    class BusyDevice(HandDevice):
        def start(self, stream: Stream) -> None:
            raise ValueError("failed to start audio device")

    device = BusyDevice()
    bench = Bench(tmp_path, lambda: device)
    bench.player.start(bench.timeline(), bench.paths, Fraction(0))
    assert bench.has_said.wait(30)
    bench.player.stop()
    assert bench.said == ["The sound device failed."]
    assert device.is_closed


def test_muted_and_missing_sounds_open_no_device(bench: Bench) -> None:
    bench.player.start(bench.timeline(), {}, Fraction(0))
    assert bench.player.elapsed_s() is None
    bench.player.stop()
    assert not bench.device.has_begun.is_set()


@pytest.mark.parametrize("is_ping_pong", [False, True])
@pytest.mark.parametrize("is_looping", [False, True])
def test_sound_and_picture_go_the_same_way(*, is_looping: bool, is_ping_pong: bool) -> None:
    timeline = Timeline(
        loop=(Fraction(1), Fraction(3)), is_looping=is_looping, is_ping_pong=is_ping_pong, fps=Fraction(10)
    )
    route = Route.of(timeline, Fraction(3, 2))
    for frame in range(0, 14 if not is_looping else 200):
        done = frame * MIX_HZ // 10
        ((first, count, backwards),) = route.parts(done, 1)
        assert count == 1
        heard_s = (first + backwards) / MIX_HZ
        assert heard_s == pytest.approx(float(played(timeline, Fraction(3, 2), frame / 10 + 1e-6).t), abs=1e-3)


def test_a_loop_is_heard_without_a_gap(bench: Bench) -> None:
    route = Route(10, 0, 100, is_looping=True, is_ping_pong=False)
    assert route.parts(0, 250) == [(10, 90, False), (0, 100, False), (0, 60, False)]
    back = Route(0, 0, 100, is_looping=True, is_ping_pong=True)
    assert back.parts(50, 100) == [(50, 50, False), (50, 50, True)]


def test_the_null_device_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    miniaudio = pytest.importorskip("miniaudio")
    calls = threading.Event()
    real = miniaudio.PlaybackDevice

    def null(*arguments: object, **options: object) -> object:
        return real(*arguments, **options, backends=[miniaudio.Backend.NULL])

    monkeypatch.setattr(miniaudio, "PlaybackDevice", null)
    device = default_device()

    def stream() -> Stream:
        count = yield b""
        while True:
            calls.set()
            count = yield bytes(8 * count)

    played_stream = stream()
    next(played_stream)
    device.start(played_stream)
    assert calls.wait(30)
    device.close()
