"""What is opened beside a model for searches in it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from gpu_backend import (
    Base,
    DeviceError,
    Model,
    encoder_path,
    open_encoder,
    open_features,
    open_gradients,
    read_model,
    write_encoder,
    write_safetensors,
    write_tuned,
)
from gpu_backend.model.encoder_file import EncoderFile, encoder_shapes, encoder_side
from tests.helpers.golden import Golden
from tests.helpers.networks import make_stylegan2

NAME = "synthesis.b8.conv0.bias"


@pytest.fixture
def hills(tmp_path: Path) -> Model:
    write_safetensors(make_stylegan2(), tmp_path / "hills.safetensors")
    return read_model(tmp_path / "hills.safetensors")


@pytest.fixture
def tuned(hills: Model, tmp_path: Path) -> Model:
    base = Base(Path(hills.facts.path), hills.facts.model_id, "photo.png")
    write_tuned({NAME: np.full_like(hills.weights[NAME], 0.5)}, base, tmp_path / "tuned.safetensors")
    return read_model(tmp_path / "tuned.safetensors")


def write_encoder_of(model: Model, error: float) -> None:
    side, w_dim, num_ws = encoder_side(model.spec.resolution), model.spec.w_dim, model.spec.num_ws
    tensors = {name: np.full(shape, error, np.float32) for name, shape in encoder_shapes(side, w_dim).items()}
    file, model_id = encoder_path(model.facts.path), model.facts.model_id
    write_encoder(EncoderFile(side, tensors, 10, error), file, model_id, w_dim, num_ws)


@pytest.mark.parametrize("device", ["tpu", "cuda:0", 0])
def test_a_device_that_there_is_not_is_refused(hills: Model, device: str) -> None:
    with pytest.raises(DeviceError, match="one of auto, cpu, cuda, not"):
        open_gradients(hills, device=device)


def test_a_tuned_model_is_searched_with_the_encoder_of_the_model_that_it_changes(hills: Model, tuned: Model) -> None:
    network = open_gradients(tuned, device="cpu")
    assert open_encoder(tuned, network) is None
    assert open_features(tuned, network, None) is None
    write_encoder_of(hills, 0.25)
    assert open_encoder(tuned, network) is not None


def test_a_model_whose_encoder_would_have_too_long_a_name_has_none(tmp_path: Path) -> None:
    path = tmp_path / f"{'h' * 243}.safetensors"
    write_safetensors(make_stylegan2(), path)
    model = read_model(path)
    assert open_encoder(model, open_gradients(model, device="cpu")) is None


def test_a_tuned_model_may_have_an_encoder_of_its_own(hills: Model, tuned: Model) -> None:
    network = open_gradients(tuned, device="cpu")
    picture = torch.zeros((1, 3, tuned.spec.resolution, tuned.spec.resolution))
    estimates = []
    for model, value in ((hills, 0.25), (tuned, 0.5)):
        write_encoder_of(model, value)
        found = open_encoder(tuned, network)
        assert found is not None
        estimates.append(found.encode(picture))
    assert not torch.equal(*estimates)


def test_pictures_of_a_tuned_model_are_compared_by_the_discriminator_of_the_model_that_it_changes(
    tmp_path: Path,
) -> None:
    snapshot = Golden("S1_sg2ada_skip_64").model
    base = Base(Path(snapshot.facts.path), snapshot.facts.model_id, "photo.png")
    write_tuned({NAME: np.zeros_like(snapshot.weights[NAME])}, base, tmp_path / "tuned.safetensors")
    tuned = read_model(tmp_path / "tuned.safetensors")
    assert open_features(tuned, open_gradients(tuned, device="cpu"), None) is not None


def test_a_path_in_place_of_a_model_is_refused(hills: Model) -> None:
    with pytest.raises(TypeError, match="a Model from read_model, not a str"):
        open_gradients(hills.facts.path)  # type: ignore[arg-type]
