"""A person's first minute, with everything real and every gesture a mouse or key event."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPoint

from explorer_app.assets import BUNDLED_SEED
from explorer_app.messages import Level
from explorer_app.session.session import Position
from explorer_app.window.gestures.plane_drag import SEEDS_PER_PX
from gpu_backend import Point
from tests.helpers import mouse, panels
from tests.helpers.person import Person


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def test_a_first_minute(sit_down: Callable[..., Person], tmp_path: Path) -> None:
    person = sit_down()

    # Open: a picture is there, and it is a bright one.
    person.start()
    assert "loom-landscapes-256" in person.window.windowTitle()
    first = person.look()
    assert first.to_rgb().shape == (256, 256, 3)
    assert first.to_rgb().mean() > 90
    assert person.labels == ["Start"]
    start = person.session
    assert start.position == Position(BUNDLED_SEED, 0.0)

    # Drag: the picture follows, and the whole drag is one step.
    middle = person.canvas.rect().center()
    mouse.drag(person.canvas, [middle + QPoint(x, x // 3) for x in range(0, 97, 3)])
    walked = person.look()
    assert person.session.position.x == pytest.approx(start.position.x + 96 * SEEDS_PER_PX)
    assert person.session.position.y == pytest.approx(start.position.y + 32 * SEEDS_PER_PX)
    assert person.labels == ["Start", "Walk"]
    assert np.abs(walked.to_rgb().astype(int) - first.to_rgb()).mean() > 2

    # Slide a direction.
    row = person.window.sliders.directions.rows[1]
    slider = row.slider
    grip = slider.rect().center().toPointF()
    panels.drag(slider, grip, grip + QPoint(slider.width() // 4, 0).toPointF(), steps=12)
    slid = person.look()
    (moved,) = person.session.sliders
    assert moved.direction == row.shown.direction
    assert moved.amount > 0.5
    assert np.abs(slid.to_rgb().astype(int) - walked.to_rgb()).mean() > 2

    # Mix: another seed is laid over, and cells are painted until it gives every row.
    mix = person.window.mix
    person.click(mix.add)
    person.type_into(mix.ask.seed, "26")
    person.click(mix.ask.button)
    (source,) = person.session.mix
    assert source.latent.point == Point(((26, 1.0),))
    rows = len(source.strengths)
    free = source.strengths.index(0.0)
    last = max(row for row in range(rows) if source.strengths[row] == 0.0)
    panels.drag(mix.grid, mix.grid.cell_rect(0, free).center(), mix.grid.cell_rect(0, last).center(), steps=9)
    assert person.session.mix[0].strengths == (1.0,) * rows
    mixed = person.look()
    assert np.abs(mixed.to_rgb().astype(int) - slid.to_rgb()).mean() > 2
    assert person.labels == ["Start", "Walk", row.name, "Add source", "Mix"]
    wanted = person.session

    # Undo and redo: everything goes back to the first picture, pixel by pixel, and comes again.
    for _ in range(4):
        person.press_keys("Ctrl+Z")
    assert person.session == start
    assert np.array_equal(person.look().to_rgb(), first.to_rgb())
    for _ in range(4):
        person.press_keys("Ctrl+Shift+Z")
    assert person.session == wanted
    assert np.array_equal(person.look().to_rgb(), mixed.to_rgb())

    # Save the picture: the file shows what the canvas shows.
    picture = tmp_path / "evening.png"
    person.press_keys("Ctrl+Shift+S")
    person.answer_file_dialog(picture)
    person.until(lambda: "Saved evening.png." in person.said())
    assert np.array_equal(pixels_of(picture), mixed.to_rgb())

    # Export a short sequence: it begins with the picture as it is now.
    folder = tmp_path / "walk"
    person.ask_for_export(folder, "dusk", "3", 2)
    person.until(lambda: f"Exported 3 frames to {folder}." in person.said())
    assert sorted(path.name for path in folder.iterdir()) == [
        "dusk.manifest.json",
        *(f"dusk_{number:05d}.png" for number in range(3)),
    ]
    assert np.array_equal(pixels_of(folder / "dusk_00000.png"), mixed.to_rgb())

    # Restore: the saved picture is dropped on the window, and everything is as it was, pixel by pixel.
    person.press_keys("R")
    person.press_keys("Z")
    assert person.session != wanted
    person.look()
    assert mouse.drop(person.window, str(picture)).isAccepted()
    person.until(lambda: person.session == wanted)
    assert np.array_equal(person.look().to_rgb(), pixels_of(picture))
    assert person.window.mix.grid.strengths == (wanted.mix[0].strengths,)
    assert person.window.sliders.directions.rows[1].field.value() == pytest.approx(moved.amount)
    assert person.window.latent.seed.value() == BUNDLED_SEED
    assert person.window.latent.plane_x.value() == pytest.approx(0.4)

    # A frame of the sequence is a recipe too.
    mouse.drop(person.window, str(folder / "dusk_00002.png"))
    person.until(lambda: person.session.pinned_blend)
    assert np.array_equal(person.look().to_rgb(), pixels_of(folder / "dusk_00002.png"))
    assert person.said(Level.WARNING) == []

    # The next time it goes on where it was left.
    left = person.session
    person.close()
    again = sit_down()
    again.start()
    assert again.session == left
    assert np.array_equal(again.look().to_rgb(), pixels_of(folder / "dusk_00002.png"))
