"""A model made ready on a device, its directions beside."""

import threading
import weakref
from typing import cast

import pytest

from gpu_backend import Renderer
from gpu_backend.device import DeviceFacts
from gpu_backend.errors import DeviceMemoryError
from gpu_backend.latent.directions import Directions
from gpu_backend.model import Model
from gpu_backend.model_directions import model_directions
from gpu_backend.plan.executor import Executor as PlanExecutor
from gpu_backend.renderer import opening
from gpu_backend.renderer.opening import open_model
from tests.helpers.fake_executor import FakeExecutor
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for

BUDGET = 1 << 30
MODEL = make_stylegan2()


def test_directions_are_found_while_the_networks_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=20)

    class Executor(FakeExecutor):
        def bind(self, *arguments: object, **options: object) -> object:  # type: ignore[override]
            if not self.bound:
                both.wait()
            return super().bind(*arguments, **options)  # type: ignore[arg-type]

    def found(model: Model) -> Directions:
        both.wait()
        return model_directions(model)

    monkeypatch.setattr(opening, "model_directions", found)
    executor = Executor()
    opened = open_model(MODEL, "auto", "fp16", cast("PlanExecutor", executor), BUDGET)
    assert opened.directions.names == model_directions(MODEL).names
    assert opened.executor is cast("PlanExecutor", executor)
    assert opened.device.name == "FAKE GPU"
    opened.runner.close()


def test_nothing_stays_open_where_there_are_no_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: Model) -> Directions:
        raise MemoryError

    monkeypatch.setattr(opening, "model_directions", broken)
    executor = FakeExecutor()
    with pytest.raises(MemoryError):
        open_model(MODEL, "auto", "fp16", cast("PlanExecutor", executor), BUDGET)
    assert executor.bound == []
    assert executor.closed == 1


def test_no_thread_stays_where_the_device_has_no_room() -> None:
    before = threading.active_count()
    with pytest.raises(DeviceMemoryError):
        open_model(MODEL, "auto", "fp16", FakeExecutor(memory_nbytes=1), BUDGET)
    assert threading.active_count() == before


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> FakeExecutor:
    """A GPU that starts, but has no room for the networks."""
    executor = FakeExecutor(memory_nbytes=1)
    facts = DeviceFacts("FAKE GPU", "fp16", "FAKE GPU: it is the first GPU.", "cuda:0")
    monkeypatch.setattr(opening, "make_executor", lambda *_: (executor, facts))
    return executor


def test_the_processor_takes_the_place_of_a_gpu_without_room_and_says_why(small_gpu: FakeExecutor) -> None:
    opened = open_model(MODEL, "auto", "fp16", None, BUDGET)
    try:
        assert (opened.device.id, opened.executor.device_name) == ("cpu", "CPU")
        assert opened.device.reason.startswith("CPU: FAKE GPU has not enough free memory")
        assert small_gpu.closed
    finally:
        opened.runner.close()


def test_a_gpu_that_was_asked_for_by_name_is_not_replaced(small_gpu: FakeExecutor) -> None:
    with pytest.raises(DeviceMemoryError):
        open_model(MODEL, "cuda:0", "fp16", None, BUDGET)
    assert small_gpu.closed


def test_a_closed_renderer_goes_without_the_collector() -> None:
    """Within a test it does not come."""
    renderer = Renderer(MODEL, executor=FakeExecutor())
    renderer.render(request_for(renderer))
    gone = weakref.ref(renderer)
    renderer.close()
    del renderer
    assert gone() is None
