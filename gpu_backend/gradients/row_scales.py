"""Variables of a search for rows of w, in units in which its loss curves alike along each of them.

The mean square of a picture curves as J'J (Gauss-Newton), J the picture's Jacobian with respect to the coordinates. Of
white noise v the mean of (J'v)^2 is the diagonal of J'J (Bekas, Kokiopoulou and Saad 2007), so a few backward passes
estimate it. The unit of a coordinate is one over the root of its entry, which preconditions L-BFGS: a deviation of a
middle row of the bundled model changes the picture sixty times as much as one of the last row.

Rows that each move alone reach a latent whose rows are alike slowly, and pictures are near such a latent. So a search
has a variable more for each axis, which moves all rows alike. Its unit comes from the same passes: J' is summed over
the rows first.

Scales that were learnt with the model's encoder (`scale_learning`) take the place of measured ones. They also shorten
the directions of all rows together along which the picture changes most, which the diagonal misses.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.latents import sample_w
from gpu_backend.gradients.network import DifferentiableNetwork, NetworkPasses
from gpu_backend.gradients.time_limit import TimeLimit
from gpu_backend.model.search_scales import SearchScales

_PROBES, _LEAST_PROBES = 8, 4
"""Backward passes, each at another random latent; with fewer than the least an entry is no estimate."""
PSI = 0.8
FLOOR = 1e-4
"""Least entry of the diagonal, relative to the largest: what hardly changes a picture keeps a unit."""
_NEIGHBOURS = 5
"""Entries of neighbouring axes that are averaged. Axes are sorted by their deviation, so they change pictures alike."""
_MEASURED: WeakKeyDictionary[DifferentiableNetwork, tuple[Tensor, Tensor]] = WeakKeyDictionary()
"""Of networks that were measured with all probes: searches of several pictures share one measurement."""


class RowScales:
    """Units of coordinates along axes of w: for the row of each layer, and for what moves all rows alike.

    They depend on the network alone, not on the pictures that are searched. Until they are measured each is 1, and
    rows move alone.

    Parameters
    ----------
    network
        Differentiated up to its full picture.
    axes
        (w_dim, w_dim): w = mean + coordinates @ axes.
    learnt
        Along the same axes; None measures.
    """

    def __init__(self, network: DifferentiableNetwork, axes: Tensor, learnt: SearchScales | None = None) -> None:
        self._network, self._axes = network, axes
        self._directions: Tensor | None = None
        """(count, num_ws * w_dim), orthonormal, in coordinates over their units; None if there are none."""
        self._factors = axes.new_ones(0)
        if learnt is None:
            found = _MEASURED.get(network)
        else:
            rows, shared, directions, factors = (
                torch.from_numpy(array).to(axes)
                for array in (learnt.rows, learnt.shared, learnt.directions, learnt.factors)
            )
            found = rows, shared[None]
            if len(factors):
                self._directions, self._factors = directions, factors
        self.is_measured = found is not None
        if found is None:
            found = axes.new_ones(network.spec.num_ws, len(axes)), axes.new_zeros(1, len(axes))
        self.units, self.shared_units = found
        """(num_ws, w_dim); (1, w_dim), zeros where rows move alone."""

    def variables(self, coordinates: Tensor) -> Tensor:
        """Return the variables (samples, num_ws + 1, w_dim) of coordinates (samples, num_ws, w_dim).

        The last row of variables moves all rows alike, and begins at 0.
        """
        own = coordinates / self.units
        if self._directions is not None:
            own = _stretched(own, self._directions, 1.0 / self._factors)
        return functional.pad(own, (0, 0, 0, 1))

    def coordinates(self, variables: Tensor) -> Tensor:
        """Return the coordinates (samples, num_ws, w_dim) of variables (samples, num_ws + 1, w_dim)."""
        own = variables[:, :-1]
        if self._directions is not None:
            own = _stretched(own, self._directions, self._factors)
        return torch.addcmul(variables[:, -1:] * self.shared_units, own, self.units)

    def gradients(self, of_coordinates: Tensor) -> Tensor:
        """Return gradients by the variables, shaped as these, of those by coordinates (samples, num_ws, w_dim)."""
        samples, rows, axes = of_coordinates.shape
        found = of_coordinates.new_empty(samples, rows + 1, axes)
        own = torch.mul(of_coordinates, self.units, out=found[:, :-1])
        if self._directions is not None:
            own.copy_(_stretched(own, self._directions, self._factors))
        torch.mul(of_coordinates.sum(1, keepdim=True), self.shared_units, out=found[:, -1:])
        return found

    def measure(self, limit: TimeLimit | None = None, passes: NetworkPasses | None = None) -> Iterator[tuple[int, int]]:
        """Measure the units unless they are known; yield (done, all) after each pass, fewer in all with a limit.

        With a limit that is too short for the least number of passes, nothing is measured after the first one.

        Parameters
        ----------
        passes
            Of this network, which need not keep what torch does; None for the network's own.
        """
        if self.is_measured:
            return
        network, limit = self._network, limit or TimeLimit()
        passes = passes or network
        generator = np.random.default_rng(2)
        mean = network.mean_w
        candidates = mean + PSI * (sample_w(network, _PROBES, seed=2) - mean)
        squares, shared_squares = torch.zeros_like(self.units), torch.zeros_like(self.shared_units)
        for number, w in enumerate(candidates):
            rows = w.expand(1, network.spec.num_ws, -1).clone().requires_grad_()
            with limit.pieces():
                picture = passes.picture(rows)
                noise = network.tensor(generator.standard_normal(tuple(picture.shape), np.float32))
                (gradient,) = torch.autograd.grad(picture, rows, noise)
            along_axes = gradient[0] @ self._axes.t()
            squares += along_axes.square()
            shared_squares += along_axes.sum(0, keepdim=True).square()
            wanted = limit.fitting(_PROBES)
            if wanted < _LEAST_PROBES:
                return
            yield number + 1, wanted
            if number + 1 == wanted:
                break
        of_rows = logarithms(squares)
        middle = of_rows.mean()  # the geometric mean of units of rows is 1, so that lengths of steps stay usual
        self.units, self.is_measured = (of_rows - middle).exp(), True
        self.shared_units = (logarithms(shared_squares) - middle).exp()
        if not limit.is_set:
            _MEASURED[network] = self.units, self.shared_units


def _stretched(rows: Tensor, directions: Tensor, factors: Tensor) -> Tensor:
    """Return rows (samples, num_ws, w_dim); what lies along a direction (count, num_ws * w_dim) is times its factor."""
    flat = rows.flatten(1)
    along = (flat @ directions.t()) * (factors - 1.0)
    return torch.addmm(flat, along, directions).view(rows.shape)


def logarithms(squares: Tensor) -> Tensor:
    """Return the logarithms of units, up to a common number, of entries of the diagonal (rows, w_dim)."""
    beside = _NEIGHBOURS // 2
    longer = functional.pad(squares[:, None], (beside, beside), mode="replicate")
    means = functional.avg_pool1d(longer, _NEIGHBOURS, stride=1)[:, 0]
    found: Tensor = -0.5 * means.clamp(min=(FLOOR * means.max()).clamp(min=1e-30)).log()
    return found
