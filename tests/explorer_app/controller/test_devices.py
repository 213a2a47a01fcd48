"""Devices as a person meets them: chosen, compiled for, lost and tried again, with session and picture in place."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from explorer_app.controller import Compiling
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level, Message
from explorer_app.rendering import likely_device, render_thread
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.likely_device import expects_gpu, may_render_on_gpu, preferred_choice
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Position
from explorer_app.session.storage import load_session
from gpu_backend import DeviceError, DeviceLostError, DeviceMemoryError, RenderOptions, RequestError
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import GPU, OTHER_GPU, FakeDevice

LOST = DeviceLostError("The GPU stopped answering.", "CUDA_ERROR_UNKNOWN")


@pytest.fixture
def harness(harness: Harness) -> Harness:
    """The same, on a machine with two GPUs."""
    harness.engine.gpus = (GPU, OTHER_GPU)
    return harness


def warning(harness: Harness) -> Message:
    """The newest warning."""
    return [message for message in harness.messages.messages if message.level == Level.WARNING][-1]


def on(harness: Harness, device: str) -> bool:
    return (
        harness.controller.engine.devices.state.device is not None
        and harness.controller.engine.devices.state.device.id == device
    )


def test_a_gpu_renders_from_the_start_and_says_what_it_holds(open_harness: Harness) -> None:
    state = open_harness.controller.engine.devices.state
    assert state.device == GPU
    assert state.is_on_gpu
    assert (state.gpus, state.compiling, state.problem) == ((GPU, OTHER_GPU), None, "")
    assert state.memory is not None
    assert state.memory.total == 572_000_000
    assert state.reason == GPU.reason
    assert open_harness.said() == []


def test_kernels_are_compiled_while_the_processor_shows_the_first_picture(harness: Harness) -> None:
    harness.engine.missing = 14
    harness.engine.compile_gate.shut()
    harness.start()
    harness.until(lambda: harness.controller.engine.devices.state.compiling)
    state = harness.controller.engine.devices.state
    assert state.compiling == Compiling(0, 14)
    assert state.reason == "Until 14 kernels are compiled for Loom 9000, the CPU renders."
    harness.engine.compile_gate.open()
    harness.until(lambda: len(harness.frames) == 2)
    assert on(harness, "cuda:0")
    assert harness.controller.engine.devices.state.compiling is None
    assert harness.frames[0].request == harness.frames[1].request
    assert harness.labels == ["Start"], "nothing that a person did"
    assert harness.said() == []


def test_a_choice_is_kept_for_the_next_start_and_changes_neither_session_nor_picture(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(5.0)
    harness.rest()
    picture, labels = harness.frames[-1].request, harness.labels
    harness.controller.engine.devices.choose_device("cuda:1")
    harness.until(lambda: on(harness, "cuda:1"))
    harness.controller.engine.devices.choose_precision("fp32")
    harness.until(lambda: getattr(harness.controller.engine.devices.state.device, "precision", "") == "fp32")
    count = len(harness.frames)
    harness.controller.engine.devices.choose_device("cpu")
    harness.until(lambda: on(harness, "cpu") and len(harness.frames) > count)
    assert harness.frames[-1].request == picture
    assert harness.labels == labels
    assert harness.said() == []
    again = harness.reopened()
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
def test_a_gpu_that_fails_is_reported_in_one_sentence_and_the_session_is_saved_at_once(
    open_harness: Harness, error: DeviceError
) -> None:
    harness = open_harness
    harness.engine.gpu_failing = error
    harness.drag(7.0)
    harness.rest()
    assert on(harness, "cpu")
    assert harness.x == 7.0
    assert (
        warning(harness).sentence
        == f"{error.sentence[:-1]} – rendering continues on the CPU, and the session is saved."
    )
    assert len(harness.said(Level.WARNING)) == 1
    assert harness.controller.engine.devices.state.problem == error.sentence
    harness.until((harness.state / "session.loom").exists)
    assert load_session(harness.state / "session.loom").position == Position(7.0, 0.0)


def test_advice_that_is_followed_already_is_left_to_the_details(open_harness: Harness) -> None:
    harness = open_harness
    sentence = "The GPU stopped working; save the session and start the program again, or render on the CPU."
    harness.engine.gpu_failing = DeviceLostError(sentence, "CUDA_ERROR_UNKNOWN")
    harness.drag(7.0)
    harness.until(lambda: on(harness, "cpu"))
    assert (
        warning(harness).sentence
        == "The GPU stopped working – rendering continues on the CPU, and the session is saved."
    )
    assert warning(harness).details == f"{sentence}\nCUDA_ERROR_UNKNOWN"


def test_a_lost_gpu_is_tried_again_from_its_message(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gpu_failing = LOST
    harness.drag(7.0)
    harness.until(lambda: on(harness, "cpu"))
    action = warning(harness).action
    assert action is not None
    assert action.words == "Try the GPU again"
    assert harness.controller.engine.devices.state.can_try_again
    assert action.is_needed()
    action.call()
    assert not action.is_needed(), "it is being tried"
    harness.until(lambda: len(harness.said(Level.WARNING)) == 2)
    assert on(harness, "cpu"), "it is still lost"
    harness.engine.gpu_failing = None
    harness.controller.engine.devices.try_again()
    harness.until(lambda: on(harness, "cuda:0"))
    harness.rest()
    assert harness.controller.engine.devices.state.problem == ""
    assert not harness.controller.engine.devices.state.can_try_again
    assert not action.is_needed()


def test_an_old_driver_is_reported_once_and_the_processor_renders(harness: Harness) -> None:
    error = DeviceError("CUDA 13 needs driver 580 or newer, but this is 535.")
    harness.settings.change(device="cuda:0")
    harness.engine.gpu_missing = error
    harness.start()
    harness.until(harness.said)
    assert harness.said() == ["CUDA 13 needs driver 580 or newer, but this is 535 – rendering continues on the CPU."]
    assert harness.controller.engine.devices.state.reason == error.sentence


def test_without_a_gpu_nothing_is_said_but_why(harness: Harness) -> None:
    harness.engine.gpus = ()
    harness.start()
    state = harness.controller.engine.devices.state
    harness.until(lambda: harness.controller.engine.devices.state.devices)
    assert harness.said() == []
    assert state.gpus == ()
    assert harness.controller.engine.devices.state.why_no_gpu == "For a test."


def test_a_gpu_whose_driver_is_too_old_is_reported_at_the_first_start_only(harness: Harness) -> None:
    harness.engine.gpus = ()
    harness.engine.processor = FakeDevice(reason="CPU: CUDA 13 needs driver 580 or newer.", driver="535.54")
    harness.start()
    harness.until(harness.said)
    assert harness.said() == ["CUDA 13 needs driver 580 or newer – the CPU renders meanwhile."]
    again = harness.reopened()
    again.engine.processor = harness.engine.processor
    again.start()
    again.until(lambda: again.controller.engine.devices.state.devices)
    assert len(again.said()) == 1
    assert again.controller.engine.devices.state.why_no_gpu == "CUDA 13 needs driver 580 or newer."
    again.close()


def test_a_device_that_cannot_be_used_leaves_the_gpu_that_renders(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.gpu_missing = DeviceError("There is no cuda:7.")
    harness.controller.engine.devices.choose_device("cuda:7")
    harness.until(harness.said)
    assert harness.said() == ["There is no cuda:7 – rendering continues on Loom 9000."]
    assert on(harness, "cuda:0")


def test_drafts_are_not_taken_where_a_gpu_keeps_the_budget(harness: Harness) -> None:
    harness.library.options["cats"] = {"resolution": 1024}
    harness.engine.missing = 1
    harness.engine.compile_gate.shut()
    harness.engine.full_ms = 400.0
    harness.start()
    harness.drag(1.0, 2.0, release=False)
    harness.draft()
    harness.engine.full_ms = 1.5
    harness.engine.compile_gate.open()
    harness.until(lambda: on(harness, "cuda:0"))
    harness.rest()
    count = len(harness.frames)
    harness.drag(3.0, 4.0, release=False)
    harness.until(lambda: harness.frames[-1].request.blend == resolve(harness.controller.editing.session).blend)
    assert not any(frame.is_draft for frame in harness.frames[count:])


def test_a_large_model_on_a_gpu_gets_no_draft_before_the_first_measurement(harness: Harness) -> None:
    harness.library.options["cats"] = {"resolution": 1024}
    harness.start()
    harness.controller.engine.preview.statistics.clear()
    harness.drag(1.0, release=False)
    harness.until(lambda: harness.frames[-1].request.blend != harness.frames[0].request.blend)
    assert not any(frame.is_draft for frame in harness.frames)


def test_figures_of_another_device_start_over(open_harness: Harness) -> None:
    harness = open_harness
    for x in (1.0, 2.0, 3.0):
        harness.drag(x)
        harness.rest()
    before = len(harness.controller.engine.preview.statistics.frame_times_ms)
    harness.controller.engine.devices.choose_device("cpu")
    count = len(harness.frames)
    harness.until(lambda: on(harness, "cpu") and len(harness.frames) > count)
    assert before >= 4
    assert len(harness.controller.engine.preview.statistics.frame_times_ms) == 1


def test_options_are_orders_for_the_rendering_thread_and_the_picture_is_made_again(open_harness: Harness) -> None:
    harness = open_harness
    told: list[RenderOptions] = []
    harness.controller.engine.options_changed.connect(lambda: told.append(harness.controller.engine.options))
    assert harness.controller.engine.options == RenderOptions()
    options = RenderOptions(use_fused=False)
    harness.controller.engine.set_options(options)
    harness.until(lambda: len(harness.frames) == 2)
    assert harness.engine.made[-1].options == options
    assert harness.frames[0].request == harness.frames[1].request
    harness.controller.engine.set_options(options)
    assert told == [options]


def test_comparing_asks_once_and_brings_what_was_found(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.engine.compare()
    harness.controller.engine.compare()
    assert harness.controller.engine.is_comparing
    harness.until(lambda: not harness.controller.engine.is_comparing)
    assert str(harness.controller.engine.comparison).startswith("comparison of sha of cats.pkl")
    harness.controller.engine.devices.choose_device("cpu")
    harness.until(lambda: on(harness, "cpu"))
    assert harness.controller.engine.comparison is None, "that was another device"


def test_a_comparison_that_fails_is_reported(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.failing = RequestError("No.")
    harness.controller.engine.compare()
    harness.until(harness.said)
    assert harness.said() == ["No."]
    assert (harness.controller.engine.is_comparing, harness.controller.engine.comparison) == (False, None)


def test_comparing_or_counting_without_a_model_does_nothing(harness: Harness) -> None:
    harness.controller.engine.compare()
    harness.controller.engine.measure_counters()
    assert not harness.controller.engine.is_comparing
    assert not harness.controller.engine.is_counting


def test_counters_are_measured_in_steps_once_and_a_refusal_is_reported(open_harness: Harness) -> None:
    harness = open_harness
    engine = harness.controller.engine
    engine.measure_counters()
    engine.measure_counters()
    assert engine.is_counting
    harness.until(lambda: not engine.is_counting)
    assert harness.engine.calls.count("count") == 3
    assert harness.said() == []
    harness.engine.failing = DeviceError("The driver shows counters to administrators only.")
    engine.measure_counters()
    harness.until(harness.said)
    assert harness.said() == ["The driver shows counters to administrators only."]
    assert not engine.is_counting


@pytest.mark.parametrize("moment", ["compiling", "taking over", "comparing"])
def test_closing_at_any_moment_ends_everything(
    threads_before: set[threading.Thread], harness: Harness, moment: str, monkeypatch: Any
) -> None:
    harness.engine.missing = 3
    harness.engine.compile_gate.shut()
    harness.start()
    harness.until(lambda: harness.controller.engine.devices.state.compiling)
    if moment == "taking over":
        harness.engine.compile_gate.open()
    elif moment == "comparing":
        harness.controller.engine.compare()
    harness.controller.close()
    harness.controller.close()
    assert set(threading.enumerate()) <= threads_before


def test_an_export_goes_on_with_the_processor(open_harness: Harness, tmp_path: Path) -> None:
    harness = open_harness
    key = Keyframe.of(resolve(harness.controller.editing.session))
    harness.engine.gate.shut()
    harness.controller.export.start(
        SequenceSettings(
            (key, key), tmp_path / "out", "walk", harness.controller.editing.session.model, "w-linear", 10, z_dim=8
        )
    )
    harness.engine.gate.wait_for_knock()
    harness.engine.gpu_failing = LOST
    harness.engine.gate.open()
    harness.until(lambda: harness.controller.export.progress is None)
    assert on(harness, "cpu")
    assert len(list((tmp_path / "out").glob("*.png"))) == 11
    assert harness.said()[-1].startswith("Exported 11 frames")


def test_a_device_that_never_answers_costs_neither_the_end_nor_the_session(
    open_harness: Harness, monkeypatch: Any
) -> None:
    harness = open_harness
    monkeypatch.setattr(render_thread, "_END_S", 0.2)
    harness.drag(9.0)
    harness.rest()
    harness.engine.gate.shut()
    harness.drag(10.0)
    harness.engine.gate.wait_for_knock()
    harness.controller.close()
    assert load_session(harness.state / "session.loom").position == Position(10.0, 0.0)


@pytest.mark.parametrize(
    ("choice", "cores", "has_driver", "rendered", "expected"),
    [
        ("auto", 16, True, "", True),
        ("cuda:0", 16, True, "", True),
        ("cpu", 16, True, "", False),
        ("auto", 4, True, "", False),
        ("auto", 16, False, "", False),
        ("auto", 16, True, "cpu", False),
    ],
)
def test_a_first_start_expects_a_gpu_beside_a_driver_and_cores_that_compile_its_kernels(
    harness: Harness,
    monkeypatch: pytest.MonkeyPatch,
    choice: str,
    cores: int,
    has_driver: bool,
    rendered: str,
    expected: bool,
) -> None:
    monkeypatch.setattr(likely_device, "driver_is_installed", lambda: has_driver)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    if rendered:
        harness.settings.choose("devices.rendered", rendered)
    assert expects_gpu(harness.settings, DeviceChoice(choice)) is expected


@pytest.mark.parametrize(
    ("choice", "rendered", "expected"),
    [
        ("auto", "", True),
        ("auto", "cuda:0", True),
        ("cuda:1", "cuda:0", True),
        ("auto", "cpu", False),
        ("cpu", "", False),
    ],
)
def test_a_driver_is_started_ahead_unless_the_cpu_renders(
    harness: Harness, choice: str, rendered: str, expected: bool
) -> None:
    if rendered:
        harness.settings.choose("devices.rendered", rendered)
    assert may_render_on_gpu(harness.settings, DeviceChoice(choice)) is expected
