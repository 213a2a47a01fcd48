"""A StyleGAN1 in the window, from a TensorFlow file: everything that a person does with a model works with it, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QPoint

from explorer_app.messages import Level
from explorer_app.session.edits import AddSources, set_truncation
from explorer_app.session.session import Slider, Source
from gpu_backend import Latent, Noise, Point, RenderRequest, RowRange, Truncation, open_renderer
from tests.helpers import mouse
from tests.helpers.edits import set_noise, whole_slider
from tests.helpers.person import Person
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan1_file import write_stylegan1


def differ(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one.astype(int) - other).max() > 2)


def test_a_visit_to_a_first_generation_network(sit_down: Callable[..., Person], tmp_path: Path) -> None:
    path = write_stylegan1(tmp_path / "elder.pkl", make_stylegan1(resolution=64, channel_base=1024, channel_max=16))
    person = sit_down()
    person.start()
    before = person.session.truncation
    person.controller.files.open_model(path)
    person.until(lambda: "elder" in person.window.windowTitle())
    picture = person.look().to_rgb()
    assert picture.shape == (64, 64, 3)
    assert person.session.truncation == Truncation(before.psi, 8)
    assert any("truncation acts on the first 8 rows" in sentence for sentence in person.said())
    assert person.window.latent.noise.isEnabled()
    assert not person.window.latent.class_button.isEnabled()

    # Each control changes the picture, and taking it back brings the one before.
    rows = person.controller.engine.model.facts.num_ws if person.controller.engine.model.facts else 0
    other = Source(Latent(Point(((7, 1.0),))), (1.0,) * (rows // 2) + (0.0,) * (rows - rows // 2), "seed 7")
    edits = (
        set_truncation(Truncation(0.7, None)),
        set_noise(Noise(mode="none")),
        set_noise(Noise(mode="random", seed=3, gain=2.0)),
        set_noise(Noise(layer_gains=(1.0, 0.0, 3.0))),
        whole_slider(Slider("sefa/0", 3.0, RowRange(0, 3))),
        whole_slider(Slider("axis/2", 3.0)),
        AddSources((other,)),
    )
    for edit in edits:
        person.controller.editing.edit(edit)
        assert differ(person.look().to_rgb(), picture), edit
        person.press_keys("Ctrl+Z")
        np.testing.assert_array_equal(person.look().to_rgb(), picture)

    # The hand walks, and a sequence comes out whose frames bring their picture back.
    middle = person.canvas.rect().center()
    mouse.drag(person.canvas, [middle + QPoint(x, 0) for x in range(0, 97, 3)])
    walked = person.look().to_rgb()
    assert differ(walked, picture)
    folder = tmp_path / "out"
    person.ask_for_export(folder, "walk", "3", 2)
    person.until(lambda: f"Exported 3 frames to {folder}." in person.said())
    person.press_keys("R")
    person.look()
    mouse.drop(person.window, str(folder / "walk_00000.png"))
    person.until(lambda: person.session.pinned_blend)
    np.testing.assert_array_equal(person.look().to_rgb(), walked)

    # Another network truncates all rows again.
    person.controller.files.open_model(None)
    person.until(lambda: "elder" not in person.window.windowTitle())
    person.look()
    assert person.session.truncation == before
    assert person.said(Level.WARNING) == []


def test_the_front_door_does_with_it_what_it_does_with_any(tmp_path: Path) -> None:
    made = make_stylegan1(resolution=32, c_dim=3, channel_base=256)
    path = write_stylegan1(tmp_path / "elder.pkl", made)
    renderer = open_renderer(path, "cpu")
    z = np.random.RandomState(7).randn(2, 8)
    ws = renderer.map(z, np.eye(3)[:2], psi=0.7, cutoff=renderer.facts.usual_cutoff)
    assert ws.shape == (2, 8, 8)
    images = renderer.synthesize(ws, noise="random")
    assert images.shape == (2, 3, 32, 32)
    assert np.isfinite(images).all()
    layers = renderer.layer_statistics(ws)
    assert list(layers) == [
        f"synthesis.{layer.name}" for layer in made.spec.layers if layer.kind != "to_rgb" or layer.resolution == 32
    ]
    normal = layers["synthesis.b32.conv1"]
    assert normal.shape == (2, 6, 32, 32)
    assert len(renderer.directions.names) == 8
    for resolution in (*renderer.facts.draft_resolutions, None):
        frame = renderer.render(RenderRequest(model_id=renderer.facts.model_id, resolution=resolution))
        assert frame.to_rgb().shape == (resolution or 32, resolution or 32, 3)
        assert frame.is_draft == (resolution is not None)
    renderer.close()


@pytest.mark.parametrize("device", ["auto", "cpu"])
def test_it_renders_on_the_processor_whatever_devices_there_are(device: str, tmp_path: Path) -> None:
    path = write_stylegan1(tmp_path / "elder.pkl", make_stylegan1())
    renderer = open_renderer(path, device)
    assert renderer.device.id == "cpu"
    renderer.render(RenderRequest(model_id=renderer.facts.model_id))
    renderer.close()
