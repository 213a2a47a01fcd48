"""The device that a command renders on: kernels first, a sentence where a GPU cannot, two pictures at a time."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

from explorer_app.cli.arguments import Parser, UsageError, add_device
from explorer_app.cli.console import Console
from explorer_app.cli.renderer import chosen, start_renderer
from explorer_app.cli.sequence import render_sequence
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.rendering.device_choice import PRECISIONS, DeviceChoice
from explorer_app.session.session import ModelReference
from gpu_backend import DeviceError, DeviceLostError
from tests.helpers.command import Command
from tests.helpers.fake_renderer import GPU, Engine, FakeDevice
from tests.helpers.render_harness import MODEL, request


class Terminal(io.StringIO):
    """A stream that says it is watched."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def engine() -> Engine:
    return Engine(gpus=(GPU,))


def settings(folder: Path) -> SequenceSettings:
    keys = (Keyframe.of(request(1)), Keyframe.of(request(2)))
    return SequenceSettings(keys, folder, "walk", ModelReference(model_id=MODEL.facts.model_id), "w-linear", 5, z_dim=8)


def test_kernels_are_compiled_first_and_who_watches_sees_how_far_it_is(engine: Engine) -> None:
    engine.missing = 3
    stream = Terminal()
    renderer = start_renderer(MODEL, DeviceChoice(), Console(stream), backend=engine)
    assert renderer.device.id == "cuda:0"
    assert "Compiling 14 kernels: 13 done" in stream.getvalue()
    assert stream.getvalue().endswith("on Loom 9000.\n")


def test_a_gpu_that_cannot_be_used_gives_way_with_a_warning_unless_it_was_requested(engine: Engine) -> None:
    engine.gpu_refusing = DeviceError("The GPU has no room.")
    stream = io.StringIO()
    renderer = start_renderer(MODEL, DeviceChoice(), Console(stream), backend=engine)
    assert renderer.device.id == "cpu"
    assert stream.getvalue().startswith("Warning: The GPU has no room – the CPU renders instead.\n")
    with pytest.raises(DeviceError, match="no room"):
        start_renderer(MODEL, DeviceChoice("cuda"), Console(stream), backend=engine)


def test_another_precision_than_the_chosen_one_is_announced() -> None:
    reason = "Loom 9000: it was chosen, in tf32: this network needs more than fp16."

    class Wider(Engine):
        def _device(self, choice: DeviceChoice) -> FakeDevice:
            return replace(GPU, precision="tf32", reason=reason)

    stream = io.StringIO()
    start_renderer(MODEL, DeviceChoice(), Console(stream), backend=Wider(gpus=(GPU,)))
    assert stream.getvalue().startswith(f"Warning: {reason}\n")


def test_the_cpu_is_taken_without_a_look_at_gpus(engine: Engine) -> None:
    engine.gpu_missing = DeviceError("The driver hangs.")
    renderer = start_renderer(MODEL, DeviceChoice("cpu"), Console(io.StringIO()), backend=engine)
    assert renderer.device.id == "cpu"


def test_a_sequence_has_two_frames_in_flight_and_every_one_in_order(engine: Engine, tmp_path: Path) -> None:
    renderer = engine.make_renderer(MODEL, DeviceChoice())
    render_sequence(settings(tmp_path), renderer, Console(io.StringIO()))
    assert renderer.most_in_flight == 2
    assert len(list(tmp_path.glob("*.png"))) == 6


def test_a_lost_gpu_says_how_to_go_on(engine: Engine, tmp_path: Path) -> None:
    engine.gpu_failing = DeviceLostError("The GPU stopped answering.")
    stream = io.StringIO()
    with pytest.raises(DeviceLostError):
        render_sequence(settings(tmp_path), engine.make_renderer(MODEL, DeviceChoice()), Console(stream))
    assert f"0 of 6 frames are in {tmp_path}; add --device cpu to continue.\n" in stream.getvalue()


@pytest.mark.parametrize("name", ["auto", "cpu", "cuda", "cuda:0", "cuda:12"])
def test_devices_have_these_names(name: str) -> None:
    parser = Parser("test", "")
    add_device(parser)
    assert parser.parse_args(["--device", name]).device == name


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:x", "cuda:1234", "cuda:٣", "CPU"])
def test_other_names_get_a_clear_answer(name: str) -> None:
    parser = Parser("test", "")
    add_device(parser)
    with pytest.raises(UsageError, match="a device must be auto, cpu, cuda or cuda:1, not"):
        parser.parse_args(["--device", name])


def test_options_left_out_stay_open_for_the_remembered_choice() -> None:
    parser = Parser("test", "")
    add_device(parser, remembered=True)
    options = parser.parse_args([])
    assert (options.device, options.precision) == (None, None)
    for precision in PRECISIONS:
        assert chosen("cuda:1", precision) == DeviceChoice("cuda:1", precision)


def test_a_gpu_that_is_not_there_is_one_sentence_and_exit_status_2(command: Command, tmp_path: Path) -> None:
    outcome = command("render", "--seeds", "1", "--device", "cuda:99", "--outdir", tmp_path)
    assert outcome.status == 2
    assert len(outcome.sentence.splitlines()) == 1
    assert "GPU" in outcome.sentence
