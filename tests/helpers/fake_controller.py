"""A synchronous controller without engine or threads: it paints landscapes and records its calls."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QObject, QTimer, Signal

from explorer_app.controller import DeviceState, KeptArithmetic, PhotoProjection, PointDrag, Snapshots, VariationGrid
from explorer_app.controller.progress import ExportProgress, Loading
from explorer_app.messages import MessageLog
from explorer_app.rendering.frame_statistics import FrameStatistics
from explorer_app.rendering.thumbnails import ThumbnailStore
from explorer_app.session.edits import AddSources, Edit, GoToSeed
from explorer_app.session.history import History, KeptSession, tags_of
from explorer_app.session.model_files import ModelFiles
from explorer_app.session.resolve import kept_latent
from explorer_app.session.session import ModelReference, Session, Source
from gpu_backend import (
    Comparison,
    Frame,
    FrameTimings,
    LayerFacts,
    ModelFacts,
    RenderOptions,
    RenderRequest,
    Roofline,
    RowRange,
    StepTime,
    StoredLatent,
)
from tests.helpers.fake_drag import FakeDragMaker, FakeDragRenders
from tests.helpers.fake_files import FakeExport, FakeFiles, FakePictures
from tests.helpers.fake_grid import FakeGridRenders, FakeWorker
from tests.helpers.fake_live import FakeLive, FakePlayed
from tests.helpers.fake_pictures import FakeWholePictures
from tests.helpers.fake_playback import FakePlayback, FakeSounds
from tests.helpers.fake_projection import FakeProjectionRenders
from tests.helpers.fake_searches import (
    Calls,
    FakeDirectionFinding,
    FakeLadder,
    FakeLearning,
    FakeLocalEditing,
    FakeTuning,
)
from tests.helpers.taps import layer_pixels, tapped_layer


@dataclass(frozen=True)
class FakeDevice:
    id: str = "cpu"
    name: str = "CPU"
    precision: str = "fp32"
    reason: str = "CPU: this version renders on the processor."
    memory_nbytes: int = 0
    roofline: Roofline | None = None
    driver: str = ""


@dataclass(frozen=True)
class FakeDirections:
    names: tuple[str, ...]
    reach: tuple[float, ...]
    vectors: NDArray[np.float32]
    rows: tuple[RowRange, ...]
    centre: tuple[float, ...]


def facts(**changes: Any) -> ModelFacts:
    """Facts of a small landscape model."""
    rows = tuple(side for side in (4, 8, 16, 32, 64, 128, 256) for _ in range(2))
    known = ModelFacts(
        path="/models/landscapes-256.safetensors",
        name="Landscapes 256",
        nbytes=34_800_000,
        model_id="5f2d9c1e" * 8,
        container="NVIDIA PyTorch pickle",
        family="StyleGAN2",
        flavour="ADA",
        architecture="skip",
        resolution=256,
        img_channels=3,
        z_dim=512,
        w_dim=512,
        num_ws=14,
        c_dim=0,
        mapping_layers=8,
        parameters=8_700_000,
        conv_clamp=256.0,
        fp16_layers=("b128.conv0", "b256.conv0"),
        noise_layers=tuple(f"b{side}.conv{i}" for side in (4, 8, 16, 32, 64, 128, 256) for i in (0, 1))[1:],
        draft_resolutions=(32, 64, 128),
        row_resolutions=rows,
        names_requested=("collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"),
        ignored=("D: discriminator", "G: the network without averaging"),
        layers=tuple(
            LayerFacts(f"b{side}.{name}", 3 if name == "torgb" else min(512, 16384 // side), side)
            for side in (4, 8, 16, 32, 64, 128, 256)
            for name in ("conv0", "conv1", "torgb")
        )[1:],
    )
    return replace(known, **changes)


def directions(count: int = 8, w_dim: int = 512) -> FakeDirections:
    return FakeDirections(
        tuple(f"sefa/{i}" for i in range(count)),
        tuple(6.0 - 0.15 * i for i in range(count)),
        np.eye(count, w_dim, dtype=np.float32),
        (RowRange(),) * count,
        (0.0,) * count,
    )


@functools.lru_cache(maxsize=32)
def landscape(x: float, y: float, side: int = 256) -> NDArray[np.uint8]:
    """Return (side, side, 4) uint8 B, G, R, X: hills under a sun that depend on the position."""
    down, right = np.mgrid[0:side, 0:side].astype(np.float32) / side
    warm = 0.5 + 0.5 * np.sin(x * 1.7 + y * 0.6)
    top = np.array([96, 72, 40]) * (1 - warm) + np.array([110, 60, 90]) * warm
    low = np.array([190, 180, 120]) * (1 - warm) + np.array([90, 150, 225]) * warm
    picture = top + (low - top) * np.clip(down * 1.6, 0, 1)[..., None]
    sun_x, sun_y = 0.5 + 0.3 * np.sin(x * 0.9), 0.38 + 0.12 * np.cos(y * 1.1 + x * 0.3)
    far = np.hypot(right - sun_x, down - sun_y)
    for radius, strength in ((0.16, 0.18), (0.1, 0.3), (0.06, 1.0)):
        inside = np.clip((radius - far) * side, 0, 1)[..., None] * strength
        picture = picture * (1 - inside) + np.array([215, 240, 255]) * inside
    for layer in range(4):
        height = 0.5 + 0.11 * layer
        for wave in range(1, 4):
            height = height + 0.035 / wave * np.sin(right * 5.1 * wave + x * (1 + layer) * 0.7 + y * wave + layer * 2.2)
        shade = np.array([120, 98, 78]) * (1 - layer / 4) + np.array([40, 26, 18])
        inside = np.clip((down - height) * side, 0, 1)[..., None]
        picture = picture * (1 - inside) + shade * inside
    result = np.full((side, side, 4), 255, np.uint8)
    result[..., :3] = np.clip(picture, 0, 255).astype(np.uint8)
    result.flags.writeable = False
    return result


class FakeModel(QObject):
    """Stands for `ModelOpener`."""

    loading_changed = Signal()
    failed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.facts: ModelFacts | None = None
        self.directions: FakeDirections | None = None
        self.is_bundled = self.has_bundled = True
        self.loading: Loading | None = None

    def load(self, loading: Loading | None) -> None:
        self.loading = loading
        self.loading_changed.emit()


class FakeDevices(QObject):
    """Stands for `DeviceSelector`."""

    changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.state = DeviceState(devices=(FakeDevice(),))

    def choose_device(self, device: str) -> None:
        self._calls.append(("choose_device", device))

    def choose_precision(self, precision: str) -> None:
        self._calls.append(("choose_precision", precision))

    def try_again(self) -> None:
        self._calls.append(("try_device_again",))


class FakePreview(QObject):
    """Stands for `Preview`."""

    frame_changed = Signal()
    statistics_changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.frame: Frame | None = None
        self.statistics = FrameStatistics()
        self.painted: list[Frame] = []
        self.input_ages: list[float] = []
        self.waits_s: list[float] = []
        self.reads_values = False

    def frame_painted(self, frame: Frame) -> None:
        self.painted.append(frame)
        self.statistics.frame_painted(time.monotonic() - 0.03, time.monotonic())

    def input_came(self, age_s: float) -> None:
        self.input_ages.append(age_s)

    def wait_for_frame(self, timeout_s: float) -> None:
        self.waits_s.append(timeout_s)

    def set_reading_values(self, on: bool) -> None:
        self._calls.append(("set_reading_values", on))
        self.reads_values = on


class FakeEngine(QObject):
    """Stands for `Engine`."""

    model_changed = Signal()
    options_changed = Signal()
    comparison_changed = Signal()
    counting_changed = Signal()

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self._calls = calls
        self.model = FakeModel()
        self.devices = FakeDevices(calls)
        self.preview = FakePreview(calls)
        self.stored_picture: Any = None
        self.options = RenderOptions()
        self.comparison: Comparison | None = None
        self.is_counting = False
        self.is_comparing = False

    def set_options(self, options: RenderOptions) -> None:
        self._calls.append(("set_render_options", options))
        self.options = options
        self.options_changed.emit()

    def compare(self) -> None:
        self._calls.append(("compare",))
        self.show_comparison(self.comparison, is_comparing=True)

    def measure_counters(self) -> None:
        self._calls.append(("measure_counters",))
        self.show_counting(True)

    def show_counting(self, on: bool) -> None:
        self.is_counting = on
        self.counting_changed.emit()

    def show_comparison(self, comparison: Comparison | None, *, is_comparing: bool = False) -> None:
        self.comparison, self.is_comparing = comparison, is_comparing
        self.comparison_changed.emit()

    def save_trace(self, path: Path | str) -> None:
        self._calls.append(("save_trace", Path(path)))

    def set_measuring(self, on: bool) -> None:
        self._calls.append(("set_measuring", on))

    def render(
        self, session: Session, *, resolution: int | None = None, total_ms: float = 21.0, measured: bool = False
    ) -> Frame:
        """Show the picture of a session, as after an answer of the render thread."""
        known, preview = self.model.facts, self.preview
        assert known is not None
        side = resolution or min(known.resolution, 512)
        place = session.position
        pixels = landscape(place.x, place.y, side)
        steps = tuple(
            StepTime(f"synthesis.b{r}.{name}", kernel, 240.0 * share * r / 64, 90_000_000 * r // 64, 1_000_000)
            for r in known.row_resolutions[::2]
            for name, kernel, share in (
                ("conv0", "modulated_conv", 1.7),
                ("conv1", "modulated_conv", 1.9),
                ("torgb", "to_rgb", 0.3),
            )
        )
        frame = Frame(
            RenderRequest(known.model_id, resolution=resolution),
            pixels,
            FrameTimings(total_ms, 1.0, total_ms - 1, steps if measured else ()),
            is_draft=resolution is not None,
        )
        if session.tap is not None:
            request = RenderRequest(known.model_id, tap=session.tap, wants_tap_values=preview.reads_values)
            pixels, shown = layer_pixels(request, known), tapped_layer(request, known)
            frame = replace(frame, request=request, pixels=pixels, is_draft=False, tap=shown)
        preview.frame = frame
        preview.statistics.frame_arrived(frame, time.monotonic())
        preview.frame_changed.emit()
        preview.statistics_changed.emit()
        return frame


class FakeKept:
    """Stands for `KeptPictures`."""

    def __init__(self, editing: FakeEditing, calls: Calls) -> None:
        self._editing = editing
        self._calls = calls

    @property
    def sessions(self) -> tuple[KeptSession, ...]:
        kept = self._editing.history.kept
        return tuple(KeptSession(item.session, item.label, item.kept_s) for item in kept)

    def star(self, number: int, starred: bool) -> None:
        self._calls.append(("star", number, starred))
        self._show(self._editing.history.starred(number, starred))

    def rename(self, number: int, name: str) -> None:
        self._calls.append(("rename_kept", number, name))
        self._show(self._editing.history.renamed(number, name))

    def tag(self, numbers: Sequence[int], text: str) -> None:
        self._calls.append(("tag_kept", tuple(numbers), text))
        self._show(self._editing.history.tagged(numbers, tags_of(text)))

    def drop(self, numbers: Sequence[int]) -> None:
        self._calls.append(("drop_kept", tuple(numbers)))
        history = self._editing.history
        for number in numbers:
            history = history.starred(number, False)
        self._show(history)

    def move(self, number: int, before: int | None) -> None:
        self._calls.append(("move_kept", number, before))
        self._show(self._editing.history.moved_kept(number, before))

    def add(self, sessions: Sequence[KeptSession]) -> None:
        self._calls.append(("keep", sessions))
        self._show(self._editing.history.with_kept(tuple(sessions)))

    def _show(self, history: History) -> None:
        self._editing.history = history
        self._editing.history_changed.emit()


class FakeEditing(QObject):
    """Stands for `Editing`: without gestures of several sources, and without an autosave."""

    session_changed = Signal()
    history_changed = Signal()
    drifting_changed = Signal()
    stepped = Signal()

    def __init__(self, calls: Calls, engine: FakeEngine) -> None:
        super().__init__()
        self._calls = calls
        self._engine = engine
        self._model = engine.model
        self._before: Session | None = None
        self.before_edit: list[Callable[[str], object]] = []
        self.session = Session()
        self.history = History()
        self.kept = FakeKept(self, calls)
        self.drifting = False
        self.drift_speed = 0.25
        self.unsaved = ""
        self.screen_hz = 0.0

    def follow_screen(self, hz: float) -> None:
        self.screen_hz = hz

    def save_now(self) -> None:
        self._calls.append(("save_now",))

    def edit(self, edit: Edit, final: bool = True, source: str = "", *, by_search: bool = False) -> None:
        self._calls.append(("edit", edit, final))
        self.announce_edit(source)
        if self._before is None:
            self._before = self.session
        self.session = edit.apply(self.session)
        if final:
            self._before = None
            self.history = self.history.added(self.session, edit.label)
        self._changed(final)

    def announce_edit(self, source: str) -> None:
        for call in self.before_edit:
            call(source)

    def cancel_gesture(self, source: str | None = None) -> None:
        self._calls.append(("cancel_gesture",))
        if self._before is not None:
            self.session, self._before = self._before, None
            self._changed(False)

    def undo(self) -> None:
        self._calls.append(("undo",))
        if self.history.can_undo:
            self.stepped.emit()
            self._go(self.history.position - 1)

    def redo(self) -> None:
        self._calls.append(("redo",))
        if self.history.can_redo:
            self._go(self.history.position + 1)

    def go_to(self, index: int) -> None:
        self._calls.append(("go_to", index))
        self._go(index)

    def go_to_kept(self, number: int) -> None:
        self._calls.append(("go_to_kept", number))
        entry = self.history.entry(number)
        if entry is not None:
            self.session = entry.session
            self.history = self.history.added(self.session, "Kept")
            self._changed(True)

    @property
    def effective(self) -> Session:
        return self.session

    @property
    def shown_latent(self) -> StoredLatent | None:
        return StoredLatent(np.zeros(512, "<f4").tobytes(), 1, 512)

    def effective_of(self, session: Session) -> Session:
        return session

    @property
    def moved_by(self) -> str:
        return ""

    @property
    def is_gesturing(self) -> bool:
        return self._before is not None

    @property
    def session_before(self) -> tuple[str, Session] | None:
        if not self.history.can_undo:
            return None
        return f"Before “{self.history.undo_label}”", self.history.entries[self.history.position - 1].session

    def random_seed(self) -> None:
        self._calls.append(("random_seed",))
        self.edit(GoToSeed(4711))

    def set_drifting(self, on: bool) -> None:
        self._calls.append(("set_drifting", on))
        self.drifting = on
        self.drifting_changed.emit()

    def set_drift_speed(self, speed: float) -> None:
        self._calls.append(("set_drift_speed", speed))
        self.drift_speed = speed
        self.drifting_changed.emit()

    def _changed(self, final: bool) -> None:
        self.session_changed.emit()
        if self._model.facts is not None:
            self._engine.render(self.session)
        if final:
            self.history_changed.emit()

    def _go(self, position: int) -> None:
        self.history = self.history.moved(position)
        current = self.history.current
        assert current is not None
        self.session = current.session
        self._changed(True)


class FakeThumbnails(QObject):
    """Stands for `ThumbnailService`: paints synchronously, or never."""

    changed = Signal()

    def __init__(self, editing: FakeEditing, model: FakeModel, *, serves: bool) -> None:
        super().__init__()
        self._editing = editing
        self._model = model
        self._serves = serves
        self.store = ThumbnailStore()

    def request(self, key: Hashable, what: Session | RenderRequest, *, on_disk: bool = False) -> None:
        if not self._serves or self._model.facts is None or key in self.store:
            return
        QTimer.singleShot(0, self.changed.emit)
        place = what.position if isinstance(what, Session) else self._editing.session.position
        self.store.put(key, Frame(RenderRequest("x"), landscape(place.x, place.y, 64), FrameTimings(1.0, 0.1, 0.9)))


class FakeMixing:
    """Stands for `Mixing`."""

    def __init__(self, calls: Calls, engine: FakeEngine, editing: FakeEditing) -> None:
        self._calls = calls
        self._model = engine.model
        self._editing = editing

    def add_current(self) -> None:
        self._calls.append(("mix_in_current",))
        rows, session = self._model.facts.num_ws if self._model.facts else 0, self._editing.session
        source = Source(kept_latent(session), (0.0,) * rows, f"kept {len(session.mix) + 1}")
        self._editing.edit(AddSources((source,)))

    def add_kept(self, numbers: Sequence[int]) -> None:
        self._calls.append(("mix_in_kept", tuple(numbers)))


class FakeController:
    """Stands for `explorer_app.controller.Controller`: the same objects, each a fake.

    `calls` has all calls in order, as (what, *arguments).
    """

    def __init__(self, *, with_model: bool = True, serves_thumbnails: bool = False) -> None:
        self.calls: Calls = []
        self.engine = FakeEngine(self.calls)
        self.editing = FakeEditing(self.calls, self.engine)
        self.mixing = FakeMixing(self.calls, self.engine, self.editing)
        self.files = FakeFiles(self.calls, self.engine.model)
        self.export = FakeExport(self.calls)
        self.pictures = FakePictures(self.calls)
        self.playback = FakePlayback(self.calls)
        self.drag_renders = FakeDragRenders()
        self.drag_maker = FakeDragMaker()
        self.point_drag = PointDrag(
            self.drag_renders,
            self.engine.model,  # type: ignore[arg-type]
            self.engine.preview,  # type: ignore[arg-type]
            self.editing,  # type: ignore[arg-type]
            self.playback,  # type: ignore[arg-type]
            MessageLog(),
            lambda: self.drag_maker,
        )
        self.drag_renders.point_drag = self.point_drag
        self.projection_renders = FakeProjectionRenders()
        self.photo_projection = PhotoProjection(
            self.projection_renders,
            self.editing,  # type: ignore[arg-type]
            self.playback,  # type: ignore[arg-type]
            MessageLog(),
            self.projection_renders.worker,  # type: ignore[arg-type]
            ModelFiles(None, None),
            self.projection_renders.opened.append,
            self.projection_renders.make,
        )
        self.projection_renders.projection = self.photo_projection
        self.live = FakeLive(self.calls)
        self.played = FakePlayed()
        self.sounds = FakeSounds(self.calls)
        self.local_editing = FakeLocalEditing(self.calls)
        self.directions = FakeDirectionFinding(self.calls)
        self.learning = FakeLearning(self.calls)
        self.tuning = FakeTuning(self.calls)
        self.ladder = FakeLadder(self.calls)
        self.thumbnails = FakeThumbnails(self.editing, self.engine.model, serves=serves_thumbnails)
        self.whole_pictures = FakeWholePictures(self.calls)
        self.grid_renders = FakeGridRenders(self.calls, landscape)
        self.grid = VariationGrid(self.grid_renders, self.engine, self.editing, FakeWorker(), MessageLog())  # type: ignore[arg-type]
        self.grid_renders.grid = self.grid
        self.snapshots = Snapshots(self.engine.model, self.files, FakeWorker(), MessageLog())  # type: ignore[arg-type]
        self.arithmetic = KeptArithmetic(self.engine.model, self.editing, self.directions, MessageLog())  # type: ignore[arg-type]
        if with_model:
            self.show_model(facts())

    def close(self) -> None:
        self.calls.append(("close",))

    # -- actions of a test ------------------------------------------------------------------------------------------

    def show_model(self, known: ModelFacts | None) -> None:
        engine, editing = self.engine, self.editing
        engine.model.facts = known
        engine.model.directions = directions(w_dim=known.w_dim) if known else None
        engine.devices.state = replace(engine.devices.state, device=FakeDevice() if known else None)
        engine.preview.frame = None
        if known is not None:
            editing.session = replace(editing.session, model=ModelReference(known.path, known.name, known.model_id))
            editing.history = editing.history.added(editing.session, "Open")
        engine.model_changed.emit()
        editing.history_changed.emit()
        editing.session_changed.emit()
        if known is not None:
            self.render()

    def render(self, *, resolution: int | None = None, total_ms: float = 21.0, measured: bool = False) -> Frame:
        """Show the picture of the session, as after an answer of the render thread."""
        return self.engine.render(self.editing.session, resolution=resolution, total_ms=total_ms, measured=measured)

    def show_devices(self, devices: DeviceState) -> None:
        self.engine.devices.state = devices
        self.engine.devices.changed.emit()

    def load(self, loading: Loading | None) -> None:
        self.engine.model.load(loading)

    def progress(self, progress: ExportProgress | None) -> None:
        self.export.progress = progress
        self.export.changed.emit()
