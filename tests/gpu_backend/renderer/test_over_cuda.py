"""The renderer over the GPU's own executor, on a GPU made of Python whose kernels do nothing."""

import gc
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gpu_backend import DeviceLostError, Latent, Noise, Renderer, RenderOptions, Tap, plane_point
from gpu_backend.cuda.compiling.compilation import Compilation
from gpu_backend.cuda.compiling.compiler import CompiledKernel
from gpu_backend.cuda.executor import CudaExecutor
from gpu_backend.cuda.running.self_check import SelfCheckRecord
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.recipe import NoiseMode
from tests.helpers.fake_gpu import COMPARISON, FAKE_GPU, FakeDriver, FakeKernel
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

MODEL = make_stylegan2(resolution=64, channel_base=4096, channel_max=40)


def compiled(recipes: Iterable[KernelRecipe], architecture: str) -> Compilation:
    return Compilation({recipe: CompiledKernel(b"", 32, 0, 16) for recipe in recipes}, {})


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(kernels=defaultdict(lambda: FakeKernel(lambda *_, **__: None), comparison=COMPARISON))


@pytest.fixture
def renderer(driver: FakeDriver, tmp_path: Path) -> Iterator[Renderer]:
    record = SelfCheckRecord(tmp_path, "driver")
    executor = CudaExecutor(MODEL, driver=driver, gpu=FAKE_GPU, record=record, compiled=compiled)
    renderer = Renderer(MODEL, executor=executor)
    yield renderer
    renderer.close()


def test_whatever_a_gesture_moves_captures_nothing(renderer: Renderer, driver: FakeDriver) -> None:
    renderer.render(request_for(renderer))
    captures = driver.captures
    modes: tuple[NoiseMode, ...] = ("none", "const", "random")
    for move in range(60):
        latent = Latent(plane_point(3.25 + move / 50, 0.5))
        renderer.render(request_for(renderer, latent, psi=move / 60, noise=Noise(modes[move % 3], move, move / 30)))
    assert driver.captures == captures


def test_a_draft_is_a_graph_of_its_own_captured_once(renderer: Renderer, driver: FakeDriver) -> None:
    renderer.render(request_for(renderer))
    captures = driver.captures
    for _ in range(3):
        for side in (8, 16, 32):
            assert renderer.render(request_for(renderer, resolution=side)).width == side
    assert driver.captures == captures + 3


def test_without_a_graph_nothing_is_replayed(renderer: Renderer, driver: FakeDriver) -> None:
    renderer.render(request_for(renderer))
    replays = driver.replays
    renderer.options = RenderOptions(use_graph=False)
    renderer.render(request_for(renderer))
    assert driver.replays == replays


def test_a_measured_frame_has_a_step_a_kernel_with_its_facts(renderer: Renderer) -> None:
    timings = renderer.render(request_for(renderer, measure_steps=True)).timings
    layers = {step.layer for step in timings.steps}
    assert {f"synthesis.{layer.name}" for layer in MODEL.spec.layers if layer.kind != "to_rgb"} <= layers
    assert {step.facts.state for step in timings.steps if step.facts is not None} == {"fused"}
    assert timings.timing_source == "events"
    assert timings.device_ms is not None
    assert sum(step.time_us for step in timings.steps) == pytest.approx(timings.device_ms * 1e3)


def test_arrays_layers_and_comparisons_work_and_leave_no_plain_plan(renderer: Renderer) -> None:
    rows = np.zeros((5, renderer.facts.num_ws, renderer.facts.w_dim))
    assert renderer.map(np.zeros((33, renderer.facts.z_dim))).shape == (33, *rows.shape[1:])
    assert renderer.synthesize(rows).shape == (5, 3, 64, 64)
    assert list(renderer.layer_statistics(rows[:1])) == [f"synthesis.{layer.name}" for layer in MODEL.spec.layers]
    before = renderer.memory.plans
    found = renderer.compare(request_for(renderer))
    assert found.graph_ms == found.fused_ms > 0
    assert found.reference_ms > 0
    assert renderer.memory.plans == before


