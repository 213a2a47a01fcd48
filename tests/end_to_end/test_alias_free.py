"""A StyleGAN3 in the window: what it has works, and what it has not is grey."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint

from explorer_app.messages import Level
from explorer_app.session.edits import set_transform
from gpu_backend import Transform, write_safetensors
from tests.helpers import mouse
from tests.helpers.person import Person
from tests.helpers.stylegan3 import R, make_stylegan3


def test_a_visit_to_an_alias_free_network(sit_down: Callable[..., Person], tmp_path: Path) -> None:
    path = tmp_path / "alias-free.safetensors"
    write_safetensors(make_stylegan3(resolution=32, num_layers=6, channel_base=256, **R), path)
    person = sit_down()
    person.start()
    noise = person.window.latent.noise
    assert noise.isEnabled()

    person.controller.files.open_model(path)
    person.until(lambda: "alias-free" in person.window.windowTitle())
    first = person.look()
    assert first.to_rgb().shape == (32, 32, 3)
    assert not noise.isEnabled()
    assert noise.toolTip() == "A StyleGAN3 network has no noise layers."

    # Walking, and a push along a direction, as with any network.
    middle = person.canvas.rect().center()
    mouse.drag(person.canvas, [middle + QPoint(x, 0) for x in range(0, 97, 3)])
    walked = person.look()
    assert np.abs(walked.to_rgb().astype(int) - first.to_rgb()).max() > 2

    # Turned, taken back, and turned again.
    person.controller.editing.edit(set_transform(Transform(0.1, 0.0, 40.0, 1.5)))
    turned = person.look()
    assert np.abs(turned.to_rgb().astype(int) - walked.to_rgb()).max() > 2
    person.press_keys("Ctrl+Z")
    assert np.array_equal(person.look().to_rgb(), walked.to_rgb())
    person.press_keys("Ctrl+Shift+Z")
    assert np.array_equal(person.look().to_rgb(), turned.to_rgb())
    wanted = person.session

    # By hand: the knob is dragged a quarter turn on, which is one step.
    person.press_keys("M")
    frame = person.canvas.transform
    handles = frame.handles()
    knob, middle = QPoint(*map(round, handles.knob)), QPoint(*map(round, handles.middle))
    reach = knob - middle
    mouse.drag(frame, [knob, knob + QPoint(-5, 5), middle + QPoint(reach.y(), -reach.x())])
    assert abs(person.session.transform.degrees - 130.0) < 2.0
    by_hand = person.look()
    assert np.abs(by_hand.to_rgb().astype(int) - turned.to_rgb()).max() > 2
    person.press_keys("Ctrl+Z")
    assert np.array_equal(person.look().to_rgb(), turned.to_rgb())
    person.press_keys("Escape")
    assert not frame.isVisible()

    # A sequence is turned too, and its frame brings everything back.
    folder = tmp_path / "out"
    person.ask_for_export(folder, "dusk", "3", 2)
    person.until(lambda: f"Exported 3 frames to {folder}." in person.said())
    person.press_keys("R")
    person.controller.editing.edit(set_transform(Transform()))
    person.look()
    mouse.drop(person.window, str(folder / "dusk_00000.png"))
    person.until(lambda: person.session.pinned_blend)
    assert person.session.transform == wanted.transform
    assert np.array_equal(person.look().to_rgb(), turned.to_rgb())
    assert person.said(Level.WARNING) == []

    # Another network takes no transform: it goes, and that is told.
    person.controller.files.open_model(None)
    person.until(lambda: "loom-landscapes-256" in person.window.windowTitle())
    person.look()
    assert person.session.transform == Transform()
    assert any("the transform, which it does not have, was reset" in sentence for sentence in person.said())
    assert noise.isEnabled()
