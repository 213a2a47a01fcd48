"""Rows of w: from one latent, or from two."""

import pytest
import torch

from gpu_backend.training.latents import Latents
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.shape import NetworkShape

pytestmark = pytest.mark.usefixtures("one_thread")


def latents(mixing: float) -> Latents:
    torch.manual_seed(0)
    generator = Generator(NetworkShape(16, channel_base=64, channel_max=8, z_dim=8, w_dim=8).spec())
    return Latents(generator, mixing, torch.device("cpu"))


def test_mixed_latents_change_once_from_one_w_to_another() -> None:
    rows = latents(1.0).rows(64)
    changes = (rows[:, 1:] - rows[:, :-1]).abs().amax(2) > 0
    assert (changes.sum(1) == 1).all()
    assert changes.any(0).all(), "at every row"


def test_without_mixing_all_rows_are_the_same() -> None:
    rows = latents(0.0).rows(8)
    assert (rows == rows[:, :1]).all()
    mixed = latents(0.5).rows(256)
    share = ((mixed != mixed[:, :1]).any(2).any(1)).float().mean()
    assert 0.35 < share < 0.65
