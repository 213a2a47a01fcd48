"""The discriminator in a model file: NVIDIA's snapshots, rosinality's checkpoints, and files without one."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_backend import ModelFileError, read_model
from gpu_backend.model.discriminator_file import DiscriminatorWeights, read_discriminator
from tests.helpers.golden import GOLDEN
from tests.helpers.networks import make_stylegan2
from tests.helpers.tool_names import random_numbers, rosinality_discriminator, rosinality_tensors
from tests.helpers.torch_file import save_torch

USUAL = (0.125, 0.375, 0.375, 0.125)


def read_of(path: Path) -> DiscriminatorWeights | None:
    model = read_model(path)
    return read_discriminator(path, model.facts.model_id, model.spec)


def checkpoint(folder: Path, **more: Any) -> Path:
    generator = rosinality_tensors(make_stylegan2(resolution=16))
    return save_torch({"g_ema": generator, **more}, folder / "d.pt")


def test_the_discriminator_of_a_snapshot_is_read_by_its_official_names() -> None:
    found = read_of(GOLDEN / "S1_sg2ada_skip_64.pkl")
    assert found is not None
    assert (found.sides, found.taps) == ((64, 32, 16, 8), pytest.approx(USUAL))
    assert len(found.tensors) == 2 + 4 * 5, "the blocks, and none of the last layers"
    assert found.tensors["b64.fromrgb.weight"].shape == (16, 3, 1, 1)
    assert found.tensors["b8.conv1.weight"].shape == (16, 16, 3, 3)


def test_a_file_of_a_generator_alone_has_no_discriminator(tmp_path: Path) -> None:
    assert read_of(GOLDEN / "S2_sg3repo_sg2_cond_128.pkl") is None
    assert read_of(checkpoint(tmp_path)) is None


def test_rosinalitys_discriminator_gets_the_official_names(tmp_path: Path) -> None:
    stored = rosinality_discriminator()
    found = read_of(checkpoint(tmp_path, d=stored))
    assert found is not None
    assert (found.sides, found.taps) == ((16, 8), USUAL)
    for official, own in {
        "b16.fromrgb.weight": "convs.0.0.weight",
        "b16.conv0.weight": "convs.1.conv1.0.weight",
        "b16.conv1.weight": "convs.1.conv2.1.weight",
        "b8.skip.weight": "convs.2.skip.1.weight",
    }.items():
        np.testing.assert_array_equal(found.tensors[official], stored[own])
    assert found.tensors["b8.conv1.bias"].shape == (8,)


def test_a_discriminator_of_another_resolution_is_not_used(tmp_path: Path) -> None:
    smaller = {name: x for name, x in rosinality_discriminator().items() if not name.startswith("convs.2.")}
    assert read_of(checkpoint(tmp_path, d=smaller)) is None


def test_tensors_that_do_not_follow_from_each_other_are_refused(tmp_path: Path) -> None:
    stored = rosinality_discriminator() | {"convs.2.conv1.0.weight": random_numbers(6, 5, 3, 3)}
    with pytest.raises(ModelFileError, match=r"b8\.conv0\.weight of shape \(6, 6, 3, 3\), but its shape is \(6, 5"):
        read_of(checkpoint(tmp_path, d=stored))


def test_a_file_that_was_changed_since_its_model_was_read_is_refused(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, d=rosinality_discriminator())
    spec = read_model(path).spec
    with pytest.raises(ModelFileError, match="it was changed since"):
        read_discriminator(path, "0" * 64, spec)
