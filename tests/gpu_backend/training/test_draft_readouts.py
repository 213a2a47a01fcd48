"""Readouts are fitted to the full pictures of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpu_backend import LoomError, read_model
from gpu_backend.model.draft_file import draft_path
from gpu_backend.model.safetensors_file import write_safetensors
from gpu_backend.training.draft_readouts import _Regression, fit_readouts, main
from tests.helpers.networks import make_stylegan2


def test_a_picture_that_is_a_readout_of_the_features_is_found_again() -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((5, 8, 8)).astype(np.float32)
    weight, bias = random.standard_normal((3, 5)), np.array([0.5, 0.0, -0.5])
    picture = (np.einsum("oc,chw->ohw", weight, features) + bias[:, None, None]).repeat(4, 1).repeat(4, 2)
    regression = _Regression(5, 3)
    regression.add(features, picture.astype(np.float32))
    found = regression.solve(5)
    assert np.abs(found.weight - weight).max() < 1e-3
    assert np.abs(found.bias - bias).max() < 1e-3


def test_the_channels_that_tell_least_are_left_out() -> None:
    random = np.random.default_rng(0)
    features = random.standard_normal((6, 8, 8)).astype(np.float32)
    weight = np.array([1.0, 0.5, 0.0, -1.0, 0.0, 0.01])
    picture = np.einsum("c,chw->hw", weight, features)[None]
    regression = _Regression(6, 1)
    regression.add(features, picture.astype(np.float32))
    found = regression.solve(3)
    assert found.channels.tolist() == [0, 1, 3]
    assert np.abs(found.weight - [1.0, 0.5, -1.0]).max() < 0.02


def test_a_network_without_drafts_worth_showing_is_reported() -> None:
    with pytest.raises(LoomError, match="gives drafts"):
        fit_readouts(make_stylegan2(resolution=32, channel_max=2), 1)


def test_the_command_writes_what_the_next_reading_of_the_model_finds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "made.safetensors"
    write_safetensors(make_stylegan2(resolution=128, channel_base=512, channel_max=4), path)
    assert main([str(path), "--latents", "2"]) == 0
    assert str(draft_path(path)) in capsys.readouterr().out
    model = read_model(path)
    assert model.facts.warnings == ()
    assert set(model.readouts) == {64}


def test_a_file_that_is_no_model_ends_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "made.safetensors"
    path.write_bytes(b"nothing of the kind")
    assert main([str(path)]) == 1
    assert "made.safetensors" in capsys.readouterr().err
