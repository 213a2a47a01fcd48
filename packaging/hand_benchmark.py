"""Measure what a hand costs: ``python packaging/hand_benchmark.py [--events 250] [--renderer instant]``.

Opens the window with nothing remembered, drags on the picture from another thread at a fixed rate, and prints events
and frames a second, and the processor time of the window's thread. Two runs tell events and frames apart: in the first
one the renderer stands still, so only events cost; in the second one frames come too. The window asks for a picture
with each refresh of the screen at most, so no more frames are shown than the screen can show.

``--renderer instant`` answers every request at once with a stored picture of ``--side`` pixels, so the figures are
those of the window alone. ``--renderer real`` renders the bundled model on ``--device``. Without a display, run it with
``QT_QPA_PLATFORM=offscreen``.
"""

from __future__ import annotations

import argparse
import math
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
sys.path.insert(0, str(ROOT))

import explorer_app  # noqa: E402, F401 - before NumPy, whose library of linear algebra it keeps to one thread

# isort: split
import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

import gpu_backend  # noqa: E402
from explorer_app.app import App, Places  # noqa: E402
from explorer_app.messages import Message, MessageLog  # noqa: E402
from explorer_app.rendering.backend import BackendLike  # noqa: E402
from gpu_backend import Frame, FrameTimings, Model, RenderRequest  # noqa: E402

WIDTH_PX, HEIGHT_PX = 1600, 980
PATIENCE_S = 120.0
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
class Cost:
    """What a drag cost. `thread_s` is the processor time of the window's thread, `process_s` that of all threads."""

    seconds: float
    events: int
    frames: int
    thread_s: float
    process_s: float

    @property
    def share(self) -> float:
        """Part of a core that the window's thread took."""
        return self.thread_s / self.seconds


class Hand:
    """A thread that drags in a circle on the picture, with as many events a second as are asked for."""

    def __init__(self, app: App, events_per_s: float, seconds: float, done: Callable[[], object]) -> None:
        self._window, self._canvas = app.window, app.window.canvas
        self._gap_s, self._seconds = 1.0 / events_per_s, seconds
        self._done = done
        self.frames = 0
        self._canvas.painted.connect(self._count)
        self._clock = time.pthread_getcpuclockid(threading.main_thread().ident or 0)
        self.cost: Cost | None = None
        self._thread = threading.Thread(target=self._drag, name="hand", daemon=True)

    def start(self) -> None:
        """Begin to drag."""
        self._thread.start()

    def close(self) -> None:
        """Count no more."""
        self._thread.join()
        self._canvas.painted.disconnect(self._count)

    def _count(self, _frame: object) -> None:
        self.frames += 1

    def _drag(self) -> None:
        middle = QPointF(self._canvas.mapTo(self._window, self._canvas.rect().center()))
        self._post(QEvent.Type.MouseButtonPress, middle)
        time.sleep(0.5)  # what the press alone sets off is over
        start_s, frames = time.perf_counter(), self.frames
        thread_s, process_s = time.clock_gettime(self._clock), time.process_time()
        count = 0
        while (passed_s := time.perf_counter() - start_s) < self._seconds:
            count += 1
            angle = 2.0 * math.pi * passed_s
            turn = QPointF(_RADIUS_PX * math.sin(angle), _RADIUS_PX * (1.0 - math.cos(angle)))
            self._post(QEvent.Type.MouseMove, middle + turn)
            time.sleep(max(0.0, start_s + count * self._gap_s - time.perf_counter()))
        self.cost = Cost(
            time.perf_counter() - start_s,
            count,
            self.frames - frames,
            time.clock_gettime(self._clock) - thread_s,
            time.process_time() - process_s,
        )
        self._post(QEvent.Type.MouseButtonRelease, middle)
        self._done()

    def _post(self, kind: QEvent.Type, at: QPointF) -> None:
        window = self._window.windowHandle()
        button = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseMove else _LEFT
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else _LEFT
        there = QPointF(self._window.mapToGlobal(at.toPoint()))
        event = QMouseEvent(kind, at, at, there, button, held, Qt.KeyboardModifier.NoModifier)
        event.setTimestamp(time.monotonic_ns() // 1_000_000)
        QApplication.postEvent(window, event)


def measure(qt: QApplication, arguments: argparse.Namespace) -> tuple[Cost | None, Cost]:
    """Open the window and drag; return the cost of events alone, where that can be told, and of events with frames."""
    gate = threading.Event()
    gate.set()
    is_instant = arguments.renderer == "instant"
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
        events = None
        if is_instant:
            gate.clear()
            events = _drag(qt, app, arguments)
            gate.set()
            _pause(qt, 1.0)
        frames = _drag(qt, app, arguments)
        if arguments.save:
            app.window.grab().save(arguments.save)
        return events, frames
    finally:
        gate.set()
        app.close()
        app.window.deleteLater()


def _drag(qt: QApplication, app: App, arguments: argparse.Namespace) -> Cost:
    """Drag while Qt's own event loop runs, so that no polling is counted."""
    loop = QEventLoop()
    hand = Hand(app, arguments.events, arguments.seconds, lambda: QMetaObject.invokeMethod(loop, "quit", _QUEUED))
    hand.start()
    loop.exec()
    hand.close()
    qt.processEvents()
    refuse_messages([line.message for line in app.window.message_strip.lines])
    assert hand.cost is not None
    return hand.cost


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
    lines = [
        f"events           {whole.events / whole.seconds:7.0f} /s",
        f"frames painted   {whole.frames / whole.seconds:7.1f} /s, on a screen of {screen_hz:g} Hz",
        f"window's thread  {100.0 * whole.share:7.1f} % of a core",
        f"all threads      {100.0 * whole.process_s / whole.seconds:7.1f} % of a core",
    ]
    if events is not None:
        event_ms = 1e3 * events.thread_s / events.events
        frame_ms = (1e3 * whole.thread_s - event_ms * whole.events) / max(1, whole.frames)
        lines += [
            f"an event         {event_ms:7.3f} ms of the window's thread",
            f"a frame          {frame_ms:7.3f} ms",
            f"both             {event_ms + frame_ms:7.3f} ms",
        ]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> str:
    """Measure what the command line says, print the figures and return them."""
    parser = argparse.ArgumentParser(description="Measure what a hand costs: events, frames, the window's thread.")
    parser.add_argument("--events", type=float, default=250.0, help="mouse events a second (250)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each drag takes (5)")
    parser.add_argument("--renderer", choices=("instant", "real"), default="instant", help="what answers (instant)")
    parser.add_argument("--side", type=int, default=1024, help="pixels of the instant renderer's pictures (1024)")
    parser.add_argument("--device", default="auto", help="what the real renderer runs on (auto)")
    parser.add_argument("--settle", type=float, default=8.0, help="seconds for small pictures before the drag (8)")
    parser.add_argument("--save", default="", help="write a picture of the window at the end to this file")
    arguments = parser.parse_args(words)
    qt = QApplication.instance()
    app = qt if isinstance(qt, QApplication) else QApplication(sys.argv[:1])
    text = report(*measure(app, arguments), app.primaryScreen().refreshRate())
    sys.stdout.write(f"{text}\n")
    return text


if __name__ == "__main__":
    main()
