"""The renderer with small made-up networks: requests in, frames out."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import (
    DeviceError,
    DirectionAmount,
    Latent,
    MixSource,
    Noise,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    RequestError,
    RowRange,
    open_renderer,
    path_blends,
    plane_point,
    stored_latent,
)
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.latent.paths import PathKind
from gpu_backend.latent.recent_rows import CAPACITY
from gpu_backend.plan.executor import BoundPlan, PendingRun
from gpu_backend.plan.plan import Plan
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


class CountingPlan:
    """A bound plan that remembers which inputs came."""

    def __init__(self, bound: BoundPlan) -> None:
        self._bound = bound
        self.plan = bound.plan
        self.runs: list[frozenset[str]] = []
        self.is_closed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bound, name)

    def submit(self, inputs: Mapping[str, Any], **options: Any) -> PendingRun:
        self.runs.append(frozenset(inputs))
        return self._bound.submit(inputs, **options)

    def run(self, inputs: Mapping[str, Any], **options: Any) -> Mapping[str, Any]:
        return self.submit(inputs, **options).wait()

    def close(self) -> None:
        self.is_closed = True
        self._bound.close()


class CountingExecutor(CpuExecutor):
    """The CPU executor, counting what is bound and run."""

    def __init__(self, weights: Any) -> None:
        super().__init__(weights)
        self.plans: list[CountingPlan] = []

    def bind(self, plan: Plan, *, use_fused: bool = True) -> Any:
        counted = CountingPlan(super().bind(plan, use_fused=use_fused))
        self.plans.append(counted)
        return counted

    def runs(self, part: str) -> list[frozenset[str]]:
        return [run for plan in self.plans if plan.plan.key.part == part for run in plan.runs]


@pytest.fixture
def counted() -> Iterator[tuple[Renderer, CountingExecutor]]:
    model = make_stylegan2(resolution=32)
    executor = CountingExecutor(model.weights)
    renderer = Renderer(model, executor=executor)
    yield renderer, executor
    renderer.close()


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(make_stylegan2(resolution=32), "cpu")
    yield renderer
    renderer.close()


def test_a_drag_of_200_moves_builds_no_plan_and_maps_only_new_corners(
    counted: tuple[Renderer, CountingExecutor],
) -> None:
    renderer, executor = counted
    renderer.render(request_for(renderer))
    plans, mapped = len(executor.plans), len(executor.runs("mapping"))
    for move in range(200):
        renderer.render(request_for(renderer, Latent(plane_point(3.25 + move / 50, 0.5))))
    assert len(executor.plans) == plans
    # From x = 3.25 to 7.23 the corners of four further columns come up, two seeds in each.
    assert len(executor.runs("mapping")) - mapped == 8
    assert len(executor.runs("synthesis")) == 201


def test_moving_sliders_and_mix_strengths_maps_nothing(counted: tuple[Renderer, CountingExecutor]) -> None:
    renderer, executor = counted
    source = Latent(Point(((9, 1.0),)))
    for move in range(20):
        latent = Latent(
            Point(((5, 1.0),)),
            mix=(MixSource(source, (move / 20,) * 4),),
            directions=(DirectionAmount("sefa/0", move / 4, RowRange(0, 3)),),
        )
        renderer.render(request_for(renderer, latent, psi=move / 20))
    assert len(executor.runs("mapping")) == 2


def test_noise_is_copied_in_only_when_it_changes(counted: tuple[Renderer, CountingExecutor]) -> None:
    renderer, executor = counted
    still, stronger = Noise("random", seed=3), Noise("random", seed=3, gain=2.0)
    for noise in (still, still, stronger, stronger, Noise("const")):
        renderer.render(request_for(renderer, noise=noise))
    came = [set(run) - {"ws"} for run in executor.runs("synthesis")]
    assert came == [{"noise_source", "noise_gain"}, set(), {"noise_gain"}, set(), {"noise_source", "noise_gain"}]


def test_drafts_make_room_when_memory_is_short_and_the_full_plan_stays() -> None:
    model = make_stylegan2(resolution=32)
    executor = CountingExecutor(model.weights)
    renderer = Renderer(model, executor=executor, plan_budget_nbytes=0)
    for resolution in (16, 8, 16, None):
        renderer.render(request_for(renderer, resolution=resolution, noise=Noise("random", 1)))
    drafts = [plan for plan in executor.plans if plan.plan.key.resolution in (8, 16)]
    assert [(plan.plan.key.resolution, plan.is_closed) for plan in drafts] == [(16, True), (8, True), (16, False)]
    assert drafts[2].runs == [drafts[0].runs[0]], "a plan that is built again gets its noise again"
    assert not any(plan.is_closed for plan in executor.plans if plan.plan.key.resolution == 32)
    renderer.close()


def test_a_prepared_draft_needs_no_new_plan(counted: tuple[Renderer, CountingExecutor]) -> None:
    renderer, executor = counted
    renderer.prepare(16)
    plans = len(executor.plans)
    renderer.render(request_for(renderer, resolution=16))
    assert len(executor.plans) == plans


def test_memory_does_not_grow_over_500_random_frames(renderer: Renderer) -> None:
    random = np.random.default_rng(0)
    for resolution in (8, 16, None):
        renderer.render(request_for(renderer, resolution=resolution))
    before = renderer.nbytes
    mapped = 0
    for _ in range(500):
        latent = Latent(plane_point(*random.uniform(-1e6, 1e6, 2)))
        resolution = (8, 16, None)[random.integers(3)]
        renderer.render(request_for(renderer, latent, resolution=resolution, noise=Noise("random", 7)))
        assert isinstance(latent.point, Point)
        mapped += len(latent.point.seeds)
    recent = CAPACITY * renderer.facts.num_ws * 8 * renderer.facts.w_dim
    assert renderer.nbytes - before <= mapped * 4 * renderer.facts.w_dim + recent


def test_a_frame_owns_its_bytes(renderer: Renderer) -> None:
    frame = renderer.render(request_for(renderer))
    before = frame.pixels.copy()
    other = renderer.render(request_for(renderer, Latent(Point(((99, 1.0),)))))
    assert not np.array_equal(before, other.pixels)
    assert np.array_equal(frame.pixels, before)
    assert not frame.pixels.flags.writeable
    assert frame.pixels.flags.c_contiguous
    assert frame.pixels.base is not None
    assert frame.pixels.base.flags.owndata


def test_equal_requests_give_equal_bytes_whatever_came_between(renderer: Renderer) -> None:
    request = request_for(renderer, noise=Noise("random", seed=4, gain=1.5))
    first = renderer.render(request)
    renderer.render(request_for(renderer, Latent(plane_point(50.5, 7.5)), resolution=16))
    renderer.map(np.ones((40, renderer.facts.z_dim)))
    renderer.synthesize(np.zeros((3, renderer.facts.num_ws, renderer.facts.w_dim)), noise="none")
    assert np.array_equal(renderer.render(request).pixels, first.pixels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_bytes_stand_in_the_order_of_qt_with_alpha_only_where_the_network_has_it(channels: int) -> None:
    renderer = Renderer(make_stylegan2(resolution=16, img_channels=channels), "cpu")
    seed = Latent(Point(((5, 1.0),)))
    frame = renderer.render(request_for(renderer, seed, psi=1.0))
    z = np.random.RandomState(5).randn(1, renderer.facts.z_dim)
    image = np.clip(renderer.synthesize(renderer.map(z))[0] * 127.5 + 128, 0, 255).astype(int)
    blue, green, red = (image[0],) * 3 if channels == 1 else (image[2], image[1], image[0])
    fourth = image[3] if channels == 4 else np.full_like(blue, 255)
    assert np.abs(frame.pixels.astype(int) - np.stack([blue, green, red, fourth], axis=-1)).max() <= 1
    assert frame.has_alpha == (channels == 4)
    rgb = frame.to_rgb()
    assert rgb.shape == (16, 16, 4 if channels == 4 else 3)
    assert np.array_equal(rgb[..., 0], frame.pixels[..., 2])
    renderer.close()


def test_a_draft_is_smaller_and_marked_as_one(renderer: Renderer) -> None:
    draft, full, named = (renderer.render(request_for(renderer, resolution=side)) for side in (16, None, 32))
    assert (draft.width, draft.height, draft.is_draft) == (16, 16, True)
    assert (full.width, full.height, full.is_draft) == (32, 32, False)
    assert not named.is_draft
    assert np.array_equal(named.pixels, full.pixels)


def test_steps_are_timed_on_demand_only(renderer: Renderer) -> None:
    assert renderer.render(request_for(renderer)).timings.steps == ()
    timings = renderer.render(request_for(renderer, measure_steps=True)).timings
    assert {step.layer for step in timings.steps} >= {"synthesis.b4.conv1", "synthesis.b32.torgb"}
    assert all(step.time_us >= 0 and step.kernel for step in timings.steps)
    assert sum(step.time_us for step in timings.steps) <= timings.synthesis_ms * 1e3
    assert timings.latent_ms + timings.synthesis_ms <= timings.total_ms


@pytest.mark.parametrize("kind", ["w-linear", "w-cubic", "w-slerp", "z-linear", "z-slerp"])
def test_a_frame_of_a_path_is_the_picture_of_the_interpolated_arrays(renderer: Renderer, kind: PathKind) -> None:
    seeds, steps = (3, 8, 21), 4
    keys = [((Recipe(Latent(Point(((seed, 1.0),)))), 1.0),) for seed in seeds]
    blends = path_blends(keys, kind, steps, True, z_dim=renderer.facts.z_dim)
    z = np.stack([np.random.RandomState(seed).randn(renderer.facts.z_dim) for seed in seeds])
    frame = 5  # a quarter of the way from the second key to the third
    if kind == "z-linear":
        ws = renderer.map(0.75 * z[1:2] + 0.25 * z[2:3])
    elif kind == "z-slerp":
        a, b = z[1] / np.linalg.norm(z[1]), z[2] / np.linalg.norm(z[2])
        angle = math.acos(a @ b)
        ws = renderer.map((math.sin(0.75 * angle) * a + math.sin(0.25 * angle) * b)[None])
    elif kind == "w-slerp":
        centre = renderer.map(z[:1], psi=0.0)[0].astype(np.float64)
        ends = [rows - centre for rows in renderer.map(z[1:3])]
        lengths = [np.linalg.norm(rows[0]) for rows in ends]
        units = [rows / length for rows, length in zip(ends, lengths, strict=True)]
        angle = math.acos(units[0][0] @ units[1][0])
        turned = (math.sin(0.75 * angle) * units[0] + math.sin(0.25 * angle) * units[1]) / math.sin(angle)
        ws = (centre + (0.75 * lengths[0] + 0.25 * lengths[1]) * turned)[None]
    else:
        weights = (0.0, 0.75, 0.25) if kind == "w-linear" else periodic_cubic_weights(1, 0.25)
        ws = np.einsum("k,krw->rw", np.asarray(weights), renderer.map(z))[None]
    expected = np.clip(renderer.synthesize(ws)[0] * 127.5 + 128, 0, 255).astype(int).transpose(1, 2, 0)
    found = renderer.render(RenderRequest(renderer.facts.model_id, blends[frame])).to_rgb().astype(int)
    assert np.abs(found - expected).max() <= 1


def periodic_cubic_weights(key: int, u: float) -> np.ndarray:
    """Weights of three keys on a closed cubic spline, solved by hand: an independent way to the same curve."""
    # For three keys, M[i-1] + M[i] + M[i+1] = 0, so the spline's equation gives M[i] = 2 (y[i-1] - 2 y[i] + y[i+1]).
    unit = np.eye(3)
    second = 2 * (np.roll(unit, 1, axis=0) - 2 * unit + np.roll(unit, -1, axis=0))
    v, following = 1 - u, (key + 1) % 3
    return v * unit[key] + u * unit[following] + (v**3 - v) / 6 * second[key] + (u**3 - u) / 6 * second[following]


def test_classes_change_the_picture_continuously() -> None:
    renderer = Renderer(make_stylegan2(c_dim=3), "cpu")
    point = Point(((1, 1.0),))
    frames = [renderer.render(request_for(renderer, Latent(point, ((0, 1 - u), (2, u))))) for u in (0.0, 0.5, 1.0)]
    one_hot = renderer.render(request_for(renderer, Latent(point, ((2, 1.0),))))
    assert np.array_equal(frames[2].pixels, one_hot.pixels)
    assert len({frame.pixels.tobytes() for frame in frames}) == 3
    renderer.close()


def test_noise_none_is_noise_of_gain_zero_and_seeds_differ(renderer: Renderer) -> None:
    def pixels(noise: Noise) -> bytes:
        return renderer.render(request_for(renderer, noise=noise)).pixels.tobytes()

    silent = len(renderer.facts.noise_layers)
    assert pixels(Noise("none")) == pixels(Noise("const", gain=0.0)) == pixels(Noise("random", 1, 1.0, (0.0,) * silent))
    assert pixels(Noise("random", 1)) != pixels(Noise("random", 2))
    assert pixels(Noise("random", 1)) == pixels(Noise("random", 1))
    assert pixels(Noise("const")) != pixels(Noise("const", layer_gains=(0.0,)))


def test_a_large_batch_is_mapped_as_its_rows_are(renderer: Renderer) -> None:
    z = np.random.default_rng(1).normal(size=(70, 8))
    rows = renderer.map(z, psi=0.5, cutoff=3)
    assert rows.shape == (70, 8, 8)
    assert rows.dtype == np.float32
    for index in (0, 31, 32, 69):
        assert rows[index] == pytest.approx(renderer.map(z[index : index + 1], psi=0.5, cutoff=3)[0], abs=1e-5)


def test_statistics_of_several_pictures_are_those_of_all_their_values(renderer: Renderer) -> None:
    rows = renderer.map(np.random.default_rng(2).normal(size=(3, 8)))
    found = renderer.layer_statistics(rows)["synthesis.b4.torgb"]
    parts = [renderer.layer_statistics(row[None])["synthesis.b4.torgb"] for row in rows]
    assert found.shape == (3, 3, 4, 4)
    assert found.mean == pytest.approx(np.mean([part.mean for part in parts]))
    assert found.max == max(part.max for part in parts)
    squares = np.mean([part.std**2 + part.mean**2 for part in parts])
    assert found.std == pytest.approx(math.sqrt(squares - found.mean**2))


def test_a_picture_that_is_not_finite_is_flagged(renderer: Renderer) -> None:
    model = make_stylegan2()
    weights = dict(model.weights)
    weights["synthesis.b16.torgb.bias"] = np.full_like(weights["synthesis.b16.torgb.bias"], np.nan)
    broken = Renderer(replace(model, weights=weights), "cpu")
    assert "not finite" in broken.render(request_for(broken)).warnings[0]
    broken.close()
    assert renderer.render(request_for(renderer)).warnings == ()


def test_the_device_is_named_with_its_reason(renderer: Renderer) -> None:
    assert (renderer.device.id, renderer.device.name, renderer.device.precision) == ("cpu", "CPU", "fp32")
    assert renderer.device.reason == "CPU: it was chosen."


def test_a_device_that_is_not_there_is_refused_before_the_file_is_read() -> None:
    with pytest.raises(DeviceError, match=r"The GPU must be one of|none can be used"):
        open_renderer("nowhere.pkl", device="cuda:99")
    with pytest.raises(DeviceError, match=r"must be one of auto, cpu, cuda, .*, not 'tpu'"):
        open_renderer("nowhere.pkl", device="tpu")


def test_closing_twice_is_fine_and_a_closed_renderer_raises_an_error() -> None:
    renderer = Renderer(make_stylegan2(), "cpu")
    request = request_for(renderer)
    renderer.close()
    renderer.close()
    rows = np.zeros((1, renderer.facts.num_ws, renderer.facts.w_dim))
    for use in (
        lambda: renderer.render(request),
        lambda: renderer.map(np.zeros((1, 8))),
        lambda: renderer.synthesize(rows),
        lambda: renderer.layer_statistics(rows),
        renderer.prepare,
    ):
        with pytest.raises(DeviceError, match="it was closed; open the model again"):
            use()
    assert renderer.nbytes == 0


def test_the_rows_of_a_frame_give_the_same_picture_as_a_stored_latent(renderer: Renderer) -> None:
    frame = renderer.render(request_for(renderer, Latent(plane_point(3.25, 1.5)), 0.6))
    assert frame.ws is not None
    assert frame.ws.shape == (renderer.facts.num_ws, renderer.facts.w_dim)
    again = renderer.render(request_for(renderer, Latent(stored_latent(frame.ws)), 0.1))
    assert again.pixels.tobytes() == frame.pixels.tobytes()


def test_arguments_of_unusual_types_are_read_or_refused_in_a_sentence() -> None:
    with Renderer(make_stylegan2(seed=1), device="cpu") as renderer:
        z = torch.ones(1, renderer.facts.z_dim)
        ws = renderer.map(z, psi=torch.tensor(0.5))  # type: ignore[arg-type]
        np.testing.assert_array_equal(ws, renderer.map(z.numpy(), psi=0.5))
        with pytest.raises(RequestError, match="pass a detached tensor"):
            renderer.synthesize(torch.from_numpy(ws).requires_grad_())
        with pytest.raises(RequestError, match="array of numbers"):
            renderer.map(z.numpy() + 1j)
        with pytest.raises(RequestError, match="finite number"):
            renderer.map(z, psi=10**400)
        request = request_for(renderer)
        frames = renderer.render_batch(request for _ in range(2))  # type: ignore[arg-type]
        assert [frame.pixels.tobytes() for frame in frames] == [renderer.render(request).pixels.tobytes()] * 2
        with pytest.raises(TypeError, match="RenderOptions, not a NoneType"):
            renderer.options = None  # type: ignore[assignment]
        renderer.render(request)
