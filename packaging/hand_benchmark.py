"""Measure what a hand costs: ``python packaging/hand_benchmark.py [--events 250] [--renderer instant] [--mouse x]``.

Opens the window with nothing remembered, drags on the picture at a fixed rate, and prints events and frames a second,
the processor time of the window's thread, and the time from an input to the paint of its picture. Two kinds of drags
tell events and frames apart: in the first kind the renderer stands still, so only events cost; in the second one frames
come too. They alternate, and medians over a quarter of a second count, so that what else the machine does matters less;
the last line says how much that was. The window asks for a picture with each refresh of the screen at most, so no more
frames are shown than the screen can show.

``--mouse x`` moves the pointer of the X server through XTEST, from another process: the server and Qt merge moves that
are not taken, as those of a real mouse. ``--mouse posted`` posts each event to Qt's queue from another thread, where
nothing merges them: the most that a window can get. The default is both, where the display is an X server with XTEST.

``--renderer instant`` answers every request at once with a stored picture of ``--side`` pixels, so the figures are
those of the window alone. ``--renderer real`` renders the bundled model on ``--device``. Without a display, run it with
``QT_QPA_PLATFORM=offscreen``.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from PySide6.QtCore import QEvent, QEventLoop, QMetaObject, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "packaging")]

import explorer_app  # noqa: E402, F401 - before NumPy, whose library of linear algebra it keeps to one thread

# isort: split
import numpy as np  # noqa: E402
import x_mouse  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import gpu_backend  # noqa: E402
from explorer_app.app import App, Places  # noqa: E402
from explorer_app.messages import Message, MessageLog  # noqa: E402
from explorer_app.rendering.backend import BackendLike  # noqa: E402
from gpu_backend import Frame, FrameTimings, Model, RenderRequest  # noqa: E402

WIDTH_PX, HEIGHT_PX = 1600, 980
PATIENCE_S = 120.0
SPAN_S = 0.25
"""Medians are those of spans this long, in seconds."""
ROUNDS = 3
REST_S = 0.5
"""Pause after each drag, in seconds, for what it left to do."""
MICE = {"x": "Pointer of the X server, moves merged", "posted": "Events posted one by one"}
_PICTURES = 8
_RADIUS_PX = 120.0
_LEFT = Qt.MouseButton.LeftButton
_QUEUED = Qt.ConnectionType.QueuedConnection


class InstantRenderer:
    """Answers with stored pictures; `gate` holds answers back while it is not set."""

    def __init__(self, model: Model, gate: threading.Event, directions: Any, device: Any) -> None:
        self.facts = model.facts
        self.directions, self.device, self.memory, self.options = directions, device, None, None
        self._gate = gate
        self._number = 0
        random = np.random.default_rng(0)
        self._pictures: dict[int, list[NDArray[np.uint8]]] = {}
        for side in (*model.facts.draft_resolutions, model.facts.resolution):
            self._pictures[side] = [_noise(random, side) for _ in range(_PICTURES)]

    def prepare_step(self, request: RenderRequest) -> bool:
        """Return that nothing needs preparation."""
        return False

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        """Answer, once the gate is open."""
        self._gate.wait()
        self._number += 1
        side = request.resolution or self.facts.resolution
        timings = FrameTimings(total_ms=0.5, latent_ms=0.1, synthesis_ms=0.4)
        pixels = self._pictures[side][self._number % _PICTURES]
        return Frame(request, pixels, timings, is_draft=side < self.facts.resolution)

    def close(self) -> None:
        """Let go of whatever waits."""
        self._gate.set()


class InstantBackend:
    """Makes instant renderers."""

    def __init__(self, gate: threading.Event) -> None:
        self._gate = gate

    def preload(self) -> None:
        """Nothing is needed."""

    def preload_gpu(self, choice: Any) -> None:
        """Nothing is needed."""

    def prepare_device(self, choice: Any) -> None:
        """Nothing."""

    def compiles_soon(self, missing: int) -> bool:
        """Nothing is compiled."""
        return False

    def import_processor(self) -> None:
        """Nothing is needed."""

    def find_devices(self) -> Sequence[Any]:
        """There is the processor alone."""
        return (gpu_backend.find_devices()[-1],)

    def kernels_ready(self, model: Model, choice: Any) -> tuple[int, int]:
        """None are needed."""
        return 0, 0

    def kernel_checks(self, model: Model, choice: Any) -> None:
        """None are needed."""

    def make_renderer(self, model: Model, choice: Any) -> InstantRenderer:
        """Make one, with the directions of a real renderer."""
        real = gpu_backend.Renderer(model, "cpu")
        renderer = InstantRenderer(model, self._gate, real.directions, real.device)
        real.close()
        return renderer


def _noise(random: np.random.Generator, side: int) -> NDArray[np.uint8]:
    pixels = random.integers(0, 256, (side, side, 4), np.uint8)
    pixels[..., 3] = 255
    pixels.flags.writeable = False
    return pixels


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters at a moment: the clock, the processor time of the window's thread, of the process, of all; frames."""

    at_s: float
    thread_s: float
    process_s: float
    frames: int
    busy_s: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What drags cost.

    Attributes
    ----------
    seconds, events, frames
        How long they took, the events that were sent and the frames that were painted.
    share
        Part of a core that the window's thread took: the median over spans of `SPAN_S`.
    process_s, others_s
        Processor time of this process and of all others together.
    latencies_ms
        From an input to the paint of its picture.
    """

    seconds: float
    events: int
    frames: int
    share: float
    process_s: float
    others_s: float
    latencies_ms: tuple[float, ...]

    @classmethod
    def of(cls, drags: Sequence[tuple[int, Sequence[Reading], Sequence[float]]]) -> Cost:
        """Return what several drags cost together; each has its number of events, readings and latencies."""
        spans = [pair for _, readings, _ in drags for pair in itertools.pairwise(readings)]
        ends = [(readings[0], readings[-1]) for _, readings, _ in drags]
        process_s = sum(end.process_s - start.process_s for start, end in ends)
        return cls(
            seconds=sum(end.at_s - start.at_s for start, end in ends),
            events=sum(count for count, _, _ in drags),
            frames=sum(end.frames - start.frames for start, end in ends),
            share=statistics.median((end.thread_s - start.thread_s) / (end.at_s - start.at_s) for start, end in spans),
            process_s=process_s,
            others_s=max(0.0, sum(end.busy_s - start.busy_s for start, end in ends) - process_s),
            latencies_ms=tuple(value for _, _, values in drags for value in values),
        )


class Hand:
    """A thread that drags in a circle on the picture, with as many events a second as are asked for."""

    def __init__(self, app: App, mouse: str, events_per_s: float, seconds: float, done: Callable[[], object]) -> None:
        self._window, self._canvas = app.window, app.window.canvas
        self._statistics = app.controller.engine.preview.statistics
        self._mouse, self._rate, self._seconds = mouse, events_per_s, seconds
        self._done = done
        self._frames = 0
        self.readings: list[Reading] = []
        self.latencies_ms: list[float] = []
        self.events = 0
        self._canvas.painted.connect(self._count)
        self._clock = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        middle = self._canvas.rect().center()
        self._middle = QPointF(self._canvas.mapTo(self._window, middle))
        self._on_screen = self._canvas.mapToGlobal(middle)
        self._thread = threading.Thread(target=self._drag, name="hand", daemon=True)

    def start(self) -> None:
        """Begin to drag."""
        self._thread.start()

    def close(self) -> None:
        """Count no more."""
        self._thread.join()
        self._canvas.painted.disconnect(self._count)

    def _count(self, _frame: object) -> None:
        self._frames += 1
        if self._statistics.newest_latency_ms is not None:
            self.latencies_ms.append(self._statistics.newest_latency_ms)

    def _drag(self) -> None:
        try:
            if self._mouse == "x":
                self._drag_pointer()
            else:
                self._drag_by_events()
        finally:
            self._done()

    def _read(self) -> None:
        thread_s, process_s = time.clock_gettime(self._clock), time.process_time()
        self.readings.append(Reading(time.perf_counter(), thread_s, process_s, self._frames, busy_s()))

    def _drag_by_events(self) -> None:
        self._post(QEvent.Type.MouseButtonPress, self._middle)
        time.sleep(x_mouse.SETTLE_S)
        self.latencies_ms.clear()
        self._read()
        start_s = self.readings[0].at_s
        while (passed_s := time.perf_counter() - start_s) < self._seconds:
            self.events += 1
            self._post(QEvent.Type.MouseMove, self._middle + QPointF(*x_mouse.place(_RADIUS_PX, passed_s)))
            if passed_s >= len(self.readings) * SPAN_S:
                self._read()
            time.sleep(max(0.0, start_s + self.events / self._rate - time.perf_counter()))
        self._read()
        self._post(QEvent.Type.MouseButtonRelease, self._middle)

    def _drag_pointer(self) -> None:
        at = self._on_screen
        words = (self._rate, self._seconds, _RADIUS_PX, at.x(), at.y())
        command = [sys.executable, "-S", x_mouse.__file__, *(str(word) for word in words)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            if process.stdout.readline() != f"{x_mouse.MOVING}\n":
                raise SystemExit("The pointer of the X server could not be moved.")
            self.latencies_ms.clear()
            self._read()
            for count in range(1, round(self._seconds / SPAN_S)):
                time.sleep(max(0.0, self.readings[0].at_s + count * SPAN_S - time.perf_counter()))
                self._read()
            self.events = int(process.stdout.readline())
            self._read()

    def _post(self, kind: QEvent.Type, at: QPointF) -> None:
        window = self._window.windowHandle()
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else _LEFT
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else _LEFT
        there = QPointF(self._window.mapToGlobal(at.toPoint()))
        event = QMouseEvent(kind, at, at, there, button, held, Qt.KeyboardModifier.NoModifier)
        event.setTimestamp(time.monotonic_ns() // 1_000_000)
        QApplication.postEvent(window, event)


def busy_s() -> float:
    """Return the processor time of all processes of this machine so far, in seconds; 0 without /proc."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _idle, _wait, interrupt, soft, *_ = map(int, file.readline().split()[1:])
    except OSError:
        return 0.0
    return (user + nice + system + interrupt + soft) / os.sysconf("SC_CLK_TCK")


