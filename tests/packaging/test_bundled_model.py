"""The bundled model is what its script makes, loads without a warning and is worth looking at."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gpu_backend import Latent, Point, Recipe, Renderer, RenderRequest, Truncation, read_model

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "assets" / "models" / "loom-hills-256.safetensors"


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(read_model(MODEL), "cpu")


def picture(renderer: Renderer, seed: int, resolution: int | None = None) -> np.ndarray:
    recipe = Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7))
    request = RenderRequest(renderer.facts.model_id, ((recipe, 1.0),), resolution=resolution)
    return renderer.render(request).to_rgb().astype(np.float64)


def make(path: Path) -> bytes:
    subprocess.run([sys.executable, str(ROOT / "packaging" / "make_model.py"), str(path)], check=True)
    return path.read_bytes()


def test_the_script_makes_the_same_bytes_each_time(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    name = MODEL.name
    assert make(tmp_path / name) == make(tmp_path / "again" / name)


def test_the_bundled_file_is_what_the_script_makes(tmp_path: Path) -> None:
    make(tmp_path / MODEL.name)
    made, bundled = read_model(tmp_path / MODEL.name), read_model(MODEL)
    assert made.spec == bundled.spec
    for name, array in bundled.weights.items():
        # Another machine's linear algebra may round differently before the file keeps half precision.
        np.testing.assert_allclose(made.weights[name], array, rtol=2e-2, atol=2e-3, err_msg=name)


def test_it_is_small_unconditional_and_without_warnings(renderer: Renderer) -> None:
    facts = renderer.facts
    assert (facts.resolution, facts.img_channels, facts.num_ws, facts.c_dim) == (256, 3, 14, 0)
    assert facts.warnings == ()
    assert MODEL.stat().st_size < 3_000_000


def test_seeds_give_pictures_with_contrast_that_differ_from_each_other(renderer: Renderer) -> None:
    pictures = [picture(renderer, seed) for seed in range(6)]
    for shown in pictures:
        assert shown.std() > 20
        assert ((shown == 0) | (shown == 255)).mean() < 0.2, "hardly anything is blown out"
    for one, other in pairwise(pictures):
        assert np.abs(one - other).mean() > 10


def test_a_draft_looks_like_the_picture(renderer: Renderer) -> None:
    full, draft = picture(renderer, 3), picture(renderer, 3, 64)
    small = full.reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
    assert np.abs(small - draft).mean() < 16


def test_the_first_directions_change_the_picture(renderer: Renderer) -> None:
    z = np.random.RandomState(0).randn(1, renderer.facts.z_dim)
    ws = renderer.map(z, psi=0.7)
    base = renderer.synthesize(ws)
    for index in range(12):
        moved = renderer.synthesize(ws + renderer.directions.reach[index] / 2 * renderer.directions.vectors[index])
        assert np.abs(moved - base).mean() > 0.004, index
