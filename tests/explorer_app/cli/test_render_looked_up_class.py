"""Rendering a StyleGAN-XL: a class from the command line, or one from the seed."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.picture import read_picture
from gpu_backend import Renderer, read_model
from tests.helpers.command import Command
from tests.helpers.golden import to_bytes
from tests.helpers.network_file import write_nvidia_pickle
from tests.helpers.stylegan_xl import make_stylegan_xl


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_nvidia_pickle(tmp_path_factory.mktemp("xl") / "animals.pkl", make_stylegan_xl(resolution=32))


def test_a_chosen_class_is_mapped_and_truncated_as_such(command: Command, network: Path, tmp_path: Path) -> None:
    words = ("--seeds", "4", "--class", "3", "--trunc", "0.6", "--outdir", tmp_path)
    outcome = command("render", "--network", network, *words)
    assert outcome.status == 0, outcome.err
    renderer = Renderer(read_model(network), "cpu")
    ws = renderer.map(np.random.RandomState(4).randn(1, 6), np.eye(4)[[3]], psi=0.6)
    image = to_bytes(renderer.synthesize(ws)[0]).transpose(1, 2, 0)
    renderer.close()
    with Image.open(tmp_path / "seed0004.png") as picture:
        assert np.abs(np.asarray(picture.convert("RGB")).astype(int) - image).max() <= 1


def test_without_one_each_seed_has_the_class_that_its_own_numbers_choose(
    command: Command, network: Path, tmp_path: Path
) -> None:
    outcome = command("render", "--network", network, "--seeds", "0-5", "--outdir", tmp_path)
    assert outcome.status == 0, outcome.err
    expected = [int(np.random.RandomState(seed).randint(0, 4)) for seed in range(6)]
    assert len(set(expected)) > 1
    for seed, picked in enumerate(expected):
        picture = read_picture(tmp_path / f"seed{seed:04d}.png")
        assert picture.request.blend[0][0].latent.classes == ((picked, 1.0),)
        assert f"Seed {seed}: Class {picked}; --class chooses another." in outcome.err
