"""Exports on a GPU: two frames in flight, in order, and whole whatever happens to the GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import ExportEnded
from gpu_backend import DeviceLostError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_harness import Harness, Job

LOST = DeviceLostError("The GPU stopped answering.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


def test_an_export_has_two_frames_in_flight_and_all_of_them_in_order(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    job = Job(*range(100, 120))
    harness.thread.export(job)
    harness.submit(1)
    harness.until(lambda: job.is_over and harness.frames)
    assert job.got == list(range(100, 120))
    assert engine.made[0].most_in_flight == 2
    assert engine.made[0].in_flight == 0


def test_an_export_goes_on_with_the_processor_when_the_gpu_is_lost(
    start: Callable[..., Harness], engine: Engine
) -> None:
    harness = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    harness.thread.export(job)
    engine.gate.wait_for_knock()
    engine.gate.let_through(3)
    harness.until(lambda: len(job.got) == 3)
    engine.gpu_failing = LOST
    engine.gate.open()
    harness.until(lambda: harness.of(ExportEnded))
    assert job.got == list(range(100, 108))
    assert harness.of(ExportEnded)[0].error is None
    assert harness.devices == ["cuda:0", "cpu"]


@pytest.mark.parametrize("device", ["cuda:1", "cpu"])
def test_an_export_goes_on_where_it_was_on_another_device_that_is_chosen_meanwhile(
    start: Callable[..., Harness], engine: Engine, device: str
) -> None:
    harness = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    harness.thread.export(job)
    engine.gate.wait_for_knock()
    engine.gate.let_through(2)
    harness.until(lambda: len(job.got) == 2)
    harness.thread.use(DeviceChoice(device))
    engine.gate.open()
    harness.until(lambda: harness.of(ExportEnded))
    assert job.got == list(range(100, 108))
    assert harness.devices == ["cuda:0", device]
    assert harness.of(ExportEnded)[0].error is None


def test_an_export_that_is_cancelled_leaves_nothing_in_flight(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    harness.thread.export(job)
    engine.gate.wait_for_knock()
    harness.thread.cancel_export(job)
    engine.gate.open()
    harness.until(lambda: job.stopped)
    assert job.stopped == [True]
    assert len(job.got) <= 1
    assert engine.made[0].in_flight == 0


def test_a_picture_that_is_saved_passes_the_frames_in_flight(start: Callable[..., Harness], engine: Engine) -> None:
    harness = start()
    engine.gate.shut()
    sequence, picture = Job(*range(100, 106)), Job(50)
    harness.thread.export(sequence)
    engine.gate.wait_for_knock()
    harness.thread.export(picture, urgent=True)
    engine.gate.open()
    harness.until(lambda: sequence.is_over and picture.is_over)
    assert sequence.got == list(range(100, 106))
    assert harness.of(ExportEnded)[0].job is picture
