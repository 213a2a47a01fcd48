"""Phases of a picture are its pixels in another order, and nothing else."""

import torch

from gpu_backend.training.networks.phases import gather, spread


def test_spreading_undoes_gathering() -> None:
    x = torch.randn(2, 3, 6, 6)
    torch.testing.assert_close(spread(gather(x)), x, atol=0, rtol=0)
