"""Undo and what was kept, over models too: with the real window, whose panels ask for nothing while they change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from explorer_app.messages import Level
from explorer_app.session.edits import GoToSeed
from gpu_backend import Model, write_safetensors
from tests.helpers.networks import make_stylegan2
from tests.helpers.person import Person
from tests.helpers.stylegan3 import make_stylegan3

MORE_ROWS = make_stylegan3(resolution=32, num_layers=14, channel_base=256)
FEWER_ROWS = make_stylegan2(resolution=16)


def before_two_models(sit_down: Callable[..., Person], folder: Path, other: Model) -> tuple[Person, Path]:
    """A person before a first model, and another one in a file."""
    path, first = folder / "other.safetensors", folder / "first.safetensors"
    write_safetensors(other, path)
    write_safetensors(make_stylegan2(resolution=32, seed=3), first)
    person = sit_down(bundled=first)
    person.start()
    return person, path


@pytest.mark.parametrize("other", [MORE_ROWS, FEWER_ROWS], ids=["more rows", "fewer rows"])
def test_undo_leads_back_to_the_picture_of_the_model_before(
    sit_down: Callable[..., Person], tmp_path: Path, other: Model
) -> None:
    person, path = before_two_models(sit_down, tmp_path, other)
    assert person.controller.engine.model.facts is not None
    assert person.controller.engine.model.facts.num_ws != other.spec.num_ws
    bundled = person.controller.engine.model.facts.name
    person.controller.editing.edit(GoToSeed(7))
    before = person.look()

    person.controller.files.open_model(path)
    person.until(lambda: "other" in person.window.windowTitle())
    after = person.look()
    steps = ["Start", "Go to seed", "Open other"]
    assert person.labels == steps

    person.press_keys("Ctrl+Z")
    person.until(lambda: bundled in person.window.windowTitle())
    assert np.array_equal(person.look().to_rgb(), before.to_rgb())
    assert person.labels == steps[:2]
    person.press_keys("Ctrl+Shift+Z")
    person.until(lambda: "other" in person.window.windowTitle())
    assert np.array_equal(person.look().to_rgb(), after.to_rgb())
    assert person.labels == steps
    assert person.said(Level.WARNING) == []


def test_kept_latents_return_with_their_model_and_undo_goes_back(
    sit_down: Callable[..., Person], tmp_path: Path
) -> None:
    person, path = before_two_models(sit_down, tmp_path, MORE_ROWS)
    assert person.controller.engine.model.facts is not None
    bundled = person.controller.engine.model.facts.name
    person.controller.editing.edit(GoToSeed(7))
    before = person.look()
    number = person.controller.editing.history.entries[-1].number
    person.controller.editing.kept.star(number, True)
    person.controller.files.open_model(path)
    person.until(lambda: "other" in person.window.windowTitle())
    after = person.look()

    person.window.history.kept.chosen.emit(0)
    person.until(lambda: bundled in person.window.windowTitle())
    assert np.array_equal(person.look().to_rgb(), before.to_rgb())
    assert person.labels == ["Start", "Go to seed", "Open other", "Kept"]
    person.press_keys("Ctrl+Z")
    person.until(lambda: "other" in person.window.windowTitle())
    assert np.array_equal(person.look().to_rgb(), after.to_rgb())
    assert person.labels == ["Start", "Go to seed", "Open other"]
    assert person.said(Level.WARNING) == []


def test_a_picture_of_another_model_is_shown_beside_keys_that_are_fitted_to_it(
    sit_down: Callable[..., Person], tmp_path: Path
) -> None:
    person, path = before_two_models(sit_down, tmp_path, make_stylegan2(resolution=32, c_dim=2, seed=4))
    files, facts = person.controller.files, person.controller.engine.model.facts
    assert facts is not None
    person.controller.editing.edit(GoToSeed(7))
    before = person.look()
    person.controller.pictures.save(tmp_path / "seven.png")
    person.until(lambda: "Saved seven.png." in person.said())
    files.open_model(path)
    person.until(lambda: "other" in person.window.windowTitle())
    person.controller.editing.edit(GoToSeed(8))
    person.controller.playback.keep_picture()
    person.look()

    files.open_picture(tmp_path / "seven.png")
    person.until(lambda: facts.name in person.window.windowTitle())

    assert np.array_equal(person.look().to_rgb(), before.to_rgb())
    (key,) = person.session.timeline.tracks[0].keys
    assert (key.value.model.model_id, key.value.classes) == (facts.model_id, ())
    person.controller.playback.seek(key.time)
    person.look()
    assert person.said(Level.WARNING) == []
