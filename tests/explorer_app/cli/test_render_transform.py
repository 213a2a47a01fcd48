"""``latentloom render`` moves, turns and scales what has a transform."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from explorer_app.exporting.picture import read_picture
from gpu_backend import Transform, open_renderer
from tests.helpers.command import Command


def test_a_stylegan3_is_moved_turned_and_scaled(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "alias-free.safetensors"
    words = ("render", "--network", network, "--seeds", "7", "--outdir")
    assert command(*words, tmp_path / "rest").status == 0
    calls = command(*words, tmp_path, "--translate=-0.25,0.1", "--rotate", "-30", "--scale", "1.5")
    assert calls.status == 0, calls.err
    document = read_picture(tmp_path / "seed0007.png")
    assert document.request.transform == pytest.approx(Transform(-0.25, 0.1, -30.0, 1.5).matrix)
    assert document.session is not None
    assert document.session.transform == Transform(-0.25, 0.1, -30.0, 1.5)
    with Image.open(tmp_path / "seed0007.png") as image, closing(open_renderer(network)) as renderer:
        assert image.tobytes() == renderer.render(document.request).to_rgb().tobytes()
        with Image.open(tmp_path / "rest" / "seed0007.png") as rest:
            assert image.tobytes() != rest.tobytes()


@pytest.mark.parametrize("words", [("--translate", "0.1,0"), ("--rotate", "5"), ("--scale", "2")])
def test_other_networks_refuse_it_in_a_sentence(
    command: Command, networks: Path, tmp_path: Path, words: tuple[str, str]
) -> None:
    network = networks / "plain.safetensors"
    outcome = command("render", "--network", network, "--seeds", "0", "--outdir", tmp_path, *words)
    assert outcome.status != 0
    assert outcome.sentence == f"{words[0]} is for StyleGAN3, but plain is a StyleGAN2; leave it out."
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--translate", "0.1"), "expected two numbers like 0.25,-0.1"),
        (("--translate", "1,inf"), "expected a number"),
        (("--scale", "0"), "a scale must be 0.001 to 1000"),
        (("--rotate", "left"), "expected a number"),
    ],
)
def test_a_slip_is_reported(command: Command, tmp_path: Path, words: tuple[str, str], sentence: str) -> None:
    assert sentence in command("render", "--seeds", "0", "--outdir", tmp_path, *words).sentence


def test_a_saved_picture_brings_its_own_transform(command: Command, tmp_path: Path) -> None:
    outcome = command("render", "--from", "any.png", "--outdir", tmp_path, "--rotate", "5")
    assert "--rotate cannot be given with it" in outcome.sentence
