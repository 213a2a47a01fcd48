"""A tuning started from the window: its state, and the renderer that uses what it found."""

from __future__ import annotations

from pathlib import Path

import pytest

from explorer_app.controller import Tuning
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level
from explorer_app.rendering.render_events import TuningEnded, TuningFound
from explorer_app.session.resolve import resolve
from gpu_backend import DeviceError
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import GPU, finding


def is_over(tuning: Tuning) -> bool:
    return tuning.state.share is None


@pytest.fixture
def on_gpu(harness: Harness) -> Harness:
    harness.engine.gpus = (GPU,)
    harness.start()
    harness.until(lambda: harness.controller.engine.devices.state.is_on_gpu)
    return harness


def test_tuned_tiles_are_used_at_once(on_gpu: Harness) -> None:
    tuning, before = on_gpu.controller.tuning, len(on_gpu.engine.made)
    tuning.start(60.0)
    assert tuning.state.share == 0.0
    on_gpu.until(lambda: is_over(tuning))
    assert len(tuning.state.gains) == 3
    on_gpu.until(lambda: len(on_gpu.engine.made) == before + 1)
    assert on_gpu.messages.messages[-1].sentence.startswith("3 convolutions are faster on this GPU")


def test_a_tuning_without_gains_leaves_the_renderer_as_it_is(on_gpu: Harness) -> None:
    on_gpu.engine.tiles = 0
    tuning, before = on_gpu.controller.tuning, len(on_gpu.engine.made)
    tuning.start(60.0)
    on_gpu.until(lambda: is_over(tuning))
    assert tuning.state.findings == ()
    assert len(on_gpu.engine.made) == before


def test_an_export_keeps_its_kernels_until_it_has_ended(on_gpu: Harness, tmp_path: Path) -> None:
    keys = tuple(Keyframe.of(resolve(on_gpu.controller.editing.session)) for _ in range(2))
    model = on_gpu.controller.editing.session.model
    on_gpu.engine.gate.shut()
    on_gpu.controller.export.start(SequenceSettings(keys, tmp_path, "walk", model, "w-linear", 2, z_dim=8))
    tuning, before = on_gpu.controller.tuning, len(on_gpu.engine.made)
    tuning.take_found(TuningFound(finding(1)))
    tuning.take_ended(TuningEnded(None))
    on_gpu.engine.gate.open()
    on_gpu.until(lambda: len(on_gpu.engine.made) == before + 1)
    assert on_gpu.controller.export.progress is None


def test_another_model_ends_the_tuning_of_this_one(on_gpu: Harness) -> None:
    on_gpu.engine.tuning_waits = True
    tuning = on_gpu.controller.tuning
    tuning.start(60.0)
    on_gpu.until(lambda: on_gpu.engine.tunings)
    on_gpu.open("dogs")
    on_gpu.until(lambda: is_over(tuning))
    assert on_gpu.engine.tunings[0].closed == 1


def test_a_tuning_that_fails_is_one_message(on_gpu: Harness) -> None:
    on_gpu.engine.tuning_failing = DeviceError("The table could not be written.")
    tuning = on_gpu.controller.tuning
    tuning.start(60.0)
    on_gpu.until(lambda: is_over(tuning))
    assert [item.sentence for item in on_gpu.messages.messages if item.level is Level.ERROR] == [
        "The table could not be written."
    ]


def test_on_the_cpu_nothing_is_started(harness: Harness) -> None:
    harness.start()
    harness.controller.tuning.start(60.0)
    assert is_over(harness.controller.tuning)
    assert harness.engine.tunings == []
