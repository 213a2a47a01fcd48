"""Many frames on a GPU: fast, alike, and without growth."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import (
    Latent,
    MixSource,
    Model,
    Noise,
    Point,
    Renderer,
    compile_kernels,
    find_devices,
    kernels_ready,
    plane_point,
    random_model,
    shape_of,
)
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.device import make_executor
from gpu_backend.plan.executor import BoundPlan, Executor
from gpu_backend.plan.plan import Plan
from gpu_backend.recipe import NoiseMode
from tests.helpers.gpu import used_on_device
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("gpu")]

REPOSITORY = Path(__file__).resolve().parents[2]


class Watched:
    """The GPU's executor, remembering what it bound."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.bound: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def bind(self, plan: Plan, *, use_fused: bool = True) -> BoundPlan:
        self.bound.append(self._executor.bind(plan, use_fused=use_fused))
        return self.bound[-1]

    @property
    def captures(self) -> int:
        return sum(plan.captures for plan in self.bound)


@pytest.fixture(scope="module")
def large() -> Model:
    return random_model(shape_of("ffhq1024"))


@pytest.fixture
def small() -> Iterator[tuple[Renderer, Watched]]:
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=64)
    watched = Watched(make_executor(model, "cuda")[0])
    renderer = Renderer(model, executor=watched)
    yield renderer, watched
    renderer.close()


