"""Measure a performance by controllers: ``python packaging/live_benchmark.py [--parameters 32] [--rate 1000]``.

Opens the window with nothing remembered and a renderer that answers at once (`hand_benchmark`), maps OSC addresses to
parameters, and lets another process send every one of them so many times a second over loopback. Printed: frames a
second, how old the newest value is when its frame is painted (in ms and in frames of the screen), what the window's
thread takes, and how the process's memory grows. ``--seconds 3600`` is an evening. Without a display, run it with
``QT_QPA_PLATFORM=offscreen``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QApplication

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hand_benchmark import HEIGHT_PX, WIDTH_PX, InstantBackend, _pause, _reader, _until

from explorer_app.app import App, Places
from explorer_app.audio.mixing import MIX_HZ
from explorer_app.audio.player import Player, Stream
from explorer_app.audio.sound_files import SoundFiles
from explorer_app.cli.demo import demo_session, write_stems
from explorer_app.inputs.osc_input import OscInput
from explorer_app.messages import MessageLog
from explorer_app.rendering.backend import BackendLike
from explorer_app.session.patch_table import SetPatches
from explorer_app.session.patches import Patch
from explorer_app.session.timeline.edits import SetTimeline
from explorer_app.session.tracks import WALK, Track

_TURN_S = 8.0
"""The first parameter goes from 0 to this in as many seconds: its value is the time at which it was sent."""

_WARM_UP = 0.2
"""Share of the time after which memory counts: caches fill until then. It is read again after each further share."""


_MOST_FRAMES = 1_000_000
"""Frames whose ages are counted: four and a half hours at 60 frames a second."""


class SilentDevice:
    """Takes sound at the speed of a real device, in blocks of 20 ms, and plays none of it."""

    def __init__(self) -> None:
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, stream: Stream) -> None:
        """Begin to take sound."""
        self._thread = threading.Thread(target=self._take, args=(stream,), name="silent device", daemon=True)
        self._thread.start()

    def _take(self, stream: Stream) -> None:
        start_s, blocks = time.monotonic(), 0
        while not self._ends.wait(max(0.0, start_s + 0.02 * blocks - time.monotonic())):
            stream.send(MIX_HZ // 50)
            blocks += 1

    def close(self) -> None:
        """Stop. May be called twice."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join()


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured."""

    seconds: float
    packets: int
    frames: int
    ages_s: Sequence[float]
    thread_s: float
    process_s: float
    memory_mib: list[float]
    """At equal intervals; the first one is `_WARM_UP` after the begin."""


class Audience(QObject):
    """Counts painted frames and how old their values are."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self._ages_s = array("d", bytes(8 * _MOST_FRAMES))  # all of it now: a list that grows would count as memory
        self._frames = 0
        self.counts = False
        app.window.canvas.painted.connect(self._painted)

    @Slot(object)
    def _painted(self, frame: Any) -> None:
        if self.counts and self._frames < _MOST_FRAMES:
            self._ages_s[self._frames] = (time.monotonic() - frame.request.noise.gain) % _TURN_S
            self._frames += 1

    @property
    def ages_s(self) -> Sequence[float]:
        """Age of the newest value in each painted frame, in seconds."""
        return self._ages_s[: self._frames]


def measure(qt: QApplication, arguments: argparse.Namespace) -> Figures:
    """Open the window and let another process play."""
    gate = threading.Event()
    gate.set()
    app = App(
        qt,
        MessageLog(),
        Places(None, None),
        read=_reader(arguments.side),
        backend=cast("BackendLike", InstantBackend(gate)),
    )
    try:
        app.start()
        app.window.resize(WIDTH_PX, HEIGHT_PX)
        _until(qt, lambda: app.window.canvas.frame is not None and not app.window.canvas.frame.is_draft)
        _pause(qt, arguments.settle)
        editing = app.controller.editing
        patches = [Patch("osc/parameter/0/0", "noise.gain", 0.0, _TURN_S)]
        patches += [
            Patch(f"osc/parameter/{i}/0", f"slider/axis/{i}", -2.0, 2.0) for i in range(1, arguments.parameters)
        ]
        with tempfile.TemporaryDirectory(prefix="live-benchmark-") as folder:
            if arguments.piece:
                patches = [*_play_piece(qt, app, Path(folder)), *patches]
            editing.edit(SetPatches(tuple(patches)))
            return _played(qt, app, arguments)
    finally:
        gate.set()
        app.close()
        app.window.deleteLater()


def _played(qt: QApplication, app: App, arguments: argparse.Namespace) -> Figures:
    inputs = app.controller.live.inputs
    osc = inputs._osc = OscInput(inputs.board, port=0)
    inputs.changed.emit()
    audience = Audience(app)
    return _listen(qt, osc, audience, arguments)


