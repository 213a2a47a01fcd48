from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from gpu_backend.errors import LoomError
from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape, fitted, spread
from gpu_backend.training.quality.feature_training import train_on_world
from gpu_backend.training.quality.reading import FeatureReader, three_channels
from gpu_backend.training.quality.world_source import world_batches
from tests.gpu_backend.training.quality.conftest import SMALL
from tests.helpers.disc_world import DiscWorld

CPU = torch.device("cpu")


def test_a_small_network_learns_to_tell_the_factors(trained: tuple[FeatureNetwork, dict[str, float]]) -> None:
    _, skill = trained
    assert list(skill) == ["across", "size", "ground"]
    assert all(share > 0.8 for share in skill.values()), skill


def test_the_same_seed_gives_the_same_network_and_another_one_another() -> None:
    brief = replace(SMALL, steps=3, checked=32)
    runs = [train_on_world(DiscWorld(), replace(brief, seed=seed), CPU)[0].state_dict() for seed in (0, 0, 1)]
    assert all(torch.equal(runs[0][name], runs[1][name]) for name in runs[0])
    assert not torch.equal(runs[0]["head.weight"], runs[2]["head.weight"])


def test_training_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()
    train_on_world(DiscWorld(), replace(SMALL, steps=1, checked=32), CPU)
    assert torch.equal(before, torch.get_rng_state())


def test_an_error_that_is_no_number_stops_with_the_step() -> None:
    class Broken(DiscWorld):
        def draw(self, factors: Tensor, seeds: Tensor, resolution: int, device: torch.device) -> Tensor:
            return super().draw(factors, seeds, resolution, device) * float("nan")

    with pytest.raises(LoomError, match="at step 1"):
        train_on_world(Broken(), replace(SMALL, steps=2), CPU, lambda step, error: None)


def test_the_usual_network_has_one_to_two_million_numbers_and_gives_128_features() -> None:
    network = FeatureNetwork(("a", "b"), FeatureShape(), torch.zeros(2), torch.ones(2))
    assert 1e6 < sum(part.numel() for part in network.parameters()) < 2e6
    with torch.no_grad():
        assert network.features(torch.zeros(2, 3, 256, 256)).shape == (2, 128)
        assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 2)


def test_larger_pictures_are_averaged_down() -> None:
    large = torch.arange(16.0).reshape(1, 1, 4, 4)
    assert fitted(large, 2).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]


def test_a_factor_that_never_varies_is_not_divided_by_nothing() -> None:
    mean, deviation = spread(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
    assert mean.tolist() == [2.0, 5.0]
    assert deviation.tolist() == pytest.approx([2**0.5, 1.0])


def test_batches_of_a_world_are_the_same_for_the_same_seed_and_share_no_picture_with_another() -> None:
    def pictures(seed: int) -> torch.Tensor:
        return torch.cat([drawn for _, drawn in world_batches(DiscWorld(), 5, 2, seed, 8, CPU)])

    assert pictures(1).shape == (5, 3, 8, 8)
    assert torch.equal(pictures(1), pictures(1))
    assert not torch.equal(pictures(1), pictures(2))


def test_grey_and_transparent_pictures_are_read_too(trained: tuple[FeatureNetwork, dict[str, float]]) -> None:
    reader = FeatureReader(trained[0], CPU)
    grey = np.zeros((3, 1, 16, 16), np.float32)
    assert np.array_equal(reader.features(grey), reader.features(np.zeros((3, 4, 16, 16), np.float32)))
    assert reader.factors(grey).dtype == np.float64
    assert three_channels(torch.zeros(2, 1, 4, 4)).shape == (2, 3, 4, 4)
