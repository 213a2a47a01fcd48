"""Two pictures in flight on a GPU, one at a time on the processor, and none lost between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from explorer_app.rendering.pipeline import Pipeline
from gpu_backend import CancelledError, DeviceLostError, RenderRequest
from tests.helpers.fake_renderer import GPU, Engine, FakeRenderer
from tests.helpers.render_harness import MODEL, request, seed_of


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def gpu(engine: Engine) -> FakeRenderer:
    return FakeRenderer(MODEL, engine, GPU)


@pytest.fixture
def processor(engine: Engine) -> FakeRenderer:
    return FakeRenderer(MODEL, engine)


def pipeline_of(*seeds: int) -> Pipeline:
    requests = iter([request(seed) for seed in seeds])
    return Pipeline(lambda: next(requests, None))


def frames(pipeline: Pipeline, renderer: FakeRenderer) -> Iterator[int]:
    while (frame := pipeline.next_frame(renderer)) is not None:
        yield seed_of(frame.request)


def test_a_gpu_has_two_pictures_in_flight_and_the_order_is_kept(gpu: FakeRenderer) -> None:
    assert list(frames(pipeline_of(1, 2, 3, 4, 5), gpu)) == [1, 2, 3, 4, 5]
    assert gpu.most_in_flight == 2
    assert gpu.in_flight == 0


def test_the_processor_has_one(processor: FakeRenderer, engine: Engine) -> None:
    pipeline = pipeline_of(1, 2)
    assert pipeline.next_frame(processor) is not None
    assert [seed_of(item) for item in engine.requests] == [1]
    assert list(frames(pipeline, processor)) == [2]


def test_a_single_picture_and_none_at_all_end_as_well(gpu: FakeRenderer) -> None:
    assert list(frames(pipeline_of(1), gpu)) == [1]
    assert list(frames(pipeline_of(), gpu)) == []


def test_requests_unanswered_by_a_lost_gpu_go_to_the_next_renderer(
    gpu: FakeRenderer, processor: FakeRenderer, engine: Engine
) -> None:
    pipeline = pipeline_of(1, 2, 3, 4)
    first = pipeline.next_frame(gpu)
    assert first is not None
    engine.gpu_failing = DeviceLostError("Lost.")
    with pytest.raises(DeviceLostError):
        pipeline.next_frame(gpu)
    assert list(frames(pipeline, processor)) == [2, 3, 4]


def test_a_gpu_that_takes_over_goes_on_where_the_processor_was(gpu: FakeRenderer, processor: FakeRenderer) -> None:
    pipeline = pipeline_of(1, 2, 3)
    assert pipeline.next_frame(processor) is not None
    assert list(frames(pipeline, gpu)) == [2, 3]


def test_a_picture_that_was_cancelled_is_the_next_again(processor: FakeRenderer) -> None:
    pipeline = pipeline_of(1, 2)
    with pytest.raises(CancelledError):
        pipeline.next_frame(processor, should_cancel=lambda: True)
    assert list(frames(pipeline, processor)) == [1, 2]


def test_closing_leaves_nothing_in_flight_even_if_the_gpu_was_lost(gpu: FakeRenderer, engine: Engine) -> None:
    pipeline = pipeline_of(1, 2, 3)
    pipeline.next_frame(gpu)
    engine.gpu_failing = DeviceLostError("Lost.")
    pipeline.close()
    pipeline.close()
    assert gpu.in_flight == 0


def test_a_request_that_cannot_be_planned_is_reported_once_it_is_its_turn(gpu: FakeRenderer) -> None:
    def broken() -> RenderRequest | None:
        raise OSError("The folder is gone.")

    with pytest.raises(OSError, match="gone"):
        Pipeline(broken).next_frame(gpu)
