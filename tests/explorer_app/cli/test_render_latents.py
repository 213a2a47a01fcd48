"""``latentloom render --from`` with files of w rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.picture import read_picture
from gpu_backend import Noise, Point, StoredLatent, open_renderer, stored_latent, write_latent, write_latents
from tests.helpers.command import Command
from tests.helpers.networks import make_stylegan2

SPEC = make_stylegan2(seed=1).spec


def rows_of(seed: int, rows: int = SPEC.num_ws) -> StoredLatent:
    return stored_latent(np.random.default_rng(seed).standard_normal((rows, SPEC.w_dim)).astype(np.float32))


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".pt"])
def test_a_latent_becomes_its_picture(command: Command, networks: Path, tmp_path: Path, suffix: str) -> None:
    network = networks / "plain.safetensors"
    write_latent(tmp_path / f"face{suffix}", rows_of(1))
    outcome = command("render", "--network", network, "--from", tmp_path / f"face{suffix}", "--outdir", tmp_path)
    assert outcome.status == 0, outcome.err
    document = read_picture(tmp_path / "face.png")
    assert document.request.blend[0][0].latent.point == rows_of(1)
    assert document.session is not None
    with Image.open(tmp_path / "face.png") as image, closing(open_renderer(network)) as renderer:
        assert image.tobytes() == renderer.render(document.request).to_rgb().tobytes()


def test_noise_and_a_blend_are_put_on_a_latent(command: Command, tmp_path: Path) -> None:
    write_latent(tmp_path / "face.npz", rows_of(1))
    Image.new("L", (8, 8), 255).save(tmp_path / "all.png")
    words = ("render", "--from", tmp_path / "face.npz", "--outdir", tmp_path)
    edits = ("--noise-mode", "random", "--noise-seed", "4", "--blend", "9", tmp_path / "all.png", "--trunc", "0.5")
    outcome = command(*words, *edits)
    assert outcome.status == 0, outcome.err
    request = read_picture(tmp_path / "face.png").request
    assert request.noise == Noise(mode="random", seed=4)
    (blend,) = request.edits.blends
    assert blend.recipe.latent.point == Point(((9, 1.0),))
    assert blend.recipe.truncation.psi == 0.5


def test_all_latents_of_a_file_or_one_of_them_are_rendered(command: Command, tmp_path: Path) -> None:
    write_latents(tmp_path / "kept.npz", [("a", rows_of(1)), ("b", rows_of(2)), ("c", rows_of(3))])
    assert command("render", "--from", tmp_path / "kept.npz", "--outdir", tmp_path / "all").status == 0
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == ["kept_1.png", "kept_2.png", "kept_3.png"]
    assert command("render", "--from", tmp_path / "kept.npz#2", "--outdir", tmp_path / "one").status == 0
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["kept_2.png"]
    assert (tmp_path / "one" / "kept_2.png").read_bytes() == (tmp_path / "all" / "kept_2.png").read_bytes()
    path = ("--path", "linear", "--frames", "2")
    assert command("render", "--from", tmp_path / "kept.npz", *path, "--outdir", tmp_path / "path").status == 0
    assert len(list((tmp_path / "path").glob("*.png"))) == 5
    sentence = command("render", "--from", tmp_path / "kept.npz#4", "--outdir", tmp_path / "one").sentence
    assert sentence == "kept.npz has no latent 4; it has 3."
    for name in ("kept.npz#0", "sheet.png#0"):
        sentence = command("render", "--from", tmp_path / name, "--outdir", tmp_path / "one").sentence
        assert sentence == f"Pictures of a file are counted from 1, so {name} names none."


def test_a_file_of_other_arrays_and_rows_of_another_network_are_refused_by_name(
    command: Command, networks: Path, tmp_path: Path
) -> None:
    np.savez(tmp_path / "sound.npz", loudness=np.zeros(4), beats=np.zeros(4))
    words = ("--outdir", tmp_path / "out")
    sentence = command("render", "--from", tmp_path / "sound.npz", *words).sentence
    assert (
        sentence
        == "sound.npz was not opened: expected w rows under the key 'w', but the archive has only other arrays."
    )
    write_latent(tmp_path / "other.npz", rows_of(1, SPEC.num_ws + 2))
    sentence = command("render", "--from", tmp_path / "other.npz", *words).sentence
    assert sentence.startswith(f"other.npz has {SPEC.num_ws + 2} rows of {SPEC.w_dim} numbers, but ")
    assert sentence.endswith("give the network that they belong to with --network.")
    assert not (tmp_path / "out").exists()


def test_truncation_of_a_latent_is_refused(command: Command, tmp_path: Path) -> None:
    write_latent(tmp_path / "face.npz", rows_of(1))
    sentence = command("render", "--from", tmp_path / "face.npz", "--trunc", "0.7", "--outdir", tmp_path).sentence
    assert sentence == "W rows of a file are taken as they are, so --trunc cannot be given with them."
    words = ("--from", tmp_path / "face.npz", tmp_path / "picture.png", "--noise-seed", "3", "--outdir", tmp_path)
    assert "brings the picture's own settings back" in command("render", *words).sentence
