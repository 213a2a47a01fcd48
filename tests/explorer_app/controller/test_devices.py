"""Devices as a person meets them: chosen, compiled for, lost and tried again, with session and picture in place."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from explorer_app.controller import Compiling, preferred_choice
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level, Message
from explorer_app.rendering import render_thread
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Position
from explorer_app.session.storage import load_session
from gpu_backend import DeviceError, DeviceLostError, DeviceMemoryError, RenderOptions, RequestError
from tests.helpers.desk import Desk
from tests.helpers.fake_renderer import GPU, OTHER_GPU, FakeDevice

LOST = DeviceLostError("The GPU stopped answering.", "CUDA_ERROR_UNKNOWN")


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """The same, on a machine with two GPUs."""
    desk.engine.gpus = (GPU, OTHER_GPU)
    return desk


def warning(desk: Desk) -> Message:
    """The newest warning."""
    return [message for message in desk.messages.messages if message.level == Level.WARNING][-1]


def on(desk: Desk, device: str) -> bool:
    return desk.controller.device is not None and desk.controller.device.id == device


def test_a_gpu_renders_from_the_start_and_says_what_it_holds(open_desk: Desk):
    state = open_desk.controller.devices
    assert state.device == GPU
    assert state.is_on_gpu
    assert (state.gpus, state.compiling, state.problem) == ((GPU, OTHER_GPU), None, "")
    assert state.memory is not None
    assert state.memory.total == 572_000_000
    assert state.reason == GPU.reason
    assert open_desk.said() == []


def test_kernels_are_compiled_while_the_processor_shows_the_first_picture(desk: Desk):
    desk.engine.missing = 14
    desk.engine.compile_gate.shut()
    desk.start()
    desk.until(lambda: desk.controller.devices.compiling)
    state = desk.controller.devices
    assert state.compiling == Compiling(0, 14)
    assert state.reason == "Until 14 kernels are compiled for Loom 9000, the CPU renders."
    desk.engine.compile_gate.open()
    desk.until(lambda: len(desk.frames) == 2)
    assert on(desk, "cuda:0")
    assert desk.controller.devices.compiling is None
    assert desk.frames[0].request == desk.frames[1].request
    assert desk.labels == ["Start"], "nothing that a person did"
    assert desk.said() == []


def test_a_choice_is_kept_for_the_next_start_and_changes_neither_session_nor_picture(open_desk: Desk):
    desk = open_desk
    desk.walk(5.0)
    desk.rest()
    picture, labels = desk.frames[-1].request, desk.labels
    desk.controller.choose_device("cuda:1")
    desk.until(lambda: on(desk, "cuda:1"))
    desk.controller.choose_precision("fp32")
    desk.until(lambda: desk.controller.device.precision == "fp32")
    count = len(desk.frames)
    desk.controller.choose_device("cpu")
    desk.until(lambda: on(desk, "cpu") and len(desk.frames) > count)
    assert desk.frames[-1].request == picture
    assert desk.labels == labels
    assert desk.said() == []
    again = desk.reopened()
    assert preferred_choice(again.settings) == DeviceChoice("cpu", "fp32")
    assert preferred_choice(again.settings, "cuda", "fp16") == DeviceChoice("cuda", "fp16")
    again.engine.gpus = (GPU,)
    again.start()
    assert on(again, "cpu")
    again.close()


@pytest.mark.parametrize(
    "error",
    [LOST, DeviceMemoryError("The GPU has no room for this picture.")],
    ids=["lost", "out of memory"],
)
def test_a_gpu_that_fails_is_told_in_one_sentence_and_the_session_is_saved_at_once(open_desk: Desk, error: DeviceError):
    desk = open_desk
    desk.engine.gpu_failing = error
    desk.walk(7.0)
    desk.rest()
    assert on(desk, "cpu")
    assert desk.x == 7.0
    assert warning(desk).sentence == f"{error.sentence[:-1]} – the CPU goes on, and the session is saved."
    assert len(desk.said(Level.WARNING)) == 1
    assert desk.controller.devices.problem == error.sentence
    desk.until((desk.state / "session.loom").exists)
    assert load_session(desk.state / "session.loom").position == Position(7.0, 0.0)


def test_advice_that_is_followed_already_is_left_to_the_details(open_desk: Desk):
    desk = open_desk
    sentence = "The GPU stopped working; save the session and start the program again, or go on with the CPU."
    desk.engine.gpu_failing = DeviceLostError(sentence, "CUDA_ERROR_UNKNOWN")
    desk.walk(7.0)
    desk.until(lambda: on(desk, "cpu"))
    assert warning(desk).sentence == "The GPU stopped working – the CPU goes on, and the session is saved."
    assert warning(desk).details == f"{sentence}\nCUDA_ERROR_UNKNOWN"


def test_a_lost_gpu_is_tried_again_from_its_message(open_desk: Desk):
    desk = open_desk
    desk.engine.gpu_failing = LOST
    desk.walk(7.0)
    desk.until(lambda: on(desk, "cpu"))
    action = warning(desk).action
    assert action is not None
    assert action.words == "Try the GPU again"
    assert desk.controller.devices.can_try_again
    assert action.is_needed()
    action.call()
    assert not action.is_needed(), "it is being tried"
    desk.until(lambda: len(desk.said(Level.WARNING)) == 2)
    assert on(desk, "cpu"), "it is still lost"
    desk.engine.gpu_failing = None
    desk.controller.try_device_again()
    desk.until(lambda: on(desk, "cuda:0"))
    desk.rest()
    assert desk.controller.devices.problem == ""
    assert not desk.controller.devices.can_try_again
    assert not action.is_needed()


def test_an_old_driver_is_told_once_and_the_processor_renders(desk: Desk):
    error = DeviceError("CUDA 13 needs driver 580 or newer, but this is 535.")
    desk.settings.change(device="cuda:0")
    desk.engine.gpu_missing = error
    desk.start()
    desk.until(desk.said)
    assert desk.said() == ["CUDA 13 needs driver 580 or newer, but this is 535 – the CPU goes on."]
    assert desk.controller.devices.reason == error.sentence


def test_without_a_gpu_nothing_is_said_but_why(desk: Desk):
    desk.engine.gpus = ()
    desk.start()
    state = desk.controller.devices
    desk.until(lambda: desk.controller.devices.devices)
    assert desk.said() == []
    assert state.gpus == ()
    assert desk.controller.devices.why_no_gpu == "For a test."


def test_a_gpu_whose_driver_is_too_old_is_told_at_the_first_start_only(desk: Desk):
    desk.engine.gpus = ()
    desk.engine.processor = FakeDevice(reason="CPU: CUDA 13 needs driver 580 or newer.", driver="535.54")
    desk.start()
    desk.until(desk.said)
    assert desk.said() == ["CUDA 13 needs driver 580 or newer – the CPU renders meanwhile."]
    again = desk.reopened()
    again.engine.processor = desk.engine.processor
    again.start()
    again.until(lambda: again.controller.devices.devices)
    assert len(again.said()) == 1
    assert again.controller.devices.why_no_gpu == "CUDA 13 needs driver 580 or newer."
    again.close()


def test_a_wish_that_cannot_be_met_leaves_the_gpu_that_renders(open_desk: Desk):
    desk = open_desk
    desk.engine.gpu_missing = DeviceError("There is no cuda:7.")
    desk.controller.choose_device("cuda:7")
    desk.until(desk.said)
    assert desk.said() == ["There is no cuda:7 – Loom 9000 goes on."]
    assert on(desk, "cuda:0")


def test_drafts_are_not_taken_where_a_gpu_keeps_the_budget(desk: Desk):
    desk.library.options["cats"] = {"resolution": 1024}
    desk.engine.missing = 1
    desk.engine.compile_gate.shut()
    desk.engine.full_ms = 400.0
    desk.start()
    desk.walk(1.0, 2.0, release=False)
    desk.until(lambda: desk.frames[-1].is_draft)
    desk.engine.full_ms = 1.5
    desk.engine.compile_gate.open()
    desk.until(lambda: on(desk, "cuda:0"))
    desk.rest()
    count = len(desk.frames)
    desk.walk(3.0, 4.0, release=False)
    desk.until(lambda: desk.frames[-1].request.blend == resolve(desk.controller.session).blend)
    assert not any(frame.is_draft for frame in desk.frames[count:])


def test_a_large_model_on_a_gpu_is_not_drafted_before_anybody_measured(desk: Desk):
    desk.library.options["cats"] = {"resolution": 1024}
    desk.start()
    desk.controller._preview.statistics.clear()
    desk.walk(1.0, release=False)
    desk.until(lambda: desk.frames[-1].request.blend != desk.frames[0].request.blend)
    assert not any(frame.is_draft for frame in desk.frames)


def test_figures_of_another_device_begin_anew(open_desk: Desk):
    desk = open_desk
    for x in (1.0, 2.0, 3.0):
        desk.walk(x)
        desk.rest()
    before = len(desk.controller.statistics.frame_times_ms)
    desk.controller.choose_device("cpu")
    count = len(desk.frames)
    desk.until(lambda: on(desk, "cpu") and len(desk.frames) > count)
    assert before >= 4
    assert len(desk.controller.statistics.frame_times_ms) == 1


def test_options_are_orders_for_the_rendering_thread_and_the_picture_is_made_again(open_desk: Desk):
    desk = open_desk
    told: list[RenderOptions] = []
    desk.controller.render_options_changed.connect(lambda: told.append(desk.controller.render_options))
    assert desk.controller.render_options == RenderOptions()
    options = RenderOptions(use_fused=False)
    desk.controller.set_render_options(options)
    desk.until(lambda: len(desk.frames) == 2)
    assert desk.engine.made[-1].options == options
    assert desk.frames[0].request == desk.frames[1].request
    desk.controller.set_render_options(options)
    assert told == [options]


def test_comparing_asks_once_and_brings_what_was_found(open_desk: Desk):
    desk = open_desk
    desk.controller.compare()
    desk.controller.compare()
    assert desk.controller.is_comparing
    desk.until(lambda: not desk.controller.is_comparing)
    assert str(desk.controller.comparison).startswith("comparison of sha of cats.pkl")
    desk.controller.choose_device("cpu")
    desk.until(lambda: on(desk, "cpu"))
    assert desk.controller.comparison is None, "that was another device"


def test_a_comparison_that_fails_is_told(open_desk: Desk):
    desk = open_desk
    desk.engine.failing = RequestError("No.")
    desk.controller.compare()
    desk.until(desk.said)
    assert desk.said() == ["No."]
    assert (desk.controller.is_comparing, desk.controller.comparison) == (False, None)


def test_comparing_without_a_model_does_nothing(desk: Desk):
    desk.controller.compare()
    assert not desk.controller.is_comparing


@pytest.mark.parametrize("moment", ["compiling", "taking over", "comparing"])
def test_closing_at_any_moment_ends_everything(desk: Desk, moment: str, monkeypatch: Any):
    desk.engine.missing = 3
    desk.engine.compile_gate.shut()
    desk.start()
    desk.until(lambda: desk.controller.devices.compiling)
    if moment == "taking over":
        desk.engine.compile_gate.open()
    elif moment == "comparing":
        desk.controller.compare()
    desk.controller.close()
    desk.controller.close()
    assert not {"compiling kernels", "rendering"} & {thread.name for thread in threading.enumerate()}


def test_an_export_goes_on_with_the_processor(open_desk: Desk, tmp_path: Path):
    desk = open_desk
    key = Keyframe.of(resolve(desk.controller.session))
    desk.engine.gate.shut()
    desk.controller.start_export(
        SequenceSettings((key, key), tmp_path / "out", "walk", desk.controller.session.model, "w-linear", 10, z_dim=8)
    )
    desk.engine.gate.wait_for_knock()
    desk.engine.gpu_failing = LOST
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.export is None)
    assert on(desk, "cpu")
    assert len(list((tmp_path / "out").glob("*.png"))) == 11
    assert desk.said()[-1].startswith("Exported 11 frames")


def test_a_device_that_never_answers_costs_neither_the_end_nor_the_session(open_desk: Desk, monkeypatch: Any):
    desk = open_desk
    monkeypatch.setattr(render_thread, "_END_S", 0.2)
    desk.walk(9.0)
    desk.rest()
    desk.engine.gate.shut()
    desk.walk(10.0)
    desk.engine.gate.wait_for_knock()
    desk.controller.close()
    assert load_session(desk.state / "session.loom").position == Position(10.0, 0.0)
