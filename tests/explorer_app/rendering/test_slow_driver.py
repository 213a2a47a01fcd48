"""A driver that takes its time, or never answers: the processor shows pictures meanwhile, and nothing hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from explorer_app.rendering import device_finder, device_work
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.lifecycle import Lifecycle
from explorer_app.rendering.render_events import DeviceFailed, DevicesFound
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_harness import OTHER, Harness, seed_of


@pytest.fixture
def engine() -> Engine:
    engine = Engine(gpus=(GPU, OTHER_GPU))
    engine.find_gate.shut()
    return engine


@pytest.fixture
def no_patience(monkeypatch: Any) -> None:
    monkeypatch.setattr(device_work, "PATIENCE_S", 0.05)


def test_a_model_waits_for_a_driver_that_answers_soon(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start(opens=False)
    engine.find_gate.wait_for_knock()
    engine.find_gate.open()
    harness.open()
    assert engine.made_on == [("cuda:0", "fp16")]


@pytest.mark.usefixtures("no_patience")
def test_after_a_while_the_processor_shows_the_picture_and_the_gpu_takes_over_when_it_is_found(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    harness.show(7)
    assert engine.made_on == [("cpu", "fp32")]
    assert not harness.of(DevicesFound)
    engine.find_gate.open()
    harness.until(lambda: len(harness.frames) == 2)
    assert harness.devices == ["cpu", "cuda:0"]
    assert harness.frames[0].request == harness.frames[1].request
    assert engine.threads == {"rendering"}


@pytest.mark.usefixtures("no_patience")
def test_a_gpu_that_is_found_late_has_its_kernels_compiled_as_well(
    start: Callable[..., Harness], engine: Engine
) -> None:
    engine.missing = 2
    harness = start()
    engine.find_gate.open()
    harness.until(lambda: harness.devices == ["cpu", "cuda:0"])
    assert harness.compiling == [(12, 14), (13, 14), (14, 14)]


@pytest.mark.usefixtures("no_patience")
def test_another_model_is_opened_meanwhile_and_finds_the_gpu_later(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    harness.open(OTHER)
    engine.find_gate.open()
    harness.until(lambda: harness.devices == ["cpu", "cpu", "cuda:0"])
    assert engine.made[-1].facts == OTHER.facts


def test_a_chosen_device_waits_for_the_driver_and_pictures_do_not(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start(DeviceChoice("cpu"))
    harness.thread.use(DeviceChoice("cuda:1"))
    for seed in (1, 2, 3):
        harness.show(seed)
    assert engine.made_on == [("cpu", "fp32")]
    assert not engine.given_up
    engine.find_gate.open()
    harness.until(lambda: harness.devices == ["cpu", "cuda:1"])
    harness.until(lambda: seed_of(harness.frames[-1].request) == 3)


@pytest.mark.usefixtures("no_patience")
def test_a_driver_that_never_answers_does_not_block_closing(
    start: Callable[..., Harness], engine: Engine, monkeypatch: Any
) -> None:
    monkeypatch.setattr(device_finder, "_END_S", 0.05)
    harness = start()
    harness.show(1)
    harness.thread.close()  # the driver answers when the test is over
    assert harness.thread.state is Lifecycle.CLOSED


def test_looking_that_fails_is_reported_and_the_processor_renders(
    start: Callable[..., Harness], engine: Engine
) -> None:
    class Broken(Engine):
        def find_devices(self) -> Any:
            raise RuntimeError("No such library.")

    engine.find_gate.open()
    engine.__class__ = Broken
    engine.gpus = ()
    harness = start()
    harness.show(1)
    assert harness.of(DeviceFailed)
    assert harness.devices == ["cpu"]
