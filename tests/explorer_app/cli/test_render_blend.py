"""``latentloom render --blend``: another seed where a grey picture is bright."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.cli.blend_options import read_mask
from explorer_app.exporting.picture import read_picture
from gpu_backend import Point, RowRange, open_renderer
from tests.helpers.command import Command


@pytest.fixture
def mask(tmp_path: Path) -> Path:
    image = Image.new("L", (40, 20))
    image.paste(255, (0, 0, 40, 10))
    image.save(tmp_path / "sky.png")
    return tmp_path / "sky.png"


def test_a_seed_shows_where_a_mask_is_white(command: Command, networks: Path, mask: Path, tmp_path: Path) -> None:
    network = networks / "plain.safetensors"
    words = ("render", "--network", network, "--seeds", "7", "--outdir", tmp_path)
    outcome = command(*words, "--blend", "9", mask, "--blend-rows", "0-2", "--blend-softness", "0.25")
    assert outcome.status == 0, outcome.err
    document = read_picture(tmp_path / "seed0007.png")
    (blend,) = document.request.edits.blends
    assert blend.recipe.latent.point == Point(((9, 1.0),))
    assert (blend.rows, blend.strength, blend.softness) == (RowRange(0, 2), 1.0, 0.25)
    assert blend.mask.shares[:64].min() == 1.0
    assert blend.mask.shares[64:].max() == 0.0
    assert document.session is not None
    assert document.session.blends[0].label == "seed 9"
    with Image.open(tmp_path / "seed0007.png") as image, closing(open_renderer(network)) as renderer:
        assert image.tobytes() == renderer.render(document.request).to_rgb().tobytes()


@pytest.mark.parametrize("kind", ["sixteen bits", "transparent"])
def test_masks_of_other_kinds_show_what_a_viewer_shows(tmp_path: Path, kind: str) -> None:
    grey = np.repeat(np.arange(128, dtype=np.uint8)[:, None] * 2, 128, axis=1)
    if kind == "sixteen bits":
        image = Image.fromarray(grey.astype(np.uint16) * 257)
    else:
        image = Image.merge("LA", (Image.new("L", (128, 128), 255), Image.fromarray(grey)))
    image.save(tmp_path / "mask.png")
    np.testing.assert_allclose(read_mask(tmp_path / "mask.png").shares * 255.0, grey, atol=1.0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--blend", "x", "sky.png"), "seeds must be numbers"),
        (("--blend", "9", "missing.png"), "missing.png cannot be read (No such file or directory)"),
        (("--blend", "9", "black.png"), "black.png is black"),
        (("--blend-rows", "0-2"), "give its seed and mask with --blend"),
        (("--blend", "9", "sky.png", "--blend-rows", "99"), "--blend-rows asks for others"),
        (("--blend", "9", "sky.png", "--blend-rows", "3-1"), "rows are a range"),
        (("--blend", "9", "sky.png", "--blend-softness", "2"), "soft edges are 0 to 1"),
        (("--blend", "9", "sky.png") * 4, "at most 3 blends"),
    ],
)
def test_a_slip_is_reported_and_nothing_is_written(
    command: Command, networks: Path, mask: Path, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "black.png")
    given = [tmp_path / word if word.endswith(".png") else word for word in words]
    out = tmp_path / "out"
    network = networks / "plain.safetensors"
    outcome = command("render", "--network", network, "--seeds", "0", "--outdir", out, *given)
    assert outcome.status != 0
    assert sentence in outcome.sentence
    assert not list(out.glob("*.png"))
