"""A renderer without a network: it paints one colour with a speck, and waits at a test's gate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer_app.rendering.device_choice import PROCESSOR, DeviceChoice
from gpu_backend import (
    Arc,
    CancelledError,
    ChannelMaps,
    ConvShape,
    ConvTile,
    Frame,
    FrameTimings,
    LadderShare,
    Model,
    ModelFileError,
    Recipe,
    RenderRequest,
    Roofline,
    RowRange,
    Rung,
    RungResult,
    StepTime,
    StoredLatent,
    TileFinding,
    TuningShare,
)
from tests.helpers.networks import make_stylegan2
from tests.helpers.taps import layer_pixels, tapped_layer


@dataclass(frozen=True)
class FakeDevice:
    id: str = "cpu"
    name: str = "CPU"
    precision: str = "fp32"
    reason: str = "CPU: for a test."
    memory_nbytes: int = 0
    driver: str = ""
    roofline: Roofline | None = None


GPU = FakeDevice("cuda:0", "Loom 9000", "fp16", "Loom 9000: it is the first GPU that can run the kernels.", 150 << 30)
OTHER_GPU = FakeDevice("cuda:1", "Loom 100", "fp16", "Loom 100: it was chosen.", 8 << 30)


@dataclass(frozen=True)
class FakeMemory:
    weights: int = 60_000_000
    plans: int = 500_000_000
    pinned: int = 12_000_000

    @property
    def total(self) -> int:
        return self.weights + self.plans + self.pinned


@dataclass(frozen=True)
class FakeDirections:
    names: tuple[str, ...] = ("sefa/0", "sefa/1")
    reach: tuple[float, ...] = (5.0, 5.0)
    rows: tuple[RowRange, ...] = (RowRange(), RowRange())
    centre: tuple[float, ...] = (0.0, 0.0)
    vectors: Any = None


class Gate:
    """A gate that admits renders one by one; open until `shut` is called."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._permits = 0
        self._is_open = True
        self._waiting = 0

    def shut(self) -> None:
        with self._condition:
            self._is_open = False

    def open(self) -> None:
        with self._condition:
            self._is_open = True
            self._condition.notify_all()

    def let_through(self, count: int = 1) -> None:
        with self._condition:
            self._permits += count
            self._condition.notify_all()

    @property
    def has_visitor(self) -> bool:
        """Whether a render waits at the gate."""
        with self._condition:
            return self._waiting > 0

    def wait_for_knock(self) -> None:
        """Wait until a render waits at the gate."""
        with self._condition:
            assert self._condition.wait_for(lambda: self._waiting > 0, 30)

    def pass_soon(self) -> bool:
        """Wait briefly; return whether a render may pass."""
        with self._condition:
            return self._condition.wait_for(lambda: self._is_open, 0.01)

    def pass_through(self) -> None:
        with self._condition:
            self._waiting += 1
            self._condition.notify_all()
            assert self._condition.wait_for(lambda: self._is_open or self._permits > 0, 30)
            self._waiting -= 1
            if not self._is_open:
                self._permits -= 1


def runs_on_gpus(model: Model) -> bool:
    """As the backend's: one family only."""
    return model.facts.family == "StyleGAN2"