def _play_piece(qt: QApplication, app: App, folder: Path) -> list[Patch]:
    """Play the demo's timeline and sounds; return its patches, but not those of the noise, which tells values' ages."""
    controller = app.controller
    sounds, facts = controller.sounds, controller.engine.model.facts
    assert facts is not None
    sounds._player = Player(_say, SilentDevice, found=_say)
    sounds._files = SoundFiles(folder)
    session = demo_session(facts, write_stems(folder), sounds._files, folder / "demo.loom")
    timeline = replace(session.timeline, tracks=(*session.timeline.tracks, Track(WALK)))
    controller.editing.edit(SetTimeline(timeline, "Demo"))
    _until(qt, lambda: all(sounds.analysis(sound.digest) for sound in timeline.sounds))
    controller.playback.set_playing(True)
    return [patch for patch in session.patches if patch.parameter != "noise.gain"]


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")


def _listen(qt: QApplication, osc: OscInput, audience: Audience, arguments: argparse.Namespace) -> Figures:
    words = map(str, (osc.port, arguments.parameters, arguments.rate, arguments.seconds + 30.0, _TURN_S))
    player = subprocess.Popen([sys.executable, str(Path(__file__).with_name("osc_sender.py")), *words])
    try:
        _until(qt, lambda: osc.received > 0)
        start_s, received = time.monotonic(), osc.received
        thread_s, process_s = time.thread_time(), time.process_time()
        audience.counts = True
        memory: list[float] = []
        timer = QTimer()
        timer.setSingleShot(True)
        timer.timeout.connect(qt.exit)
        for _ in range(round(1.0 / _WARM_UP)):
            timer.start(round(1000.0 * _WARM_UP * arguments.seconds))
            qt.exec()
            memory.append(_resident_mib())
        audience.counts = False
        ages_s = audience.ages_s
        return Figures(
            time.monotonic() - start_s,
            osc.received - received,
            len(ages_s),
            ages_s,
            time.thread_time() - thread_s,
            time.process_time() - process_s,
            memory,
        )
    finally:
        player.kill()
        player.wait()


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def report(figures: Figures, screen_hz: float) -> str:
    """Return the figures as text."""
    ages = sorted(figures.ages_s) or [0.0]
    middle, late = ages[len(ages) // 2], ages[int(0.99 * (len(ages) - 1))]
    minutes = (1.0 - _WARM_UP) * figures.seconds / 60.0
    memory = figures.memory_mib
    shown = ", ".join(f"{mib:.1f}" for mib in memory)
    growth = f"{memory[-1] - memory[0]:+.1f} MiB in the last {minutes:.1f} min ({shown})"
    return "\n".join(
        (
            f"packets parsed   {figures.packets / figures.seconds:8.0f} /s, of each address the newest",
            f"frames painted   {figures.frames / figures.seconds:8.1f} /s, on a screen of {screen_hz:g} Hz",
            f"age of a value   {1e3 * middle:8.1f} ms, {middle * screen_hz:.2f} frames",
            f"99 of 100 within {1e3 * late:8.1f} ms, {late * screen_hz:.2f} frames",
            f"window's thread  {1e3 * figures.thread_s / max(1, figures.frames):8.2f} ms of processor time a frame, "
            f"{100.0 * figures.thread_s / figures.seconds:.1f} % of a core",
            f"all threads      {1e3 * figures.process_s / max(1, figures.frames):8.2f} ms of processor time a frame, "
            f"{100.0 * figures.process_s / figures.seconds:.1f} % of a core",
            f"memory           {memory[-1]:8.1f} MiB, {growth}",
        )
    )


def main(words: Sequence[str] | None = None) -> str:
    """Measure what the command line says, print the figures and return them."""
    parser = argparse.ArgumentParser(description="Measure a performance by controllers over OSC.")
    parser.add_argument("--parameters", type=int, default=32, help="mapped parameters (32)")
    parser.add_argument("--rate", type=float, default=1000.0, help="values a second of each (1000)")
    parser.add_argument("--piece", action="store_true", help="play a timeline with sound meanwhile")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--side", type=int, default=256, help="pixels of the renderer's pictures (256)")
    parser.add_argument("--settle", type=float, default=8.0, help="seconds for small pictures before it begins (8)")
    arguments = parser.parse_args(words)
    qt = QApplication.instance()
    app = qt if isinstance(qt, QApplication) else QApplication(sys.argv[:1])
    text = report(measure(app, arguments), app.primaryScreen().refreshRate())
    sys.stdout.write(f"{text}\n")
    return text


if __name__ == "__main__":
    main()
