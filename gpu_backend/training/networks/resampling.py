"""3 x 3 convolutions that double or halve the side: one of stride 2, and a filter (Karras et al. 2020b)."""

from __future__ import annotations

from torch import Tensor, nn

from gpu_backend.training.networks.convolution import Geometry, convolve
from gpu_backend.training.networks.filters import SMOOTH_DOWN, SMOOTH_UP, filtered

_UP, _DOWN = Geometry(2, 0, transposed=True), Geometry(2)


class UpConvolution(nn.Module):
    """Twice the side."""

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """(n, in, h, w) and (out, in, 3, 3), stored as for a transposed convolution, to (n, out, 2 h, 2 w), as x is."""
        return filtered(convolve(x, weight.transpose(0, 1).to(x.dtype), _UP), SMOOTH_UP)


class DownConvolution(nn.Module):
    """Half the side."""

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """(n, in, 2 h, 2 w) and (out, in, 3, 3) to (n, out, h, w), as x is."""
        return convolve(filtered(x, SMOOTH_DOWN), weight.to(x.dtype), _DOWN)
