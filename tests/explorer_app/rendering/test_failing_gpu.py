"""A GPU that is lost, short of memory, or cannot begin: the processor goes on, and nothing asked for is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import (
    CompareFailed,
    DeviceChanged,
    DeviceFailed,
    ModelRefused,
    RenderFailed,
    ThumbnailMade,
)
from gpu_backend import DeviceError, DeviceLostError, DeviceMemoryError, RequestError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_harness import OTHER, Harness, request, seed_of

LOST = DeviceLostError("The GPU stopped answering.")
SHORT = DeviceMemoryError("The GPU has no room for this plan.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


@pytest.mark.parametrize("error", [LOST, SHORT], ids=["lost", "out of memory"])
def test_a_gpu_that_fails_costs_no_picture(start: Callable[..., Harness], engine: Engine, error: Exception) -> None:
    harness = start()
    harness.show(1)
    engine.gpu_failing = error
    harness.show(2)
    assert harness.devices == ["cuda:0", "cpu"]
    (failed,) = harness.of(DeviceFailed)
    assert (failed.error, failed.was_rendering) == (error, True)
    assert not harness.of(RenderFailed)
    assert engine.made[0].closed == 1
    order = [type(event) for event in harness.event]
    assert order.index(DeviceFailed) < order.index(DeviceChanged), "why comes before what"


def test_a_request_that_makes_no_sense_is_not_the_gpus_fault(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    engine.failing = RequestError("No such row.")
    harness.submit(1)
    harness.until(lambda: harness.of(RenderFailed))
    assert harness.devices == ["cuda:0"]


def test_a_lost_gpu_is_left_alone_by_the_next_model_until_it_is_tried_again(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.gpu_failing = LOST
    harness.show(1)
    harness.open(OTHER)
    assert [device for device, _ in engine.made_on] == ["cuda:0", "cpu", "cpu"]
    engine.gpu_failing = None
    harness.thread.use(DeviceChoice())
    harness.until(lambda: harness.devices[-1] == "cuda:0")
    harness.submit(2, OTHER)
    harness.until(lambda: seed_of(harness.frames[-1].request) == 2)
    assert len(harness.of(DeviceFailed)) == 1


def test_a_gpu_that_was_short_of_memory_may_have_room_for_the_next_model(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.gpu_failing = SHORT
    harness.show(1)
    engine.gpu_failing = None
    harness.open(OTHER)
    assert harness.devices[-1] == "cuda:0"


@pytest.mark.parametrize("reason", ["gpu_missing", "gpu_refusing"])
def test_a_gpu_that_cannot_begin_leaves_the_model_to_the_processor(
    start: Callable[..., Harness], engine: Engine, reason: str
) -> None:
    error = DeviceError("CUDA 13 needs driver 580 or newer, but this is 535.")
    setattr(engine, reason, error)
    harness = start(DeviceChoice("cuda"))
    harness.show(1)
    harness.until(lambda: harness.of(DeviceFailed))
    assert [(event.error, event.was_rendering) for event in harness.of(DeviceFailed)] == [(error, False)]
    assert harness.devices == ["cpu"]
    assert not harness.of(ModelRefused)


def test_a_gpu_that_cannot_be_used_leaves_the_one_that_renders_in_place(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.gpu_missing = DeviceError("There is no cuda:7.")
    harness.thread.use(DeviceChoice("cuda:7"))
    harness.until(lambda: harness.of(DeviceFailed))
    harness.show(1)
    assert harness.devices == ["cuda:0"]


def test_where_memory_is_short_the_former_model_makes_room_for_the_next(
    start: Callable[..., Harness], engine: Engine, monkeypatch: Any
) -> None:
    harness = start()
    make = engine.make_renderer

    def with_little_memory(*arguments: Any) -> Any:
        if any(not renderer.closed for renderer in engine.made):
            raise SHORT
        return make(*arguments)

    monkeypatch.setattr(engine, "make_renderer", with_little_memory)
    harness.open(OTHER)
    assert harness.devices == ["cuda:0", "cuda:0"]
    assert not harness.of(DeviceFailed)


@pytest.fixture
def with_room_for_one(engine: Engine, monkeypatch: Any) -> Callable[[Exception | None], None]:
    """Have a GPU with room for one model at a time, and none for the other one."""
    make = engine.make_renderer

    def refuse_the_other(then: Exception | None) -> None:
        def make_renderer(model: Any, choice: DeviceChoice) -> Any:
            if model is OTHER:
                if all(renderer.closed for renderer in engine.made):
                    engine.gpu_refusing = then
                raise SHORT
            return make(model, choice)

        monkeypatch.setattr(engine, "make_renderer", make_renderer)

    return refuse_the_other


def test_a_former_model_that_made_room_for_nothing_comes_back(
    start: Callable[..., Harness], engine: Engine, with_room_for_one: Callable[[Exception | None], None]
) -> None:
    harness = start()
    with_room_for_one(None)
    harness.thread.open(OTHER)
    harness.until(lambda: harness.of(ModelRefused))
    harness.show(1)
    assert engine.made_on == [("cuda:0", "fp16"), ("cuda:0", "fp16")]
    assert not harness.of(DeviceFailed)


def test_a_former_model_that_made_room_and_finds_none_is_rendered_by_the_processor(
    start: Callable[..., Harness], engine: Engine, with_room_for_one: Callable[[Exception | None], None]
) -> None:
    harness = start()
    with_room_for_one(SHORT)
    harness.thread.open(OTHER)
    harness.until(lambda: harness.of(ModelRefused))
    harness.show(1)
    assert engine.made_on[-1] == ("cpu", "fp32")
    assert [event.device.id for event in harness.of(DeviceChanged)] == ["cpu"], "the window is to know what renders"
    assert [event.error for event in harness.of(DeviceFailed)] == [SHORT]


def test_a_comparison_that_finds_no_memory_leaves_the_gpu_at_work(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.failing = SHORT
    harness.thread.compare(request(1))
    harness.until(lambda: harness.of(CompareFailed))
    engine.failing = None
    harness.show(1)
    assert harness.devices == ["cuda:0"]


def test_a_small_picture_that_the_gpu_failed_at_is_made_by_the_processor(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.gpu_failing = LOST
    harness.thread.request_thumbnail("key", lambda: request(50))
    harness.until(lambda: harness.of(ThumbnailMade))
    assert harness.devices == ["cuda:0", "cpu"]
