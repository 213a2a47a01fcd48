"""Encoders lie beside a model and are read strictly."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import LoomError, ModelFileError
from gpu_backend.model import search_scales
from gpu_backend.model.encoder_file import (
    KEY,
    EncoderFile,
    encoder_path,
    encoder_shapes,
    encoder_side,
    read_encoder,
    write_encoder,
)
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.search_scales import SearchScales, most_directions, parsed_scales

MODEL, W_DIM, NUM_WS = "ab" * 32, 6, 4


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
    write_encoder(encoder, path, MODEL, W_DIM, NUM_WS)
    found = read_encoder(path, MODEL, W_DIM, NUM_WS)
    assert (found.side, found.steps, found.error) == (16, 120, 0.25)
    for name, tensor in encoder.tensors.items():
        assert np.array_equal(found.tensors[name], tensor), name


def test_the_largest_encoder_takes_less_than_4_mib() -> None:
    assert encoder_side(256) == encoder_side(1024) == 64
    assert encoder_side(16) == 16
    assert 2 * sum(int(np.prod(shape)) for shape in encoder_shapes(64, 512).values()) < 4 << 20


def test_an_encoder_of_another_model_or_shape_is_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    write_encoder(encoder, path, MODEL, W_DIM, NUM_WS)
    with pytest.raises(ModelFileError, match="trained for another one"):
        read_encoder(path, "cd" * 32, W_DIM, NUM_WS)
    with pytest.raises(ModelFileError, match="another shape or type"):
        read_encoder(path, MODEL, W_DIM + 1, NUM_WS)
    with pytest.raises(ModelFileError, match=r"was not written.*another shape"):
        write_encoder(encoder, path, MODEL, W_DIM + 1, NUM_WS)


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
        read_encoder(path, MODEL, W_DIM, NUM_WS)


def test_damage_and_numbers_that_are_not_finite_are_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    bad = dict(encoder.tensors)
    bad["mean"] = np.full(W_DIM, np.nan, np.float32)
    with pytest.raises(ModelFileError, match=r"finite numbers.*mean"):
        write_encoder(replace(encoder, tensors=bad), path, MODEL, W_DIM, NUM_WS)
    with pytest.raises(ModelFileError, match="finite"):
        write_encoder(replace(encoder, error=float("nan")), path, MODEL, W_DIM, NUM_WS)
    del bad["mean"]
    with pytest.raises(ModelFileError, match="some are missing"):
        write_encoder(replace(encoder, tensors=bad), path, MODEL, W_DIM, NUM_WS)
    path.write_bytes(b"no encoder at all")
    with pytest.raises(ModelFileError):
        read_encoder(path, MODEL, W_DIM, NUM_WS)
    path.write_bytes(bytes((16 << 20) + 1))
    with pytest.raises(ModelFileError, match="at most 16 MiB"):
        read_encoder(path, MODEL, W_DIM, NUM_WS)
    with pytest.raises(LoomError, match="was not written"):
        write_encoder(encoder, path / "below" / "x.encoder.safetensors", MODEL, W_DIM, NUM_WS)


def test_a_side_that_is_no_whole_number_is_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    write_encoder(encoder, path, MODEL, W_DIM, NUM_WS)
    damaged = path.read_bytes().replace(b'\\"side\\": 16, ', b'\\"side\\":16.0,')
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    with pytest.raises(ModelFileError, match=r"the side and the steps"):
        read_encoder(path, MODEL, W_DIM, NUM_WS)


def scales(count: int = 3) -> SearchScales:
    """Orthogonal axes of several lengths, and orthonormal directions."""
    random = np.random.default_rng(1)

    def orthonormal(size: int) -> np.ndarray:
        return np.linalg.qr(random.standard_normal((size, size)))[0].astype(np.float32)

    return SearchScales(
        axes=np.linspace(1.0, 0.01, W_DIM, dtype=np.float32)[:, None] * orthonormal(W_DIM),
        rows=np.exp(random.standard_normal((NUM_WS, W_DIM))).astype(np.float32),
        shared=np.exp(random.standard_normal(W_DIM)).astype(np.float32),
        directions=np.ascontiguousarray(orthonormal(NUM_WS * W_DIM)[:count]),
        factors=np.linspace(0.05, 0.4, count, dtype=np.float32),
        probes=700,
    )


@pytest.mark.parametrize("count", [3, 0])
def test_scales_of_searches_are_kept_with_an_encoder(encoder: EncoderFile, tmp_path: Path, count: int) -> None:
    path, given = tmp_path / "x.encoder.safetensors", scales(count)
    write_encoder(replace(encoder, scales=given), path, MODEL, W_DIM, NUM_WS)
    found = read_encoder(path, MODEL, W_DIM, NUM_WS)
    assert found.scales is not None
    assert found.scales.probes == 700
    for name in ("axes", "rows", "shared", "directions", "factors"):
        array = getattr(found.scales, name)
        assert array.dtype == np.float32
        np.testing.assert_allclose(array, getattr(given, name), rtol=1e-3, atol=1e-6)
    write_encoder(found, path, MODEL, W_DIM, NUM_WS)
    assert read_encoder(path, MODEL, W_DIM, NUM_WS).scales is not None
    write_encoder(encoder, path, MODEL, W_DIM, NUM_WS)
    assert read_encoder(path, MODEL, W_DIM, NUM_WS).scales is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"probes": 0}, "probes of search scales"),
        ({"probes": 4096}, "probes of search scales"),
        ({"axes": np.ones((W_DIM, W_DIM), np.float32)}, "orthogonal scales.axes"),
        ({"axes": np.zeros((W_DIM, W_DIM), np.float32)}, "orthogonal scales.axes"),
        ({"rows": np.zeros((NUM_WS, W_DIM), np.float32)}, "scales.rows of finite numbers in range"),
        ({"rows": np.ones((NUM_WS + 1, W_DIM), np.float32)}, r"scales.rows as .* of the shape \(4, 6\)"),
        ({"shared": np.full(W_DIM, np.nan, np.float32)}, "scales.shared of finite"),
        ({"factors": np.full(3, 1.5, np.float32)}, "factors of at most 1"),
        ({"factors": np.full(4, 0.5, np.float32)}, "scales.directions as floating-point"),
        ({"directions": np.ones((3, NUM_WS * W_DIM), np.float32)}, "orthonormal scales.directions"),
        ({"directions": np.full((3, NUM_WS * W_DIM), np.inf, np.float32)}, "finite numbers"),
    ],
)
def test_damaged_scales_are_refused(encoder: EncoderFile, tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = tmp_path / "x.encoder.safetensors"
    with pytest.raises(ModelFileError, match=rf"was not written.*{said}"):
        write_encoder(replace(encoder, scales=replace(scales(), **change)), path, MODEL, W_DIM, NUM_WS)
    assert not path.exists()


def test_scales_of_which_a_part_is_missing_are_refused(encoder: EncoderFile, tmp_path: Path) -> None:
    path = tmp_path / "x.encoder.safetensors"
    tensors = {**encoder.tensors, **scales().stored()}
    del tensors["scales.shared"]
    settings = {"version": 1, "model_id": MODEL, "side": 16, "steps": 1, "error": 0.5, "probes": 700}
    path.write_bytes(safetensors.numpy.save(tensors, {KEY: json.dumps(settings)}))
    with pytest.raises(ModelFileError, match="tensors of search scales"):
        read_encoder(path, MODEL, W_DIM, NUM_WS)


def test_scales_fit_into_the_file_of_any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for num_ws, w_dim in ((18, 512), (26, 1024), (14, 256)):
        count = most_directions(num_ws, w_dim)
        assert count > 50
        nbytes = 4 * w_dim**2 + 2 * num_ws * w_dim * (count + 1) + 4 * (w_dim + count)
        nbytes += 2 * sum(int(np.prod(shape)) for shape in encoder_shapes(64, w_dim).values())
        assert nbytes < 15 << 20
    assert most_directions(18, 2048) == 0, "the axes alone would fill it"
    monkeypatch.setattr(search_scales, "_MAX_DIRECTIONS", 2)
    with pytest.raises(Refusal, match="at most 2 directions"):
        parsed_scales(scales().stored(), 700, NUM_WS, W_DIM)
