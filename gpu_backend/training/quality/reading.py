"""Features and factors of pictures in NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.training.quality.feature_network import FeatureNetwork

_BATCH = 128


class FeatureReader:
    """Computes features and factors of pictures.

    Parameters
    ----------
    network
        It is moved to the device.
    """

    def __init__(self, network: FeatureNetwork, device: torch.device) -> None:
        self._network = network.to(device).eval()
        self._device = device

    def features(self, pictures: NDArray[np.float32] | Tensor) -> NDArray[np.float64]:
        """Return (n, features) of pictures (n, channels, R, R) in -1..1."""
        return self._each(pictures, self._network.features)

    def factors(self, pictures: NDArray[np.float32] | Tensor) -> NDArray[np.float64]:
        """Return (n, factors) in standard deviations from the mean."""
        return self._each(pictures, self._network)

    @torch.no_grad()
    def _each(self, pictures: NDArray[np.float32] | Tensor, read: Any) -> NDArray[np.float64]:
        if not isinstance(pictures, Tensor):
            pictures = torch.from_numpy(pictures)
        parts = []
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, benchmark=False):
            for batch in torch.split(pictures, _BATCH):
                parts.append(read(three_channels(batch.to(self._device)).clamp(-1.0, 1.0)).double().cpu())
        values: NDArray[np.float64] = torch.cat(parts).numpy()
        return values


def three_channels(pictures: Tensor) -> Tensor:
    """Return RGB pictures: grey is replicated, alpha dropped."""
    return pictures.expand(-1, 3, -1, -1) if pictures.shape[1] == 1 else pictures[:, :3]


def torch_device(name: str) -> torch.device:
    """Return the device of a name; auto is a GPU if torch sees one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)
