"""Drafts of a differentiable network that look like the full picture.

What leaves a network early is the sum of its toRGB layers so far, which training does not make similar to the full
picture: PSNR 19 dB for the bundled model at 64 x 64. The features there contain the picture, and a 1 x 1 convolution
reads it: 27 dB. Such readouts come with the model (`gpu_backend.model.draft_file`), or are fitted here by ridge
regression on a few random pictures: 26 dB.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import DifferentiableNetwork, NetworkPasses
from gpu_backend.gradients.time_limit import TimeLimit

_PICTURES, _LEAST_PICTURES = 12, 3
"""Random pictures that readouts are fitted to; the least of them where pictures take long."""
_RIDGE = 1e-4
"""Relative to the mean square of the features."""
_PSI = 0.8
_Readout = tuple[Tensor, Tensor, Tensor]
_FITTED: WeakKeyDictionary[DifferentiableNetwork, dict[int, _Readout]] = WeakKeyDictionary()
"""By side, of networks whose readouts were fitted to all pictures: later searches take them."""


class MatchedDrafts:
    """Pictures of a network at lower resolutions.

    Parameters
    ----------
    network
        Its own readouts are used where it has them; `fit` makes others.
    sides
        Resolutions at which pictures are wanted.
    """

    def __init__(self, network: DifferentiableNetwork, sides: tuple[int, ...]) -> None:
        self._network = network
        self._passes: NetworkPasses = network
        # The products of all channels cost a GPU less than gathering those that are read.
        self._reads_all = network.device.type == "cuda"
        full = network.spec.resolution
        self._readouts: dict[int, _Readout] = {}
        """Side -> channels that are read, weight (img_channels, count), bias (img_channels, 1, 1)."""
        self._sides = tuple(side for side in sides if side < full and side in network.blocks)
        for side in self._sides:
            if (stored := network.readouts.get(side)) is not None:
                channels = torch.from_numpy(stored.channels).long().to(network.device)
                weight, bias = network.tensor(stored.weight), network.tensor(stored.bias)
                self._readouts[side] = channels, weight, bias[:, None, None]
            elif (fitted := _FITTED.get(network, {}).get(side)) is not None:
                self._readouts[side] = fitted

    def through(self, passes: NetworkPasses) -> MatchedDrafts:
        """Return these drafts of features and pictures that `passes` computes; both have the same readouts."""
        made = copy(self)
        made._passes = passes
        return made

    @property
    def missing(self) -> tuple[int, ...]:
        """Sides whose readouts `fit` has to fit."""
        return tuple(side for side in self._sides if side not in self._readouts)

    def fit(self, limit: TimeLimit | None = None) -> Iterator[tuple[int, int]]:
        """Fit the readouts that are missing; yield (done, all) after each random picture, fewer in all with a limit."""
        missing = self.missing
        if not missing:
            return
        network, limit = self._network, limit or TimeLimit()
        candidates = network.mean_w + _PSI * (sample_w(network, _PICTURES, seed=1) - network.mean_w)
        sums: dict[int, tuple[Tensor, Tensor]] = {}
        for number, w in enumerate(candidates):
            rows = w.expand(1, network.spec.num_ws, -1)
            with torch.no_grad(), limit.pieces():
                picture = network.picture(rows)
                for side in missing:
                    x = network.features(rows, side)[0].flatten(1).double()
                    x = torch.cat([x, torch.ones_like(x[:1])])
                    y = functional.avg_pool2d(picture, picture.shape[-1] // side)[0].flatten(1).double()
                    squares, products = sums.get(side, (0.0, 0.0))
                    sums[side] = squares + x @ x.t(), products + x @ y.t()
            total = limit.fitting(_PICTURES, _LEAST_PICTURES)
            yield number + 1, total
            if number + 1 == total:
                break
        for side, (squares, products) in sums.items():
            count = len(squares)
            ridge = _RIDGE * float(squares.trace()) / count * torch.eye(count).to(squares)
            ridge[-1, -1] = 0.0
            found = torch.linalg.solve(squares + ridge, products).to(network.dtype).t()
            channels = torch.arange(count - 1, device=network.device)
            self._readouts[side] = channels, found[:, :-1].contiguous(), found[:, -1][:, None, None]
            if not limit.is_set:
                _FITTED.setdefault(network, {})[side] = self._readouts[side]

    def picture(self, rows: Tensor, side: int) -> Tensor:
        """Return pictures (batch, img_channels, side, side) of rows (batch, num_ws, w_dim)."""
        if side not in self._readouts:
            return self._passes.picture(rows, side)
        channels, weight, bias = self._readouts[side]
        features = self._passes.features(rows, side)
        if self._reads_all:
            if weight.shape[1] < features.shape[1]:
                whole = weight.new_zeros(len(weight), features.shape[1])
                weight = whole.index_copy(1, channels, weight)
                self._readouts[side] = channels, weight, bias
            return (features.permute(0, 2, 3, 1) @ weight.t()).permute(0, 3, 1, 2) + bias
        return torch.einsum("oc,bcyx->boyx", weight, features[:, channels]) + bias
