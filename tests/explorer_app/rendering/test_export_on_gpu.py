"""Exports on a GPU: two frames in flight, in order, and whole whatever happens to the GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.news import ExportEnded
from gpu_backend import DeviceLostError
from tests.helpers.fake_renderer import GPU, OTHER_GPU, Engine
from tests.helpers.render_desk import Desk, Job

LOST = DeviceLostError("The GPU stopped answering.")


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU, OTHER_GPU))


def test_an_export_has_two_frames_in_flight_and_all_of_them_in_order(start: Callable[..., Desk], engine: Engine):
    desk = start()
    job = Job(*range(100, 120))
    desk.thread.export(job)
    desk.ask(1)
    desk.until(lambda: job.is_over and desk.frames)
    assert job.got == list(range(100, 120))
    assert engine.made[0].most_in_flight == 2
    assert engine.made[0].in_flight == 0


def test_an_export_goes_on_with_the_processor_when_the_gpu_is_lost(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    engine.gate.let_through(3)
    desk.until(lambda: len(job.got) == 3)
    engine.gpu_failing = LOST
    engine.gate.open()
    desk.until(lambda: desk.of(ExportEnded))
    assert job.got == list(range(100, 108))
    assert desk.of(ExportEnded)[0].error is None
    assert desk.devices == ["cuda:0", "cpu"]


@pytest.mark.parametrize("device", ["cuda:1", "cpu"])
def test_an_export_goes_on_where_it_was_on_another_device_that_is_chosen_meanwhile(
    start: Callable[..., Desk], engine: Engine, device: str
):
    desk = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    engine.gate.let_through(2)
    desk.until(lambda: len(job.got) == 2)
    desk.thread.use(DeviceChoice(device))
    engine.gate.open()
    desk.until(lambda: desk.of(ExportEnded))
    assert job.got == list(range(100, 108))
    assert desk.devices == ["cuda:0", device]
    assert desk.of(ExportEnded)[0].error is None


def test_an_export_that_is_cancelled_leaves_nothing_in_flight(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    job = Job(*range(100, 108))
    desk.thread.export(job)
    engine.gate.wait_for_knock()
    desk.thread.cancel_export(job)
    engine.gate.open()
    desk.until(lambda: job.stopped)
    assert job.stopped == [True]
    assert len(job.got) <= 1
    assert engine.made[0].in_flight == 0


def test_a_picture_that_is_saved_passes_the_frames_in_flight(start: Callable[..., Desk], engine: Engine):
    desk = start()
    engine.gate.shut()
    sequence, picture = Job(*range(100, 106)), Job(50)
    desk.thread.export(sequence)
    engine.gate.wait_for_knock()
    desk.thread.export(picture, urgent=True)
    engine.gate.open()
    desk.until(lambda: sequence.is_over and picture.is_over)
    assert sequence.got == list(range(100, 106))
    assert desk.of(ExportEnded)[0].job is picture
