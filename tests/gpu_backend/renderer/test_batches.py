"""Several requests rendered by one run of a batched plan."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_backend import (
    CancelledError,
    DeviceMemoryError,
    Frame,
    Latent,
    Noise,
    Renderer,
    RenderRequest,
    RequestError,
    Tap,
    open_renderer,
    plane_point,
)
from gpu_backend.plan.plan import PlanKey
from gpu_backend.renderer.batches import batch_size_for
from tests.helpers.fake_executor import FakeExecutor
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

MODEL = make_stylegan2(resolution=16, channel_base=128, channel_max=8)


@pytest.fixture
def executor() -> FakeExecutor:
    return FakeExecutor()


@pytest.fixture
def renderer(executor: FakeExecutor) -> Iterator[Renderer]:
    renderer = Renderer(MODEL, executor=executor)
    yield renderer
    renderer.close()


def requests_of(renderer: Renderer, count: int, **fields: Any) -> list[RenderRequest]:
    return [request_for(renderer, Latent(plane_point(place / 3, 1.25)), **fields) for place in range(count)]


def batches(executor: FakeExecutor) -> list[int]:
    return [run.key.batch for run in executor.runs("synthesis")]


def same(one: Frame, other: Frame) -> bool:
    return one.request == other.request and one.pixels.tobytes() == other.pixels.tobytes()


def test_frames_with_floats_and_without_are_not_one_run(renderer: Renderer, executor: FakeExecutor) -> None:
    requests = requests_of(renderer, 16)
    mixed = [replace(request, wants_image=place % 2 == 0) for place, request in enumerate(requests)]
    frames = renderer.render_batch(mixed)
    assert batches(executor) == [8, 8]
    assert [frame.image is not None for frame in frames] == [True, False] * 8


def test_eight_requests_are_one_run_and_give_their_own_pictures_in_order(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    requests = requests_of(renderer, 8)
    frames = renderer.render_batch(requests)
    assert batches(executor) == [8]
    assert len({frame.pixels.tobytes() for frame in frames}) > 4
    assert all(same(frame, renderer.render(request)) for frame, request in zip(frames, requests, strict=True))


def test_the_remainder_of_a_batch_is_rendered_one_by_one(renderer: Renderer, executor: FakeExecutor) -> None:
    requests = requests_of(renderer, 11)
    frames = renderer.render_batch(requests)
    assert batches(executor) == [8, 1, 1, 1]
    assert [frame.request for frame in frames] == requests


def test_no_requests_give_no_frames(renderer: Renderer, executor: FakeExecutor) -> None:
    assert renderer.render_batch([]) == ()
    assert not executor.runs("synthesis")


def test_requests_with_different_noise_or_resolution_are_not_rendered_together(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    kinds: tuple[dict[str, Any], ...] = ({}, {"noise": Noise("random", 5)}, {"resolution": 8})
    calls = [requests_of(renderer, 8, **fields) for fields in kinds]
    mixed = [request for trio in zip(*calls, strict=True) for request in trio]
    frames = renderer.render_batch(mixed)
    runs = executor.runs("synthesis")
    assert [(run.key.batch, run.key.resolution) for run in runs] == [(8, 16), (8, 16), (8, 8)]
    assert all(same(frame, renderer.render(request)) for frame, request in zip(frames, mixed, strict=True))


def test_layers_and_measured_frames_have_a_run_each(renderer: Renderer, executor: FakeExecutor) -> None:
    measured = requests_of(renderer, 8, measure_steps=True)
    assert all(frame.timings.steps for frame in renderer.render_batch(measured))
    assert batches(executor) == [1] * 8


def test_a_layer_comes_back_with_its_statistics() -> None:
    with Renderer(MODEL, "cpu") as renderer:
        frames = renderer.render_batch(requests_of(renderer, 2, tap=Tap("b8.conv1", (0,))))
        assert [frame.tap.layer for frame in frames if frame.tap is not None] == ["b8.conv1"] * 2


def test_a_request_that_does_not_fit_is_reported_before_anything_is_rendered(
    renderer: Renderer, executor: FakeExecutor
) -> None:
    requests = [*requests_of(renderer, 9), request_for(renderer, resolution=12)]
    with pytest.raises(RequestError, match="resolution"):
        renderer.render_batch(requests)
    assert not executor.runs("synthesis")


def test_a_batch_that_was_cancelled_leaves_the_renderer_as_good_as_before(renderer: Renderer) -> None:
    requests = requests_of(renderer, 8)
    with pytest.raises(CancelledError):
        renderer.render_batch(requests, should_cancel=lambda: True)
    assert [frame.request for frame in renderer.render_batch(requests)] == requests


def test_where_memory_is_short_smaller_batches_are_rendered_from_then_on(executor: FakeExecutor) -> None:
    with Renderer(MODEL, executor=executor) as renderer:
        executor.memory_nbytes = sum(plan.nbytes for plan in executor.bound) + 5 * executor.bound[-1].nbytes
        requests = requests_of(renderer, 10)
        first, again = renderer.render_batch(requests), renderer.render_batch(requests)
        assert batches(executor) == [4, 4, 1, 1] * 2
        assert all(same(one, other) for one, other in zip(first, again, strict=True))


def test_where_memory_is_short_a_preview_beside_batches_stays_ready(executor: FakeExecutor) -> None:
    with Renderer(MODEL, executor=executor) as renderer:
        preview = request_for(renderer, resolution=8)
        renderer.render(preview)
        bound = list(executor.bound)
        executor.memory_nbytes = sum(plan.nbytes for plan in bound) + 5 * bound[1].nbytes
        requests = requests_of(renderer, 8)
        renderer.render_batch(requests)
        standing = list(executor.bound)
        for _ in range(2):
            renderer.render(preview)
            renderer.render_batch(requests)
        assert executor.bound == standing
        assert standing[: len(bound)] == bound
        assert batches(executor) == [1, 4, 4] * 3


def test_where_there_is_no_memory_at_all_the_error_is_the_devices(executor: FakeExecutor) -> None:
    with Renderer(MODEL, executor=executor) as renderer:
        executor.memory_nbytes = 0
        with pytest.raises(DeviceMemoryError):
            renderer.render_batch(requests_of(renderer, 2, resolution=8))


def test_a_frames_share_of_the_devices_time_is_an_equal_part(executor: FakeExecutor) -> None:
    executor.delay_s = 0.002
    with Renderer(MODEL, executor=executor) as renderer:
        frames = renderer.render_batch(requests_of(renderer, 8))
        assert {frame.timings.device_ms for frame in frames} == {0.25}


def test_frames_of_a_batch_wait_in_any_order(renderer: Renderer) -> None:
    pending = renderer.submit_batch(requests_of(renderer, 8))
    backwards = [frame.wait() for frame in reversed(pending)]
    assert backwards == [frame.wait() for frame in reversed(pending)]
    assert not any(frame.pixels.flags.writeable for frame in backwards)


def test_on_the_processor_a_batch_has_the_bytes_of_single_pictures() -> None:
    with Renderer(MODEL, "cpu") as renderer:
        requests = requests_of(renderer, 9, noise=Noise("random", 3))
        frames = renderer.render_batch(requests)
        assert all(same(frame, renderer.render(request)) for frame, request in zip(frames, requests, strict=True))


@pytest.mark.parametrize(("side", "size"), [(16, 8), (1024, 8), (2048, 2), (4096, 1)])
def test_a_run_has_as_many_frames_as_its_memory_allows(side: int, size: int) -> None:
    assert batch_size_for(side, largest=8) == size


def test_a_renderer_closes_at_the_end_of_its_block(executor: FakeExecutor) -> None:
    with Renderer(MODEL, executor=executor) as renderer:
        assert isinstance(renderer, Renderer)
        assert executor.closed == 0
    assert executor.closed == 1


def test_an_opened_file_closes_at_the_end_of_its_block_even_after_an_error() -> None:
    path = "assets/models/loom-landscapes-256.safetensors"
    with pytest.raises(ZeroDivisionError), open_renderer(path, "cpu") as renderer:
        raise ZeroDivisionError
    with pytest.raises(Exception, match="closed"):
        renderer.render(RenderRequest(renderer.facts.model_id))


def test_the_plan_of_a_group_is_that_of_its_requests(renderer: Renderer, executor: FakeExecutor) -> None:
    renderer.render_batch(requests_of(renderer, 8, resolution=8))
    assert executor.runs("synthesis")[0].key == PlanKey(renderer.facts.model_id, "synthesis", 8, 8, "fp16")


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_on_a_gpu_a_batch_has_the_pictures_of_single_runs_and_equal_bytes_in_every_place() -> None:
    model = make_stylegan2(resolution=64, channel_base=4096, channel_max=64)
    with Renderer(model, "cuda") as renderer:
        requests = requests_of(renderer, 8)
        frames = renderer.render_batch([*requests, *reversed(requests)])
        for place, request in enumerate(requests):
            single = renderer.render(request).pixels.astype(np.int16)
            assert frames[place].pixels.tobytes() == frames[-1 - place].pixels.tobytes()
            assert np.abs(frames[place].pixels - single).max() <= 4
