import pytest
import torch

from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape
from gpu_backend.training.quality.feature_training import FeatureTraining, train_on_world
from tests.helpers.disc_world import DiscWorld

SMALL = FeatureTraining(
    shape=FeatureShape(side=16, widths=(8, 16), squeezed=8, features=16),
    steps=120,
    batch=32,
    rate=5e-3,
    resolution=16,
    checked=128,
)


@pytest.fixture(scope="session")
def trained() -> tuple[FeatureNetwork, dict[str, float]]:
    """A small network that knows the world of discs."""
    return train_on_world(DiscWorld(), SMALL, torch.device("cpu"))