@dataclass
class Engine:
    """Implements `explorer_app.rendering.backend.BackendLike`: makes renderers and records their work.

    `full_ms` is what a frame claims to have taken at full size. There is no GPU until a test lends `gpus`; of their
    `kernels`, `missing` have to be compiled, one for each time that `compile_gate` lets through.
    """

    full_ms: float = 5.0
    gate: Gate = field(default_factory=Gate)
    requests: list[RenderRequest] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    """The size of each batch."""
    given_up: list[RenderRequest] = field(default_factory=list)
    comparisons_given_up: int = 0
    threads: set[str] = field(default_factory=set)
    made: list[FakeRenderer] = field(default_factory=list)
    failing: BaseException | None = None
    refusing: BaseException | None = None
    prepared: list[str] = field(default_factory=list)
    """Loads and imports before the first renderer, and the GPU that was started."""
    gpus: tuple[FakeDevice, ...] = ()
    processor: FakeDevice = FakeDevice()
    find_gate: Gate = field(default_factory=Gate)
    kernels: int = 14
    missing: int = 0
    quick_kernels: int = 0
    """The number of kernels that compile faster than torch is imported."""
    compile_gate: Gate = field(default_factory=Gate)
    compile_failing: Exception | None = None
    layer_gate: Gate = field(default_factory=Gate)
    layers_compiled: list[tuple[str, str]] = field(default_factory=list)
    """Model and precision of each compilation of layer kernels."""
    gpu_failing: Exception | None = None
    """Raised by every picture on a GPU."""
    gpu_refusing: Exception | None = None
    """Raised when a renderer on a GPU is made."""
    cpu_refusing: Exception | None = None
    """Raised when a renderer on the CPU is made."""
    gpu_missing: Exception | None = None
    """Raised when the kernels of a missing GPU are requested."""
    unchecked: int = 0
    """Kernels that have not been checked on a GPU."""
    check_gate: Gate = field(default_factory=Gate)
    check_failing: Exception | None = None
    checks: list[FakeChecks] = field(default_factory=list)
    tunings: list[FakeTuning] = field(default_factory=list)
    tiles: int = 3
    """The number of convolutions that a tuning finds tiles for."""
    tuning_failing: Exception | None = None
    tuning_waits: bool = False
    ladders: list[FakeLadder] = field(default_factory=list)
    ladder_failing: Exception | None = None
    ladder_waits: bool = False
    draft_steps: int = 0
    """Steps that each renderer needs before its first draft."""
    prepare_failing: Exception | None = None
    calls: list[str] = field(default_factory=list)
    """Preparation steps and pictures, in order."""
    empty_px: int = 0
    """The largest side of drafts in one colour."""
    paleness: int = 0
    """How much less blue drafts have."""
    gives_rows: bool = False
    """Whether frames hold rows of w: the number of the first seed, or the stored rows."""

    @property
    def made_on(self) -> list[tuple[str, str]]:
        """Device and precision of each renderer, in order of creation."""
        return [(renderer.device.id, renderer.device.precision) for renderer in self.made]

    def preload(self) -> None:
        self.prepared.append("preload")

    def import_processor(self) -> None:
        self.prepared.append("import")

    def find_devices(self) -> tuple[FakeDevice, ...]:
        self.find_gate.pass_through()
        return (*self.gpus, self.processor)

    def preload_gpu(self, choice: DeviceChoice) -> None:
        self.prepared.append(f"preload {choice.device}")

    def prepare_device(self, choice: DeviceChoice) -> None:
        self.prepared.append(choice.device)

    def compiles_soon(self, missing: int) -> bool:
        return missing <= self.quick_kernels

    def kernels_ready(self, model: Model, choice: DeviceChoice) -> tuple[int, int]:
        if self.gpu_missing is not None:
            raise self.gpu_missing
        runs_there = bool(self.gpus) and choice.wants_gpu and runs_on_gpus(model)
        return (self.kernels - self.missing, self.kernels) if runs_there else (0, 0)

    def compile_kernels(self, model: Model, choice: DeviceChoice, *, progress: Any, should_cancel: Any) -> None:
        self.threads.add(threading.current_thread().name)
        while self.missing > 0:
            while not self.compile_gate.pass_soon():
                if should_cancel():
                    raise CancelledError("Cancelled.")
            if self.compile_failing is not None:
                raise self.compile_failing
            self.missing = max(0, self.missing - 1)  # one that was cancelled may be at its last
            progress(self.kernels - self.missing, self.kernels)

    def compile_layer_kernels(self, model: Model, choice: DeviceChoice, *, should_cancel: Any) -> None:
        while not self.layer_gate.pass_soon():
            if should_cancel():
                raise CancelledError("Cancelled.")
        if self.compile_failing is not None:
            raise self.compile_failing
        self.layers_compiled.append((model.facts.model_id, choice.precision))

    def kernel_checks(self, model: Model, choice: DeviceChoice) -> FakeChecks | None:
        if not self.gpus or not choice.wants_gpu or not self.unchecked:
            return None
        self.checks.append(FakeChecks(self.unchecked, self.check_gate, self.check_failing))
        return self.checks[-1]

    def make_tuning(self, model: Model, choice: DeviceChoice, budget_s: float) -> FakeTuning:
        self.threads.add(threading.current_thread().name)
        made = FakeTuning(choice, self.tiles, self.tuning_failing, self.tuning_waits)
        self.tunings.append(made)
        return made

    def make_ladder(self, model: Model, device: str) -> FakeLadder:
        self.threads.add(threading.current_thread().name)
        if self.ladder_failing is not None:
            raise self.ladder_failing
        made = FakeLadder(device, self.ladder_waits)
        self.ladders.append(made)
        return made

    def make_renderer(self, model: Model, choice: DeviceChoice) -> FakeRenderer:
        self.threads.add(threading.current_thread().name)
        if self.refusing is not None:
            raise self.refusing
        renderer = FakeRenderer(model, self, self._device(choice if runs_on_gpus(model) else PROCESSOR))
        self.made.append(renderer)
        return renderer

    def _device(self, choice: DeviceChoice) -> FakeDevice:
        if not self.gpus or not choice.wants_gpu:
            if self.cpu_refusing is not None:
                raise self.cpu_refusing
            return FakeDevice()
        if self.gpu_refusing is not None:
            raise self.gpu_refusing
        assert self.missing == 0, "kernels are compiled before a renderer needs them"
        gpu = next((gpu for gpu in self.gpus if gpu.id == choice.device), self.gpus[0])
        return replace(gpu, precision=choice.precision)


