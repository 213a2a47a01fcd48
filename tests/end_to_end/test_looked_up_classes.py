"""A StyleGAN-XL in the window: a class is chosen, and truncation goes to that class's own mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from explorer_app.messages import Level
from explorer_app.session.edits import set_truncation
from gpu_backend import Model, Renderer, Truncation
from tests.helpers import mouse
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.person import Person
from tests.helpers.stylegan_xl import make_stylegan_xl


def mean_picture(model: Model, number: int) -> np.ndarray:
    renderer = Renderer(model, "cpu")
    ws = np.tile(model.weights["mapping.w_avg"][number], (1, model.spec.num_ws, 1))
    image = renderer.synthesize(ws)[0].transpose(1, 2, 0)
    renderer.close()
    return np.clip(image * np.float32(127.5) + np.float32(127.5), 0, 255).astype(np.uint8)


def test_a_visit_to_a_network_that_looks_classes_up(sit_down: Callable[..., Person], tmp_path: Path) -> None:
    model = make_stylegan_xl(resolution=32, channel_base=256, c_dim=4)
    path = write_nvidia_pickle(tmp_path / "animals.pkl", model)
    person = sit_down()
    person.start()
    person.controller.files.open_model(path)
    person.until(lambda: "animals" in person.window.windowTitle())
    assert person.session.classes == ((0, 1.0),)
    first = person.look()

    # Another class, out of a list without "No class".
    panel = person.window.latent
    person.click(panel.class_button)
    picker = panel.picker
    assert picker.model.rowCount() == 4
    QTest.keyClicks(picker.filter, "3")
    QTest.keyClick(picker.filter, Qt.Key.Key_Return)
    picker.hide()
    assert person.session.classes == ((3, 1.0),)
    chosen = person.look()
    assert np.abs(chosen.to_rgb().astype(int) - first.to_rgb()).max() > 2

    # At psi 0 every place is that class's mean; another class has another one.
    person.controller.editing.edit(set_truncation(Truncation(0.0)))
    still = person.look()
    assert np.abs(still.to_rgb().astype(int) - mean_picture(model, 3)).max() <= 1
    middle = person.canvas.rect().center()
    mouse.drag(person.canvas, [middle + QPoint(x, 0) for x in range(0, 97, 3)])
    assert np.array_equal(person.look().to_rgb(), still.to_rgb())
    assert np.abs(mean_picture(model, 0).astype(int) - mean_picture(model, 3)).max() > 2
    assert person.said(Level.WARNING) == []