def test_many_frames_take_no_more_memory(renderer: Renderer, driver: FakeDriver) -> None:
    def render_all() -> None:
        for side in (8, 16, 32, None):
            for measure in (False, True):
                renderer.render(request_for(renderer, resolution=side, measure_steps=measure))

    render_all()
    memory, blocks = renderer.memory, len(driver.device) + len(driver.pinned) + len(driver.events)
    for _ in range(20):
        render_all()
    assert renderer.memory == memory
    assert len(driver.device) + len(driver.pinned) + len(driver.events) == blocks
    renderer.close()
    assert not driver.device


@pytest.mark.parametrize("in_flight", [1, 2])
def test_changes_of_resolution_that_drop_plans_never_wait_for_the_whole_device(
    in_flight: int, driver: FakeDriver, tmp_path: Path
) -> None:
    executor = CudaExecutor(
        MODEL, driver=driver, gpu=FAKE_GPU, record=SelfCheckRecord(tmp_path, "driver"), compiled=compiled
    )
    renderer = Renderer(MODEL, executor=executor, plan_budget_nbytes=1)
    pending = deque([renderer.submit(request_for(renderer, resolution=8))])
    least = len(driver.device)
    kept, dropped = [], 0
    for number in range(40):
        side = (8, 16, None, 32)[number % 4]
        before = renderer.memory.plans
        measure = number % 8 == 5
        pending.append(renderer.submit(request_for(renderer, resolution=side, measure_steps=measure)))
        dropped += renderer.memory.plans < before
        while len(pending) >= in_flight:
            kept.append(pending.popleft().wait())
        del kept[:-3]
    assert dropped > 5, "plans made room for each other"
    while pending:
        pending.popleft().wait()
    kept.clear()
    gc.collect()
    renderer.render(request_for(renderer, resolution=8))
    assert len(driver.device) <= least, "nothing is kept that nobody uses"
    renderer.close()
    assert driver.full_waits == 0
    gc.collect()
    assert driver.is_empty


@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_a_device_that_is_lost_in_a_frame_is_lost_for_good(after: int, renderer: Renderer, driver: FakeDriver) -> None:
    renderer.render(request_for(renderer))
    driver.lose_after = after
    with pytest.raises(DeviceLostError):
        renderer.render(request_for(renderer))
    with pytest.raises(DeviceLostError):
        renderer.render(request_for(renderer, resolution=8))
    renderer.close()
    renderer.close()
    assert driver.is_closed


def test_a_layer_on_show_is_a_graph_of_its_own_and_its_channels_and_gain_capture_nothing(
    renderer: Renderer, driver: FakeDriver
) -> None:
    renderer.render(request_for(renderer))
    captures = driver.captures
    for move in range(10):
        for name in ("b16.conv0", "b32.torgb"):
            tap = Tap(name, (move % 3,), gain_db=move - 5.0, is_normalized=bool(move % 2))
            frame = renderer.render(request_for(renderer, tap=tap, wants_tap_values=True))
            side = 16 if name == "b16.conv0" else 32
            assert frame.pixels.shape == (side, side, 4)
            assert frame.tap is not None
            assert frame.tap.shape == (3 if name == "b32.torgb" else 40, side, side)
            assert frame.tap.values is not None
            assert frame.tap.values.shape == (side, side)
    assert driver.captures == captures + 2


def test_numbers_of_a_layer_stay_when_other_frames_come(driver: FakeDriver, renderer: Renderer) -> None:
    def count_up(driver: FakeDriver, *, values: int, **_: int) -> None:
        driver.view(values, (32, 32), "float32")[:] += 1

    driver.kernels["tap_display"] = FakeKernel(count_up)  # type: ignore[index]
    request = request_for(renderer, tap=Tap("b32.conv0"), wants_tap_values=True)
    frames = [renderer.submit(request) for _ in range(5)]
    found = [frame.wait().tap for frame in frames]
    numbers = [None if tap is None or tap.values is None else float(tap.values[7, 9]) for tap in found]
    assert numbers == [1, 2, 3, 4, 5]
