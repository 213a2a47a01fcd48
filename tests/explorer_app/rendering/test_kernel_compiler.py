"""Compiling beside everything else: progress, an end, and being cancelled at any moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.kernel_compiler import KernelCompiler
from explorer_app.rendering.render_events import KernelsCompiling, RenderEvent
from gpu_backend import DeviceError
from tests.helpers.fake_renderer import GPU, Engine
from tests.helpers.render_harness import MODEL, OTHER

CHOICE = DeviceChoice("cuda:0")


class Workshop:
    """A compiler, what it told, and the condition on which the rendering thread would wait."""

    def __init__(self) -> None:
        self.engine = Engine(gpus=(GPU,), missing=3)
        self.condition = threading.Condition()
        self.told: list[RenderEvent] = []
        self.compiler = KernelCompiler(self.engine, self.condition, self.told.append)

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        with self.condition:
            assert self.condition.wait_for(is_so, 30)

    def threads(self) -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "compiling kernels"]

    def join(self) -> None:
        for thread in self.threads():
            thread.join(30)
        assert not self.threads()


@pytest.fixture
def workshop() -> Iterator[Workshop]:
    made = Workshop()
    yield made
    made.compiler.close()
    assert not made.threads()


def test_it_reports_progress_and_then_its_end(workshop: Workshop) -> None:
    workshop.compiler.start(MODEL, CHOICE)
    workshop.wait_for(lambda: workshop.compiler.has_ended)
    ended = workshop.compiler.take()
    assert ended is not None
    assert (ended.model, ended.choice, ended.error) == (MODEL, CHOICE, None)
    assert workshop.told == [KernelsCompiling(done, 14) for done in (12, 13, 14)]
    assert workshop.compiler.take() is None


def test_an_error_is_how_it_ended(workshop: Workshop) -> None:
    workshop.engine.compile_failing = DeviceError("There is no compiler.")
    workshop.compiler.start(MODEL, CHOICE)
    workshop.wait_for(lambda: workshop.compiler.has_ended)
    ended = workshop.compiler.take()
    assert ended is not None
    assert ended.error is workshop.engine.compile_failing


def test_nothing_is_heard_of_what_was_cancelled(workshop: Workshop) -> None:
    workshop.engine.compile_gate.shut()
    workshop.compiler.start(MODEL, CHOICE)
    workshop.compiler.cancel()
    workshop.compiler.cancel()
    workshop.compiler.close()
    assert not workshop.compiler.has_ended
    assert workshop.told == []


def test_a_compilation_that_ended_before_its_cancellation_is_forgotten(workshop: Workshop) -> None:
    workshop.compiler.start(MODEL, CHOICE)
    workshop.wait_for(lambda: workshop.compiler.has_ended)
    workshop.compiler.cancel()
    assert workshop.compiler.take() is None


def test_another_model_takes_the_place_of_the_one_before(workshop: Workshop) -> None:
    workshop.engine.compile_gate.shut()
    workshop.compiler.start(MODEL, CHOICE)
    workshop.compiler.start(OTHER, CHOICE)
    workshop.engine.compile_gate.open()
    workshop.wait_for(lambda: workshop.compiler.has_ended)
    ended = workshop.compiler.take()
    assert ended is not None
    assert ended.model is OTHER


def test_closing_waits_for_the_kernel_under_way(workshop: Workshop, monkeypatch: Any) -> None:
    begun, done = threading.Event(), threading.Event()

    def slow(*_: Any, **__: Any) -> None:
        begun.set()
        threading.Event().wait(0.1)
        done.set()

    monkeypatch.setattr(workshop.engine, "compile_kernels", slow)
    workshop.compiler.start(MODEL, CHOICE)
    assert begun.wait(30)
    workshop.compiler.close()
    assert done.is_set()


def test_the_layer_kernels_compile_without_messages(workshop: Workshop) -> None:
    workshop.compiler.start_layers(MODEL, CHOICE)
    workshop.join()
    assert workshop.engine.layers_compiled == [(MODEL.facts.model_id, CHOICE.precision)]
    assert workshop.told == []
    assert not workshop.compiler.has_ended


def test_a_layer_whose_kernels_do_not_compile_is_reported_only_when_it_is_shown(workshop: Workshop) -> None:
    workshop.engine.compile_failing = DeviceError("There is no compiler.")
    workshop.compiler.start_layers(MODEL, CHOICE)
    workshop.join()
    assert workshop.told == []
    assert not workshop.compiler.has_ended


def test_another_model_cancels_what_shows_layers_of_the_one_before(workshop: Workshop) -> None:
    workshop.engine.layer_gate.shut()
    workshop.compiler.start_layers(MODEL, CHOICE)
    workshop.compiler.start(OTHER, CHOICE)
    workshop.wait_for(lambda: workshop.compiler.has_ended)
    workshop.join()
    assert workshop.engine.layers_compiled == []