@dataclass
class FakeChecks:
    """Implements `explorer_app.rendering.backend.ChecksLike`: checks one kernel a step, as the gate admits it."""

    count: int
    gate: Gate
    error: Exception | None = None
    done: int = 0
    closed: int = 0

    @property
    def is_done(self) -> bool:
        return self.done == self.count

    @property
    def progress(self) -> tuple[int, int]:
        return self.done, self.count

    def step(self) -> None:
        if self.error is not None:
            raise self.error
        if self.gate.pass_soon():
            self.done += 1

    def close(self) -> None:
        self.closed += 1


@dataclass
class FakeTuning:
    """Implements `explorer_app.rendering.backend.TuningLike`: finds a set number of tiles, one a step."""

    choice: DeviceChoice
    count: int
    error: Exception | None = None
    is_waiting: bool = False
    is_done: bool = False
    closed: int = 0
    steps: int = 0

    @property
    def state(self) -> TuningShare:
        return TuningShare(self.steps / self.count, None)

    def step(self) -> TileFinding | None:
        if self.error is not None:
            raise self.error
        self.steps += 1
        self.is_done = self.steps > self.count
        return None if self.is_done else finding(self.steps)

    def close(self) -> None:
        self.is_done = True
        self.closed += 1


@dataclass
class FakeLadder:
    """Implements `explorer_app.rendering.backend.LadderLike`: three rungs, one a step."""

    device: str
    is_waiting: bool = False
    is_done: bool = False
    closed: int = 0
    steps: int = 0

    @property
    def state(self) -> LadderShare:
        return LadderShare(self.steps / 3, None)

    def step(self, should_yield: Any) -> RungResult | None:
        self.steps += 1
        self.is_done = self.steps == 3
        return climbed(self.steps)

    def close(self) -> None:
        self.is_done = True
        self.closed += 1


def climbed(number: int, problem: str = "", image_j: float | None = None) -> RungResult:
    """The result of the rung of a number from 1: twice as fast as the one before."""
    rung = Rung(f"rung {number}", "fp16", batch=8 if number == 3 else 1)
    return (
        RungResult(rung, problem=problem) if problem else RungResult(rung, 8.0 / 2**number, 50, number - 1, "", image_j)
    )


def finding(number: int, gain: float = 2.0) -> TileFinding:
    """The result for a convolution of `number` channels: another tile is faster by a factor, or the same stays."""
    tile = ConvTile(8, 16, 64, 32, 3, 2, 2)
    shape = ConvShape("conv", 64, 512, 8 * number, 1)
    after = tile if gain == 1.0 else replace(tile, rows=4)
    return TileFinding(shape, tile, 10.0, after, 10.0 / gain, 40, 900)


class FakePending:
    """A pending picture; it is made when it is waited for."""

    def __init__(self, renderer: FakeRenderer, request: RenderRequest) -> None:
        self._renderer = renderer
        self._request = request

    def wait(self) -> Frame:
        self._renderer.in_flight -= 1
        return self._renderer.render(self._request)


