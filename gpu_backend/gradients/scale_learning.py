"""Learns the scales of a network's searches from many backward passes, once for all pictures.

Of white noise v the mean of g g', g = J'v the gradient by all rows of w, is that of J'J (Gauss-Newton, see
`row_scales`). With as few passes as variables or fewer, most of its eigenvalues are noise. So the mean is split::

    mean J'J = U^-1 (c I + D' diag(e) D) U^-1

U are units that its diagonal gives, D the eigenvectors whose eigenvalues are above the largest that independent
entries of the same mean square would have (Marchenko and Pastur 1967): (1 + sqrt(size / passes))^2 times the mean
eigenvalue. What is left counts as even, c. Variables in which this matrix is a multiple of I precondition L-BFGS
better than its diagonal alone.

A gradient summed over the rows gives the unit of what moves all rows alike, as in `row_scales`.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.gradients.latents import sample_w, search_axes
from gpu_backend.gradients.network import DifferentiableNetwork, NetworkPasses
from gpu_backend.gradients.projection import pictures_together
from gpu_backend.gradients.row_scales import FLOOR, PSI, logarithms
from gpu_backend.model.search_scales import MAX_PROBES, SearchScales, most_directions, parsed_scales

LEAST_PROBES = 16
"""Fewer give no better units than a search measures itself."""
_MOST_NBYTES = 128 << 20
"""Of all gradients: networks with many long rows have fewer passes."""


class ScaleLearner:
    """Gathers gradients of a network, a few a call.

    Parameters
    ----------
    network
        Differentiated up to its full picture.
    """

    def __init__(self, network: DifferentiableNetwork) -> None:
        self._network = network
        spec = network.spec
        self.most = max(LEAST_PROBES, min(MAX_PROBES, _MOST_NBYTES // (4 * spec.num_ws * spec.w_dim)))
        """Passes in all."""
        self.batch = pictures_together(network)
        """Passes of a call. A processor needs as long for each, and a stop waits for them."""
        own = network.own_kernels
        opened = None if own is None else own.passes(network, self.batch, draft_side=0, draft_samples=self.batch)
        self._passes: NetworkPasses = opened or network
        self._axes = search_axes(network)
        self._w = network.mean_w + PSI * (sample_w(network, self.most, seed=2) - network.mean_w)
        self.gradients: list[Tensor] = []
        """By the coordinates of all rows, (num_ws, w_dim) each, in the processor's memory."""

    def probe(self) -> None:
        """Do the next batch of passes forward and backward."""
        first, network = len(self.gradients), self._network
        w = self._w[first : min(first + self.batch, self.most)]
        rows = w[:, None].expand(-1, network.spec.num_ws, -1).clone().requires_grad_()
        picture = self._passes.picture(rows)
        (gradient,) = torch.autograd.grad(picture, rows, self._noise(picture, first))
        self.gradients += (gradient @ self._axes.t()).cpu().unbind()

    @torch.no_grad()
    def scales(self) -> SearchScales:
        """Return the scales that the gradients so far give, as a file keeps them; at least `LEAST_PROBES` are needed.

        Raises
        ------
        Refusal, RuntimeError
            If numbers are not finite: as a file would be refused, or of torch.
        """
        along = torch.stack(self.gradients).to(self._axes)
        count, num_ws, w_dim = along.shape
        size = num_ws * w_dim
        of_rows = logarithms(along.square().sum(0))
        of_all = logarithms(along.sum(1).square().sum(0, keepdim=True))
        middle = of_rows.mean()  # as in `RowScales`
        rows, shared = (of_rows - middle).exp(), (of_all - middle).exp()
        scaled = (along * rows).flatten(1).double() / math.sqrt(count)
        # Eigenvectors of the smaller Gram matrix give those of the larger one.
        squares, vectors = torch.linalg.eigh(scaled @ scaled.t())
        squares, vectors = squares.flip(0).clamp(min=0.0), vectors.flip(1)
        level = squares.sum() / size
        edge = (1.0 + math.sqrt(size / count)) ** 2 * level
        kept = min(int((squares > edge).sum()), most_directions(num_ws, w_dim))
        rest = (squares.sum() - squares[:kept].sum()) / (size - kept)
        directions = vectors[:, :kept].t() @ scaled / squares[:kept, None].sqrt()
        factors = (1.0 + squares[:kept] / rest.clamp(min=FLOOR * level)).rsqrt()
        tensors = (self._axes, rows, shared[0], directions, factors)
        arrays: list[NDArray[np.float32]] = [tensor.float().cpu().numpy() for tensor in tensors]
        found = SearchScales(arrays[0], arrays[1], arrays[2], arrays[3], arrays[4], count)
        return parsed_scales(found.stored(), count, num_ws, w_dim)

    def _noise(self, like: Tensor, first: int) -> Tensor:
        """Return signs at random, shaped as pictures: of unit mean square, and quicker to draw than normal numbers."""
        count = like[0].numel()
        drawn = [np.random.default_rng((2, first + number)).bytes(-(-count // 8)) for number in range(len(like))]
        bits = np.stack([np.unpackbits(np.frombuffer(one, np.uint8), count=count) for one in drawn])
        return (torch.from_numpy(bits).to(like.device).to(like) * 2.0 - 1.0).view_as(like)
