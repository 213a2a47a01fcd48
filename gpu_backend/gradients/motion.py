"""How a handle moves towards its target: hops of a template, each as long as the features allow.

After FreeDrag (Ling et al. 2024, sections 3.2 and 3.3): a handle has a template of features T. The optimiser brings the
features at the handle's position h close to T. When they are close, T takes over a part of what is there, and h hops
towards the target, to where the features differ from T by a set amount (a line search). When they move apart, h goes
back to the likeliest place on its way (backtracking), and T stays.

All lengths are in samples of the features, all differences in units of their scale.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gpu_backend.gradients.sampling import patch_offsets, sample

_EXPECTED = 0.6
"""Difference from the template that a hop aims at."""
REACHED = 0.5 * _EXPECTED
"""Difference below which the template counts as reached."""
_PATIENCE = 4
"""Steps for one hop, before its result is judged."""
CLOSE = 0.5 * REACHED
"""Difference at which a handle at its target needs no more steps."""
REST_STEPS = 8
"""Steps at the target after which a reached template is as close as it gets."""
_LONGEST_HOP = 2.0
_CANDIDATES = 16


def is_resting(rested: float, difference: float) -> bool:
    """Return whether a handle that was at its target for some steps has done what it can there."""
    return rested >= _PATIENCE or (rested > 0 and difference <= REACHED)


class HandleMotion:
    """One handle.

    Parameters
    ----------
    features
        (1, channels, side, side) at the start.
    source, target
        (2,): x, y in samples.
    radius
        Of the patch, in samples.
    scale
        Of the features, from `feature_scale`.
    """

    def __init__(self, features: Tensor, source: Tensor, target: Tensor, radius: int, scale: float) -> None:
        self.position = source
        self.target = target
        self._offsets = patch_offsets(radius, source)
        self._scale = scale
        self.template = sample(features, source + self._offsets)
        self._trail = [source]
        self._steps = self._rested = 0
        self._first = math.inf
        self.difference = 0.0
        """Of the features at the position from the template, at the last `advance`."""

    @property
    def left(self) -> tuple[float, float]:
        """What is left of the way from the position to the target, (x, y) in samples."""
        x, y = (self.target - self.position).tolist()
        return x, y

    @property
    def has_arrived(self) -> bool:
        """Whether the handle is at its target, with the features of the template or as near as they come."""
        enough = REACHED if self._rested >= REST_STEPS else CLOSE
        return self._rested > 0 and self.difference <= enough

    @property
    def is_resting(self) -> bool:
        """Whether it is at its target, with the features of its template, or after some steps without."""
        return is_resting(self._rested, self.difference)

    def aim(self, target: Tensor) -> None:
        """Go to another target (2,) from here."""
        self.target = target
        self._rested = self._steps = 0

    @torch.no_grad()
    def hold(self, features: Tensor, position: Tensor) -> None:
        """Take hold of what the features have at another place (2,)."""
        self.position = position
        self.template = sample(features, position + self._offsets)
        self._trail.append(position)
        self._steps = self._rested = 0

    def loss(self, features: Tensor) -> Tensor:
        """Return the mean absolute difference between the features at the position and the template."""
        found = sample(features, self.position + self._offsets)
        return (found - self.template).abs().mean() / self._scale

    def residual(self, features: Tensor) -> Tensor:
        """Return the differences whose squares Gauss-Newton sums, (n,); their mean square is about `loss`^2."""
        found = sample(features, self.position + self._offsets)
        return ((found - self.template) / (self._scale * math.sqrt(self.template.numel()))).reshape(-1)

    @torch.no_grad()
    def advance(self, features: Tensor) -> None:
        """Judge the features of the present latent, and hop on, stay or go back."""
        self.difference = float(self.loss(features))
        self._rested = self._rested + 1 if math.hypot(*self.left) < 1e-3 else 0
        if self._rested and self.difference <= REACHED:
            return  # the template stays: it would take over what is still missing
        self._steps += 1
        if self._steps == 1:
            self._first = self.difference
        if self.difference <= REACHED:
            self._adapt(features)
            self._hop(features)
        elif self._steps >= _PATIENCE:
            if self.difference > self._first:
                self._go_back(features)
            else:
                self._adapt(features)
            self._steps = 0

    def _adapt(self, features: Tensor) -> None:
        """Move the template towards what is at the position: by half at no difference, by little at a large one."""
        share = 1.0 / (1.0 + math.exp(8.0 * self.difference / _EXPECTED - 2.0)) * 0.5
        found = sample(features, self.position + self._offsets)
        self.template = self.template + share * (found - self.template)

    def _hop(self, features: Tensor) -> None:
        """Go towards the target, to where the features differ from the template by the expected amount."""
        self._steps = 0
        way = self.target - self.position
        length = float(way.norm())
        if length < 1e-3:
            return
        longest = min(length, _LONGEST_HOP)
        shares = torch.arange(1, _CANDIDATES + 1).to(way) / _CANDIDATES
        places = self.position + (longest / length) * shares[:, None] * way
        differences = self._differences(features, places)
        # The first place that differs enough; content further on that looks alike is not what was taken hold of.
        beyond = (differences >= _EXPECTED).nonzero()
        chosen = int(beyond[0]) if len(beyond) else _CANDIDATES - 1
        self._trail.append(self.position)
        self.position = self.target.clone() if chosen == _CANDIDATES - 1 and longest == length else places[chosen]

    def _go_back(self, features: Tensor) -> None:
        """Move to the point on the last segments of the path whose features are nearest to the template."""
        before = self._trail[-1]
        shares = torch.linspace(0, 1, _CANDIDATES).to(before)
        places = before + shares[:, None] * (self.position - before)
        self.position = places[int(self._differences(features, places).argmin())]

    def _differences(self, features: Tensor, places: Tensor) -> Tensor:
        """Return the mean absolute difference from the template at each place (n, 2), (n,)."""
        patches = (places[:, None] + self._offsets).reshape(-1, 2)
        found = sample(features, patches).reshape(len(places), *self.template.shape)
        return (found - self.template).abs().mean((1, 2)) / self._scale
