"""Encoders lie beside a model and are read strictly."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import LoomError, ModelFileError
from gpu_backend.model.encoder_file import (
    KEY,
    EncoderFile,
    encoder_path,
    encoder_shapes,
    encoder_side,
    read_encoder,
    write_encoder,
)

MODEL, W_DIM = "ab" * 32, 6


@pytest.fixture(scope="module")
def encoder() -> EncoderFile:
    random = np.random.default_rng(0)
    shapes = encoder_shapes(16, W_DIM)
    tensors = {
        name: random.standard_normal(shape).astype(np.float16).astype(np.float32) for name, shape in shapes.items()
    }
    return EncoderFile(16, tensors, 120, 0.25)


def test_a_written_encoder_reads_back_equal(encoder: EncoderFile, tmp_path: Path) -> None:
    path = encoder_path(tmp_path / "hills.pkl")
    assert path.name == "hills.encoder.safetensors"
    write_encoder(encoder, path, MODEL, W_DIM)
    found = read_encoder(path, MODEL, W_DIM)
    assert (found.side, found.steps, found.error) == (16, 120, 0.25)
    for name, tensor in encoder.tensors.items():
        assert np.array_equal(found.tensors[name], tensor), name


def test_the_largest_encoder_takes_less_than_4_mib() -> None:
    assert encoder_side(256) == encoder_side(1024) == 64
    assert encoder_side(16) == 16
    assert 2 * sum(int(np.prod(shape)) for shape in encoder_shapes(64, 512).values()) < 4 << 20


def test_an_encoder_of_another_model_or_shape_is_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    write_encoder(encoder, path, MODEL, W_DIM)
    with pytest.raises(ModelFileError, match="trained for another one"):
        read_encoder(path, "cd" * 32, W_DIM)
    with pytest.raises(ModelFileError, match="another shape or type"):
        read_encoder(path, MODEL, W_DIM + 1)
    with pytest.raises(ModelFileError, match=r"was not written.*another shape"):
        write_encoder(encoder, path, MODEL, W_DIM + 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"version": 2}, "another version"),
        ({"side": 24}, "side and the steps"),
        ({"steps": True}, "side and the steps"),
        ({"error": "small"}, "finite number"),
    ],
)
def test_settings_out_of_range_are_refused(
    encoder: EncoderFile, tmp_path: Path, change: dict[str, object], said: str
) -> None:
    settings = {"version": 1, "model_id": MODEL, "side": 16, "steps": 1, "error": 0.5} | change
    path = tmp_path / "x.encoder.safetensors"
    path.write_bytes(safetensors.numpy.save(dict(encoder.tensors), {KEY: json.dumps(settings)}))
    with pytest.raises(ModelFileError, match=said):
        read_encoder(path, MODEL, W_DIM)


def test_damage_and_numbers_that_are_not_finite_are_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    bad = dict(encoder.tensors)
    bad["mean"] = np.full(W_DIM, np.nan, np.float32)
    with pytest.raises(ModelFileError, match=r"finite numbers.*mean"):
        write_encoder(replace(encoder, tensors=bad), path, MODEL, W_DIM)
    with pytest.raises(ModelFileError, match="finite"):
        write_encoder(replace(encoder, error=float("nan")), path, MODEL, W_DIM)
    del bad["mean"]
    with pytest.raises(ModelFileError, match="some are missing"):
        write_encoder(replace(encoder, tensors=bad), path, MODEL, W_DIM)
    path.write_bytes(b"no encoder at all")
    with pytest.raises(ModelFileError):
        read_encoder(path, MODEL, W_DIM)
    path.write_bytes(bytes((16 << 20) + 1))
    with pytest.raises(ModelFileError, match="at most 16 MiB"):
        read_encoder(path, MODEL, W_DIM)
    with pytest.raises(LoomError, match="was not written"):
        write_encoder(encoder, path / "below" / "x.encoder.safetensors", MODEL, W_DIM)


def test_a_side_that_is_no_whole_number_is_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    write_encoder(encoder, path, MODEL, W_DIM)
    damaged = path.read_bytes().replace(b'\\"side\\": 16, ', b'\\"side\\":16.0,')
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"the side and the steps"):
        read_encoder(path, MODEL, W_DIM)