def resident_nbytes() -> int:
    """Memory of this process, where the system tells it."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * 4096 if statm.exists() else 0


def random_request(renderer: Renderer, generator: np.random.Generator, **fields: Any) -> Any:
    latent = Latent(plane_point(*generator.uniform(0, 40, 2)))
    if generator.random() < 0.3:
        source = Latent(Point(((int(generator.integers(50)), 1.0),)))
        strengths = tuple(generator.uniform(0, 1, renderer.facts.num_ws).tolist())
        latent = Latent(latent.point, mix=(MixSource(source, strengths),))
    modes: tuple[NoiseMode, ...] = ("none", "const", "random")
    noise = Noise(modes[generator.integers(3)], int(generator.integers(100)), float(generator.uniform(0, 2)))
    return request_for(renderer, latent, psi=float(generator.uniform(-1, 1)), noise=noise, **fields)


def test_10_000_frames_with_random_changes_capture_nothing_and_grow_nothing(small: tuple[Renderer, Watched]) -> None:
    renderer, watched = small
    generator, sides = np.random.default_rng(0), (8, 16, 32, None)
    for side in sides:
        renderer.render(request_for(renderer, resolution=side))
        renderer.render(request_for(renderer, resolution=side, measure_steps=True))
    for _ in range(200):
        renderer.render(random_request(renderer, generator, resolution=sides[generator.integers(4)]))
    gc.collect()
    plans, captures = len(watched.bound), watched.captures
    memory, device, host = renderer.memory, used_on_device(), resident_nbytes()
    for frame in range(10_000):
        side = sides[generator.integers(4)]
        renderer.render(random_request(renderer, generator, resolution=side, measure_steps=frame % 97 == 0))
    gc.collect()
    assert len(watched.bound) == plans
    # Where other processes measure beside this one, CUPTI's records may end: events have a graph of their own per plan.
    assert captures <= watched.captures <= captures + plans
    assert renderer.memory == memory
    assert used_on_device() - device < 16 << 20
    assert resident_nbytes() - host < 48 << 20


def test_equal_requests_give_equal_bytes_whatever_came_between(small: tuple[Renderer, Watched]) -> None:
    renderer, _ = small
    generator = np.random.default_rng(1)
    requests = [random_request(renderer, generator, resolution=side) for side in (8, 32, None, None, None)]
    first = [renderer.render(request).pixels.copy() for request in requests]
    for _ in range(20):
        for request, pixels in zip(requests, first, strict=True):
            assert np.array_equal(renderer.render(request).pixels, pixels)
            renderer.render(random_request(renderer, generator))
    again = Renderer(renderer.model, "cuda")
    for request, pixels in zip(requests, first, strict=True):
        assert np.array_equal(again.render(request).pixels, pixels)
    again.close()


def test_two_frames_on_their_way_are_those_of_one_after_the_other(small: tuple[Renderer, Watched]) -> None:
    renderer, _ = small
    generator = np.random.default_rng(2)
    requests = [random_request(renderer, generator) for _ in range(60)]
    expected = [renderer.render(request).pixels.copy() for request in requests]
    pending = []
    for request, pixels in zip(requests, expected, strict=True):
        pending.append((renderer.submit(request), pixels))
        if len(pending) == 2:
            frame, wanted = pending.pop(0)
            assert np.array_equal(frame.wait().pixels, wanted)
    assert np.array_equal(pending[0][0].wait().pixels, pending[0][1])


def test_frames_that_are_kept_stay_as_they_are(small: tuple[Renderer, Watched]) -> None:
    renderer, _ = small
    generator = np.random.default_rng(3)
    kept = [renderer.render(random_request(renderer, generator)) for _ in range(12)]
    copies = [frame.pixels.copy() for frame in kept]
    views = [frame.pixels[1:] for frame in kept]
    for _ in range(50):
        renderer.render(random_request(renderer, generator))
    assert all(np.array_equal(frame.pixels, copy) for frame, copy in zip(kept, copies, strict=True))
    del kept
    gc.collect()
    for _ in range(20):
        renderer.render(random_request(renderer, generator))
    assert all(np.array_equal(view, copy[1:]) for view, copy in zip(views, copies, strict=True))
    renderer.close()
    assert all(np.array_equal(view, copy[1:]) for view, copy in zip(views, copies, strict=True))


def test_plans_that_make_room_come_back_with_the_same_picture() -> None:
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=64)
    renderer = Renderer(model, "cuda", plan_budget_nbytes=0)
    generator = np.random.default_rng(4)
    requests = [random_request(renderer, generator, resolution=side) for side in (8, 16, 32)]
    first = [renderer.render(request).pixels.copy() for request in requests]
    for request, pixels in zip(requests, first, strict=True):
        assert np.array_equal(renderer.render(request).pixels, pixels)
    renderer.close()


def test_a_network_of_1024_pixels_takes_less_than_a_gigabyte(large: Model) -> None:
    warm = Renderer(make_stylegan2(), "cuda")
    before = used_on_device()
    renderer = Renderer(large, "cuda")
    for side in (*large.spec.draft_resolutions, None):
        renderer.render(request_for(renderer, resolution=side))
    renderer.render(request_for(renderer, measure_steps=True))
    memory, taken = renderer.memory, used_on_device() - before
    renderer.close()
    warm.close()
    assert memory.total < 1_000_000_000, memory
    assert taken < 1_000_000_000, f"{taken} bytes more on the device, {memory}"


def test_kernels_are_compiled_once_and_then_ready_at_once(large: Model) -> None:
    told: list[tuple[int, int]] = []
    compile_kernels(large, "cuda", progress=lambda *numbers: told.append(numbers))
    ready, total = kernels_ready(large, "cuda")
    assert ready == total == told[-1][0] > 5
    told.clear()
    compile_kernels(large, "cuda", progress=lambda *numbers: told.append(numbers))
    assert told == [(total, total)], "nothing is left to be done one by one"
    Renderer(large, "cuda").close()
    assert kernels_ready(large, "cuda") == (total, total), "the renderer needs no others"


def test_torch_is_not_imported_on_the_way_to_a_frame(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from gpu_backend import RenderRequest, Renderer\n"
        "from tests.helpers.networks import make_stylegan2\n"
        "renderer = Renderer(make_stylegan2(), 'cuda')\n"
        "frame = renderer.render(RenderRequest(renderer.facts.model_id))\n"
        "renderer.close()\n"
        "print(frame.pixels.shape, 'torch' in sys.modules)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, check=False, capture_output=True, text=True, timeout=300
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.strip().endswith("(16, 16, 4) False"), finished.stdout


def test_the_gpu_is_found_and_taken_by_itself(gpu: Gpu) -> None:
    first = find_devices()[0]
    assert (first.id, first.name, first.architecture) == (f"cuda:{gpu.index}", gpu.name, gpu.architecture)
    renderer = Renderer(make_stylegan2())
    assert (renderer.device.id, renderer.device.precision) == (first.id, "fp16")
    assert renderer.device.memory_nbytes > 1 << 30
    memory = renderer.memory
    assert min(memory.weights, memory.plans, memory.pinned) > 0
    renderer.close()
    renderer.close()