class FakeRenderer:
    """Implements `explorer_app.rendering.renderer_like.RendererLike`."""

    def __init__(self, model: Model, engine: Engine, device: FakeDevice | None = None) -> None:
        self.facts = model.facts
        self.model = model
        self.device = device or FakeDevice()
        self.directions = FakeDirections()
        self.memory = FakeMemory()
        self.options: Any = None
        self.closed = 0
        self.in_flight = 0
        self.most_in_flight = 0
        self.steps_done = 0
        self._engine = engine

    def submit(self, request: RenderRequest) -> FakePending:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        return FakePending(self, request)

    def prepare_step(self, request: RenderRequest) -> bool:
        engine = self._engine
        if engine.prepare_failing is not None:
            raise engine.prepare_failing
        if request.resolution is None or self.steps_done == engine.draft_steps:
            return False
        self.steps_done += 1
        engine.calls.append("prepare")
        return True

    def channel_maps(self, request: RenderRequest, layer: str) -> ChannelMaps:
        """A gradient for each of eight channels; the first half is one cluster."""
        self._engine.gate.pass_through()
        if self._engine.failing is not None:
            raise self._engine.failing
        maps = np.stack([np.full((4, 4), 16 * channel, np.uint8) for channel in range(8)])
        return ChannelMaps(request.model_id, layer, maps, np.arange(8) // 4, maps[:2])

    def compare(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Any:
        self._engine.gate.pass_through()
        if should_cancel is not None and should_cancel():
            self._engine.comparisons_given_up += 1
            raise CancelledError("Given up.")
        if self._engine.failing is not None:
            raise self._engine.failing
        return f"comparison of {request.model_id} on {self.device.name}"

    def counter_steps(self, request: RenderRequest) -> Generator[None, None, None]:
        """Three steps."""
        self._engine.gate.pass_through()
        for _ in range(3):
            if self._engine.failing is not None:
                raise self._engine.failing
            self._engine.calls.append("count")
            yield

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        engine = self._engine
        engine.threads.add(threading.current_thread().name)
        engine.gate.pass_through()
        if should_cancel is not None and should_cancel():
            engine.given_up.append(request)
            raise CancelledError("Given up.")
        assert request.model_id == self.facts.model_id
        assert not self.closed
        if self.device.id != "cpu" and engine.gpu_failing is not None:
            raise engine.gpu_failing
        engine.requests.append(request)
        engine.calls.append("render")
        if engine.failing is not None:
            raise engine.failing
        side = request.resolution or self.facts.resolution
        pixels = np.full((side, side, 4), 255, np.uint8)
        point = request.blend[0][0].latent.point
        point = point.first if isinstance(point, Arc) else point
        pixels[..., 0] = point.rows[0] if isinstance(point, StoredLatent) else int(point.seeds[0][0]) % 256
        if request.resolution is not None:
            pixels[..., 0] -= np.minimum(pixels[..., 0], engine.paleness)
        if side > engine.empty_px:
            pixels[-1, -1, 1] = 0
        pixels.flags.writeable = False
        total_ms = engine.full_ms * (side / self.facts.resolution) ** 2
        steps = (StepTime("synthesis.b4.conv1", "modulated_conv", 750.0, 10, 10),) if request.measure_steps else ()
        timings = FrameTimings(total_ms, 0.1, total_ms - 0.1, steps)
        if request.tap is not None:
            shown = tapped_layer(request, self.facts)
            return Frame(request, layer_pixels(request, self.facts), timings, tap=shown)
        ws = self.rows_of(request.blend) if engine.gives_rows else None
        return Frame(request, pixels, timings, is_draft=request.resolution is not None, ws=ws)

    def rows_of(self, blend: tuple[tuple[Recipe, float], ...]) -> NDArray[np.float32]:
        """Rows of the number of the first seed, or the stored rows."""
        engine = self._engine
        engine.calls.append("rows")
        if self.device.id != "cpu" and engine.gpu_failing is not None:
            raise engine.gpu_failing
        if engine.failing is not None:
            raise engine.failing
        point = blend[0][0].latent.point
        point = point.first if isinstance(point, Arc) else point
        shape = (self.facts.num_ws, self.facts.w_dim)
        if isinstance(point, StoredLatent):
            return np.broadcast_to(np.frombuffer(point.rows, "<f4").reshape(point.num_ws, point.w_dim), shape).copy()
        return np.full(shape, point.seeds[0][0], np.float32)

    def render_batch(
        self, requests: Sequence[RenderRequest], *, should_cancel: Callable[[], bool] | None = None
    ) -> tuple[Frame, ...]:
        self._engine.batches.append(len(requests))
        return tuple(self.render(request, should_cancel=should_cancel) for request in requests)

    def close(self) -> None:
        self.closed += 1


def fake_model(path: Path, *, has_transform: bool = False, model_id: str = "", **options: Any) -> Model:
    """A small network with this path as its source; other paths give other models."""
    model = make_stylegan2(**{"resolution": 128, "channel_max": 2, **options})
    facts = replace(model.facts, path=str(path), name=path.stem, model_id=model_id or f"sha of {path.name}")
    facts = replace(facts, has_transform=has_transform, nbytes=path.stat().st_size if path.is_file() else 0)
    return replace(model, facts=facts)


class Library:
    """Reads fake models: every file that exists is one. `options` by file stem choose what network it holds."""

    def __init__(self) -> None:
        self.options: dict[str, dict[str, Any]] = {}
        self.gate = Gate()
        self.read: list[Path] = []

    def __call__(self, path: Path, *, progress: Any, cancelled: Any) -> Model:
        self.read.append(path)
        if not path.is_file():
            raise ModelFileError(f"There is no model {path.name}.")
        if path.read_text() == "broken":
            raise ModelFileError(f"{path.name} is broken.")
        progress(1, 2)
        while not self.gate.pass_soon():
            if cancelled():
                raise CancelledError("Cancelled.")
        progress(2, 2)
        return fake_model(path, **self.options.get(path.stem, {}))
