"""Bent channels: channels at rest are copied; others with the same matrix are gathered from four corners together."""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.kernel import Kernel, Site
from gpu_backend.cpu.team import spans
from gpu_backend.ops.bend_channels import AT_REST, BendChannels
from gpu_backend.plan.plan import Step
from gpu_backend.quick_dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """Channels that share a matrix: where each pixel's four corners are, (4, pixels), and their weights."""

    channels: Tensor
    corners: Tensor
    shares: Tensor


class BendChannelsKernel(Kernel):
    """Kernel of `gpu_backend.ops.bend_channels`."""

    def __init__(self, step: Step, site: Site) -> None:
        attributes: BendChannels = step.attributes
        self._side, self._channels = attributes.resolution, attributes.channels
        self._x, self._table = (site.buffers[name] for name in step.inputs)
        self._out = site.buffers[step.outputs[0]]
        self._team, self._rows = site.team, spans(self._side, site.team.lanes)
        self._known = torch.full_like(self._table, float("nan"))
        """The table that the fields below were made from."""
        self._moved: tuple[_Moved, ...] = ()
        self._threshold: Tensor | None = None
        self._gain: Tensor | None = None

    def run(self) -> None:
        if not torch.equal(self._table, self._known):
            self._learn()
        self._team.run(self._lane)

    def layer_output(self) -> Tensor:
        return self._out.permute(0, 3, 1, 2)

    def _learn(self) -> None:
        """Derive corners and factors from the table; during a drag it is another one for every picture."""
        self._known.copy_(self._table)
        matrices, threshold, gain = self._known[:, :6], self._known[:, 6], self._known[:, 7]
        found, which = torch.unique(matrices, dim=0, return_inverse=True)
        at_rest = torch.tensor(AT_REST[:6])
        self._moved = tuple(
            _Moved(torch.nonzero(which == index)[:, 0], *_corners(matrix, self._side))
            for index, matrix in enumerate(found)
            if not torch.equal(matrix, at_rest)
        )
        self._threshold = threshold.clone() if bool((threshold > 0).any()) else None
        self._gain = gain.clone() if bool((gain != 1).any()) else None

    def _lane(self, lane: int) -> None:
        first, end = self._rows[lane]
        if first == end:
            return
        for sample in range(self._x.shape[0]):
            out = self._out[sample, first:end]
            out.copy_(self._x[sample, first:end])
            for moved in self._moved:
                out[..., moved.channels] = self._gathered(sample, moved, slice(first * self._side, end * self._side))
            if self._threshold is not None:
                out.mul_(out.abs() >= self._threshold)
            if self._gain is not None:
                out.mul_(self._gain)

    def _gathered(self, sample: int, moved: _Moved, pixels: slice) -> Tensor:
        """Return the moved channels of some pixels: (rows, side, channels)."""
        source = self._x[sample].view(self._side**2, self._channels)[:, moved.channels]
        total = torch.zeros(pixels.stop - pixels.start, len(moved.channels))
        for corner, share in zip(moved.corners, moved.shares, strict=True):
            total.addcmul_(source.index_select(0, corner[pixels]), share[pixels, None])
        return total.view(-1, self._side, len(moved.channels))


def _corners(matrix: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Return the indices of the four pixels around each source position, (4, pixels), and their bilinear weights."""
    a, b, c, d, e, f = matrix.double().tolist()
    centres = (torch.arange(side, dtype=torch.float64) + 0.5) / side - 0.5
    u, v = centres[None, :], centres[:, None]
    columns, right = _split((a * u + b * v + c).expand(side, side), side)
    rows, low = _split((d * u + e * v + f).expand(side, side), side)
    next_column, next_row = (columns + 1).clamp(max=side - 1), (rows + 1).clamp(max=side - 1)
    corners = [
        rows * side + columns,
        rows * side + next_column,
        next_row * side + columns,
        next_row * side + next_column,
    ]
    shares = [(1 - low) * (1 - right), (1 - low) * right, low * (1 - right), low * right]
    return torch.stack(corners).view(4, -1), torch.stack(shares).float().view(4, -1)


def _split(place: Tensor, side: int) -> tuple[Tensor, Tensor]:
    """Return the pixel at or before a place, in widths from the centre and mirrored at the edges, and the rest."""
    offset = ((place + 0.5) * side).remainder(2 * side)
    inside = torch.where(offset > side, 2 * side - offset, offset) - 0.5
    inside = inside.clamp(0, side - 1)
    whole = inside.floor()
    return whole.long(), inside - whole