def has_x_pointer() -> bool:
    """Return whether the display is an X server whose pointer can be moved."""
    try:
        for name in x_mouse.LIBRARIES:
            ctypes.CDLL(name)
    except OSError:
        return False
    return QApplication.platformName() == "xcb"


Drags = dict[str, tuple[Cost | None, Cost]]
"""By the mouse: the cost of events alone, where that can be told, and of events with frames."""


def measure(qt: QApplication, arguments: argparse.Namespace) -> Drags:
    """Open the window and drag with each mouse."""
    gate = threading.Event()
    gate.set()
    is_instant = arguments.renderer == "instant"
    mice = ("x", "posted") if has_x_pointer() else ("posted",)
    if arguments.mouse != "both":
        mice = (arguments.mouse,)
    app = App(
        qt,
        MessageLog(),
        Places(None, None),
        device=arguments.device,
        read=_reader(arguments.side) if is_instant else None,
        backend=cast("BackendLike", InstantBackend(gate)) if is_instant else None,
    )
    try:
        app.collector.hold()  # as in a start by hand
        app.start()
        app.window.resize(WIDTH_PX, HEIGHT_PX)
        _until(qt, lambda: app.window.canvas.frame is not None and not app.window.canvas.frame.is_draft)
        app.collector.release()
        _pause(qt, arguments.settle)
        costs: Drags = {}
        for mouse in mice:
            events, frames = [], []
            for _ in range(ROUNDS):
                if is_instant:
                    gate.clear()
                    events.append(_drag(qt, app, mouse, arguments))
                    gate.set()
                    _pause(qt, REST_S)
                frames.append(_drag(qt, app, mouse, arguments))
                _pause(qt, REST_S)
            costs[mouse] = (Cost.of(events) if events else None), Cost.of(frames)
        if arguments.save:
            app.window.grab().save(arguments.save)
        return costs
    finally:
        gate.set()
        app.close()
        app.window.deleteLater()


