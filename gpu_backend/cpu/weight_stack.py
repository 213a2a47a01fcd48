"""Products of many pairs of matrices whose second factors are fixed weights.

A plain batched product packs its weights at every call. That costs a sixth of the time where the weights do not fit the
cache; there, oneDNN's packed linear layers are used, which cost 10 us more for each product. Milliseconds for 36
products on one AVX-512 core, batched / packed:

    64 x 512 x 512  15.6 / 12.9     64 x 512 x 256  12.0 / 6.9     16 x 512 x 256  3.1 / 2.5
    64 x 256 x 256  4.1 / 3.9     64 x 256 x 128  1.9 / 2.0     64 x 128 x 128  0.9 / 1.2

Where torch splits each operation over threads, a batched product is faster: its threads meet once, not 36 times.
On 16 other cores of that kind, with 8 threads:

    16 x 512 x 512  0.6 / 1.9     64 x 512 x 512  1.6 / 2.9     256 x 256 x 256  1.9 / 2.6
"""

from __future__ import annotations

import torch
from torch import Tensor

from gpu_backend.cpu.convolution import has_packed_convolutions
from gpu_backend.cpu.team import Team

MIN_PACKED_SIZE = 1 << 16
"""Minimum size of a matrix that is packed, in elements."""


class WeightStack:
    """Fixed matrices, packed if they are large and one thread multiplies them.

    Parameters
    ----------
    weights
        (count, in, out).
    rows
        Usual number of rows of the first factors; others are valid, too.
    team
        Its lanes divide the matrices to pack them, and multiply; None for this thread.
    """

    def __init__(self, weights: Tensor, rows: int, team: Team | None = None) -> None:
        self.inputs, self.outputs = weights.shape[1:]
        self._weights: Tensor | None = weights
        self._parts: dict[tuple[int, int], Tensor] = {}
        self._packed: list[Tensor] = []
        is_large = self.inputs * self.outputs >= MIN_PACKED_SIZE
        if is_large and (team is None or team.width == 1) and has_packed_products():
            self._packed = [weights] * weights.shape[0]
            self._weights = None

            def pack(lane: int) -> None:
                for index in range(lane, weights.shape[0], 1 if team is None else team.lanes):
                    self._packed[index] = torch.ops.mkldnn._reorder_linear_weight(weights[index].t(), rows)

            if team is None:
                pack(0)
            else:
                team.run(pack)

    @property
    def nbytes(self) -> int:
        """Memory in bytes."""
        tensors = self._packed if self._weights is None else [self._weights]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)

    def multiply(self, first: int, x: Tensor, out: Tensor) -> None:
        """Write out[i] = x[i] W[first + i]; `x` is (n, rows, in), `out` (n, rows, out), contiguous."""
        if self._weights is not None:
            end = first + x.shape[0]
            part = self._parts.get((first, end))
            if part is None:
                part = self._parts[first, end] = self._weights[first:end]
            torch.bmm(x, part, out=out)
            return
        linear = torch.ops.mkldnn._linear_pointwise
        products = [
            linear(factor, weight, None, "none", [], "")
            for factor, weight in zip(x, self._packed[first:], strict=False)
        ]
        torch.cat(products, out=out.view(-1, self.outputs))


def has_packed_products() -> bool:
    """Return whether this torch has linear layers with packed weights."""
    names = ("_reorder_linear_weight", "_linear_pointwise")
    return has_packed_convolutions() and all(hasattr(torch.ops.mkldnn, name) for name in names)
