"""A ladder of optimisations started from the window: its state, and what ends it."""

from __future__ import annotations

import pytest

from explorer_app.controller import Ladder, LadderState
from explorer_app.messages import Level
from gpu_backend import DeviceError
from tests.helpers.controller_harness import Harness


def is_over(ladder: Ladder) -> bool:
    return not ladder.state.is_running


@pytest.fixture
def ladder(harness: Harness) -> Ladder:
    harness.start()
    harness.until(lambda: harness.controller.engine.devices.state.device is not None)
    return harness.controller.ladder


def test_rungs_are_kept_after_the_end_under_the_names_of_what_was_measured(harness: Harness, ladder: Ladder) -> None:
    ladder.start()
    assert ladder.state.is_running
    harness.until(lambda: is_over(ladder))
    state = ladder.state
    assert [climbed.rung.what for climbed in state.found] == ["rung 1", "rung 2", "rung 3"]
    facts, device = harness.controller.engine.model.facts, harness.controller.engine.devices.state.device
    assert facts is not None
    assert device is not None
    assert (state.model, state.device, state.progress) == (facts.name, device.name, None)
    ladder.start()
    assert ladder.state.found == (), "measured anew"
    harness.until(lambda: is_over(ladder))
    assert len(harness.engine.ladders) == 2


def test_a_ladder_is_stopped_once(harness: Harness, ladder: Ladder) -> None:
    harness.engine.ladder_waits = True
    ladder.start()
    harness.until(lambda: harness.engine.ladders)
    ladder.stop()
    assert ladder.state.is_stopping
    ladder.stop()
    harness.until(lambda: is_over(ladder))
    assert not ladder.state.is_stopping


def test_a_device_that_goes_ends_the_ladder(harness: Harness, ladder: Ladder) -> None:
    harness.engine.ladder_waits = True
    ladder.start()
    harness.until(lambda: harness.engine.ladders)
    ladder._show(LadderState(is_running=True, device="another", model_id=ladder.state.model_id))
    harness.controller.engine.devices.changed.emit()
    harness.until(lambda: is_over(ladder))
    assert harness.engine.ladders[0].closed == 1


def test_a_ladder_that_cannot_be_made_is_one_message(harness: Harness, ladder: Ladder) -> None:
    harness.engine.ladder_failing = DeviceError("There is no such device.")
    ladder.start()
    harness.until(lambda: is_over(ladder))
    assert [message.sentence for message in harness.messages.messages if message.level is Level.ERROR] == [
        "There is no such device."
    ]
