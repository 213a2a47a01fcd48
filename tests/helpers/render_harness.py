"""The consumer of a render thread: receives frames and events, and submits export jobs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Qt, Slot

from explorer_app.rendering.render_events import DeviceChanged, KernelsCompiling, ModelOpened, RenderEvent
from explorer_app.rendering.render_thread import RenderThread
from gpu_backend import Frame, Latent, Model, Point, Recipe, RenderRequest
from tests.helpers.fake_renderer import fake_model
from tests.helpers.patience import PATIENCE_MS

MODEL = fake_model(Path("cats.pkl"))
OTHER = fake_model(Path("dogs.pkl"))


def request(seed: int, model: Model = MODEL) -> RenderRequest:
    return RenderRequest(model.facts.model_id, ((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),))


def seed_of(request: RenderRequest) -> int:
    point = request.blend[0][0].latent.point
    assert isinstance(point, Point)
    return point.seeds[0][0]


class Job:
    """An export of the frames of some seeds. Its sink accepts nothing while `is_full`."""

    error: BaseException | None = None

    def __init__(self, *seeds: int, failing: Exception | None = None) -> None:
        self.total = len(seeds)
        self.got: list[int] = []
        self.stopped: list[bool] = []
        """For each stop, whether the user cancelled the job."""
        self.is_full = False
        self.is_joining = False
        self.unstored = 0
        """Frames that were delivered and are not in a file yet."""
        self.changed: Callable[[], None] = lambda: None
        self._seeds = list(seeds)
        self._failing = failing

    def start(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    @property
    def shown(self) -> int:
        return len(self.got) - self.unstored

    @property
    def is_ready(self) -> bool:
        return bool(self._seeds) and not self.is_full

    @property
    def has_ended(self) -> bool:
        return len(self.got) == self.total

    @property
    def is_over(self) -> bool:
        return self.has_ended or bool(self.stopped)

    def next_request(self) -> RenderRequest | None:
        return request(self._seeds.pop(0)) if self.is_ready else None

    def deliver(self, frame: Frame) -> None:
        if self._failing is not None:
            raise self._failing
        self.got.append(seed_of(frame.request))

    def stop(self, *, cancelled: bool) -> None:
        self.stopped.append(cancelled)


class _Receiver(QObject):
    """Slots of a harness: Qt drops signals that are still queued for a QObject when that is deleted.

    The reference to the harness is weak, so that both are deleted with the harness and not by the garbage collector.
    """

    def __init__(self, harness: Harness) -> None:
        super().__init__()
        self._harness = weakref.ref(harness)

    @Slot()
    def take_frame(self) -> None:
        harness = self._harness()
        if harness is not None:
            harness.take_frame()

    @Slot()
    def take_events(self) -> None:
        harness = self._harness()
        if harness is not None:
            harness.take_events()


class Harness:
    """Receives frames and events of a render thread, as the controller does."""

    def __init__(self, thread: RenderThread, qtbot: Any) -> None:
        self.thread = thread
        self.frames: list[Frame] = []
        self.announced = 0
        self.event: list[RenderEvent] = []
        self._qtbot = qtbot
        self._receiver = _Receiver(self)
        thread.frame_ready.connect(self._receiver.take_frame, Qt.ConnectionType.QueuedConnection)
        thread.events_ready.connect(self._receiver.take_events, Qt.ConnectionType.QueuedConnection)

    def take_frame(self) -> None:
        self.announced += 1
        shown = self.thread.take_frame()
        if shown is not None:
            self.frames.append(shown.frame)

    def take_events(self) -> None:
        self.event += self.thread.take_events()

    def until(self, is_so: Callable[[], object]) -> None:
        self._qtbot.waitUntil(lambda: bool(is_so()), timeout=PATIENCE_MS)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.event if isinstance(event, kind)]

    def open(self, model: Model = MODEL) -> None:
        count = len(self.of(ModelOpened))
        self.thread.open(model)
        self.until(lambda: len(self.of(ModelOpened)) > count)

    def show(self, seed: int) -> None:
        """Render a picture and wait for it."""
        self.submit(seed)
        self.until(lambda: self.frames and seed_of(self.frames[-1].request) == seed)

    @property
    def devices(self) -> list[str]:
        """The devices that rendered, in order."""
        return [event.device.id for event in self.event if isinstance(event, ModelOpened | DeviceChanged)]

    @property
    def compiling(self) -> list[tuple[int, int]]:
        """(done, total) of each report of compiled kernels, in order."""
        return [(event.done, event.total) for event in self.of(KernelsCompiling)]

    def submit(self, seed: int, model: Model = MODEL) -> None:
        self.thread.submit(request(seed, model), 0.0)
