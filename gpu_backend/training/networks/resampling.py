"""3 x 3 convolutions that double or halve the side, in one of two ways that give the same (Karras et al. 2020b).

``steps``: a convolution of stride 2 and a filter over the larger picture. ``phases``: one convolution at the lower
resolution (phases.py), with four times the products and about as many bytes: what the filter reads and writes there,
putting phases beside each other reads and writes here.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from gpu_backend.training.networks.convolution import SAME, Geometry, convolve
from gpu_backend.training.networks.filters import SMOOTH_DOWN, SMOOTH_UP, filtered
from gpu_backend.training.networks.phases import down_phases, fold_down, fold_up, gather, spread, up_phases

Way = Literal["steps", "phases"]

_UP, _DOWN = Geometry(2, 0, transposed=True), Geometry(2)


class UpConvolution(nn.Module):
    """Twice the side."""

    phases: Tensor

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way
        self.register_buffer("phases", up_phases(), persistent=False)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """(n, in, h, w) and (out, in, 3, 3), stored as for a transposed convolution, to (n, out, 2 h, 2 w), as x is."""
        if self.way == "phases":
            return spread(convolve(x, fold_up(weight, self.phases).to(x.dtype), SAME))
        return filtered(convolve(x, weight.transpose(0, 1).to(x.dtype), _UP), SMOOTH_UP)


class DownConvolution(nn.Module):
    """Half the side."""

    phases: Tensor

    def __init__(self, way: Way) -> None:
        super().__init__()
        self.way = way
        self.register_buffer("phases", down_phases(), persistent=False)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """(n, in, 2 h, 2 w) and (out, in, 3, 3) to (n, out, h, w), as x is."""
        if self.way == "phases":
            return convolve(gather(x), fold_down(weight, self.phases).to(x.dtype), SAME)
        return convolve(filtered(x, SMOOTH_DOWN), weight.to(x.dtype), _DOWN)
