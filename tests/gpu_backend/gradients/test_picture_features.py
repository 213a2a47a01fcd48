"""Features of a model's own networks: which are found, and what their distance sees."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import avg_pool2d

from gpu_backend import Model, PictureFeatures, open_features, read_model
from gpu_backend.gradients.encoder import PictureEncoder
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.picture_loss import PictureLoss
from gpu_backend.model.discriminator_file import DiscriminatorWeights
from gpu_backend.training.networks.discriminator import Discriminator, Residual
from gpu_backend.training.networks.shape import NetworkShape
from tests.helpers.golden import Golden
from tests.helpers.networks import make_stylegan2
from tests.helpers.tool_names import rosinality_discriminator, rosinality_tensors
from tests.helpers.torch_file import save_torch


def pictures(count: int, side: int, seed: int = 0) -> torch.Tensor:
    return torch.rand((count, 3, side, side), generator=torch.Generator().manual_seed(seed)) * 2 - 1


def encoder_of(model: Model) -> PictureEncoder:
    mean = torch.from_numpy(np.array(model.mean_w))
    return PictureEncoder.fresh(model.spec.resolution, mean, torch.ones_like(mean))


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(resolution=16)


def test_the_distance_is_none_from_itself_and_larger_from_a_blurred_picture_than_from_noise_of_less_error(
    model: Model,
) -> None:
    features = PictureFeatures.of_encoder(encoder_of(model))
    wanted = pictures(2, 32)
    maps = features.maps(wanted)
    assert features.distance(wanted, maps).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    blurred = avg_pool2d(wanted, 5, stride=1, padding=2)
    assert (features.distance(blurred, maps) > features.distance(wanted + 0.01, maps)).all()


def test_a_brighter_target_is_compared_sample_by_sample_or_with_one_for_all(model: Model) -> None:
    features = PictureFeatures.of_encoder(encoder_of(model))
    wanted, found = pictures(1, 16), pictures(3, 16, seed=1)
    one = PictureLoss(wanted, features)(found)
    each = PictureLoss(wanted.expand(3, -1, -1, -1), features)(found)
    assert one.shape == (3,)
    torch.testing.assert_close(one, each)
    assert (one > PictureLoss(wanted)(found)).all(), "features add to the loss"


def test_a_grey_picture_has_features_of_an_encoder(model: Model) -> None:
    features = PictureFeatures.of_encoder(encoder_of(model))
    grey = pictures(1, 16)[:, :1]
    torch.testing.assert_close(features.maps(grey), features.maps(grey.expand(-1, 3, -1, -1)))


def test_the_blocks_of_a_discriminator_are_those_that_training_runs() -> None:
    twin = Discriminator(NetworkShape(resolution=16, channel_base=128, channel_max=16)).requires_grad_(False)
    stored: dict[str, torch.nn.Module] = {"b16.fromrgb": twin.from_rgb}
    for name in twin.names:
        block = twin.get_submodule(name)
        assert isinstance(block, Residual)
        stored |= {f"{name}.conv0": block.conv0, f"{name}.conv1": block.conv1, f"{name}.skip": block.skip}
    tensors = {}
    for name, layer in stored.items():
        for kind, tensor in layer.named_parameters():
            torch.nn.init.normal_(tensor)
            tensors[f"{name}.{kind}"] = tensor.numpy()
    x = pictures(2, 16)
    features = PictureFeatures.of_discriminator(DiscriminatorWeights((16, 8), tensors, (0.125, 0.375, 0.375, 0.125)), x)
    y = twin.from_rgb(x, torch.float32)
    for name, found in zip(twin.names, features.layers(x), strict=True):
        y = twin.get_submodule(name)(y, torch.float32)
        torch.testing.assert_close(found, y, rtol=1e-4, atol=1e-4)


def rosinalitys_checkpoint(folder: Path) -> Model:
    """A checkpoint of a generator and the discriminator that was trained with it, in rosinality's form."""
    generator = rosinality_tensors(make_stylegan2(resolution=16))
    return read_model(save_torch({"g_ema": generator, "d": rosinality_discriminator()}, folder / "d.pt"))


@pytest.mark.parametrize("tool", ["NVIDIA", "rosinality"])
def test_a_files_discriminator_runs_forward_and_backward_as_in_double_precision(tool: str, tmp_path: Path) -> None:
    file_model = Golden("S1_sg2ada_skip_64").model if tool == "NVIDIA" else rosinalitys_checkpoint(tmp_path)
    side = file_model.spec.resolution
    wanted, found = pictures(1, side), pictures(1, side, seed=1)
    network, exact_network = (
        differentiable_network(file_model, dtype=dtype) for dtype in (torch.float32, torch.float64)
    )
    features, exact = open_features(file_model, network, None), open_features(file_model, exact_network, None)
    assert features is not None
    assert exact is not None
    maps = exact.maps(wanted.double())

    def exact_distance(picture: torch.Tensor) -> torch.Tensor:
        return exact.distance(picture, maps)[0]

    ours, theirs = found.clone().requires_grad_(), found.double().requires_grad_()
    distance, exactly = features.distance(ours, features.maps(wanted))[0], exact_distance(theirs)
    assert distance.item() == pytest.approx(exactly.item(), rel=1e-4)
    gradient, expected = torch.autograd.grad(distance, ours)[0], torch.autograd.grad(exactly, theirs)[0]
    assert torch.cosine_similarity(gradient.double().flatten(), expected.flatten(), 0) > 0.9999
    way = pictures(1, side, seed=2).double()
    step = 1e-6 * way
    slope = (exact_distance(found.double() + step) - exact_distance(found.double() - step)) / 2e-6
    assert float((expected * way).sum()) == pytest.approx(float(slope), rel=1e-3)


def test_a_files_discriminator_is_chosen_before_an_encoder_and_an_encoder_where_there_is_none(model: Model) -> None:
    snapshot = Golden("S1_sg2ada_skip_64").model
    network = differentiable_network(snapshot)
    found = open_features(snapshot, network, encoder_of(snapshot))
    assert found is not None
    assert [x.shape[-1] for x in found.maps(pictures(1, 64))] == [32, 16, 8, 4]
    alone = Golden("S2_sg3repo_sg2_cond_128").model
    network = differentiable_network(alone)
    found = open_features(alone, network, encoder_of(alone))
    assert found is not None
    assert [x.shape[-1] for x in found.maps(pictures(1, 128))] == [32, 16, 8, 4, 64, 32, 16, 8]
    assert open_features(alone, network, None) is None