def _drag(
    qt: QApplication, app: App, mouse: str, arguments: argparse.Namespace
) -> tuple[int, Sequence[Reading], Sequence[float]]:
    """Drag while Qt's own event loop runs, so that no polling is counted."""
    loop = QEventLoop()
    hand = Hand(
        app,
        mouse,
        arguments.events,
        arguments.seconds / ROUNDS,
        lambda: QMetaObject.invokeMethod(loop, "quit", _QUEUED),
    )
    hand.start()
    loop.exec()
    hand.close()
    qt.processEvents()
    refuse_messages([line.message for line in app.window.message_strip.lines])
    if len(hand.readings) < 2:
        raise SystemExit("The drag did not begin.")
    return hand.events, hand.readings, hand.latencies_ms


def refuse_messages(messages: Sequence[Message]) -> None:
    """End if a message is shown: it takes room from the picture and is painted, so the figures would be others."""
    if messages:
        raise SystemExit(f"A message was shown during the drag: {messages[0].sentence}")


def _reader(side: int) -> Any:
    def read(path: Path, **callbacks: Any) -> Model:
        model = gpu_backend.read_model(path, **callbacks)
        return replace(model, facts=replace(model.facts, resolution=side))

    return read


def _until(qt: QApplication, is_so: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise SystemExit("The window did not come to rest.")
        qt.processEvents()
        time.sleep(0.001)


def _pause(qt: QApplication, seconds: float) -> None:
    end = time.monotonic() + seconds
    _until(qt, lambda: time.monotonic() > end)


def report(events: Cost | None, whole: Cost, screen_hz: float) -> str:
    """Return the figures as text."""
    fps, core = whole.frames / whole.seconds, 100.0 / whole.seconds
    lines = [
        f"events           {whole.events / whole.seconds:7.0f} /s",
        f"frames painted   {fps:7.1f} /s, on a screen of {screen_hz:g} Hz",
        f"window's thread  {100.0 * whole.share:7.1f} % of a core",
        f"all threads      {core * whole.process_s:7.1f} % of a core",
    ]
    if len(whole.latencies_ms) > 1:
        percentiles = statistics.quantiles(whole.latencies_ms, n=100, method="inclusive")
        lines.append(f"input to paint   {percentiles[49]:7.1f} ms; one in a hundred {percentiles[98]:.1f} ms or more")
    if events is not None:
        event_ms = 1e3 * events.share * events.seconds / events.events
        frame_ms = 1e3 * (whole.share - events.share) / fps if whole.frames else 0.0
        lines.append(f"an event         {event_ms:7.3f} ms of the window's thread, with its part of a request")
        if frame_ms > 0.0:
            lines.append(f"a frame          {frame_ms:7.3f} ms")
            lines.append(f"both             {event_ms + frame_ms:7.3f} ms")
        else:
            lines.append("a frame          not told apart from events: too few were painted, or the machine was busy")
    cores = os.cpu_count() or 1
    lines.append(f"other processes  {core * whole.others_s:7.0f} % of a core, of {100 * cores}")
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> str:
    """Measure what the command line says, print the figures and return them."""
    parser = argparse.ArgumentParser(description="Measure what a hand costs: events, frames, the window's thread.")
    parser.add_argument("--events", type=float, default=250.0, help="mouse events a second (250)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each kind of drag takes in all (5)")
    parser.add_argument("--mouse", choices=("both", *MICE), default="both", help="what moves the pointer (both)")
    parser.add_argument("--renderer", choices=("instant", "real"), default="instant", help="what answers (instant)")
    parser.add_argument("--side", type=int, default=1024, help="pixels of the instant renderer's pictures (1024)")
    parser.add_argument("--device", default="auto", help="what the real renderer runs on (auto)")
    parser.add_argument("--settle", type=float, default=8.0, help="seconds for small pictures before the drag (8)")
    parser.add_argument("--save", default="", help="write a picture of the window at the end to this file")
    arguments = parser.parse_args(words)
    qt = QApplication.instance()
    app = qt if isinstance(qt, QApplication) else QApplication(sys.argv[:1])
    hz = app.primaryScreen().refreshRate()
    costs = measure(app, arguments)
    text = "\n\n".join(f"{MICE[mouse]}\n{report(*cost, hz)}" for mouse, cost in costs.items())
    sys.stdout.write(f"{text}\n")
    return text


if __name__ == "__main__":
    main()
