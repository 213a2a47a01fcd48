"""The up-convolution as four convolutions of its low-resolution input, one for each parity of row and column.

With n FIR taps f, a k x k weight W and left = 1 + (n + 1) / 2 - (k - 1) zeros before the filter (`up_conv_left_pad`)::

    t[2 i + j] += W[j] x[i]                              transposed convolution, per axis
    z[u] = 2 sum_m f[u + n - 1 - left - m] t[m]          the filter, gain 2 per axis
 => z[2 i + r] = sum_s G[r + n - 1 - left - 2 s] x[i + s],   G = 2 f * W, n + k - 1 long

For the usual 4 taps and 3 x 3 weights G is 6 long, so each parity is a 3 x 3 convolution: four times the products of
the transposed convolution, but no picture between the two.

An odd border (StyleGAN1, `gpu_backend.ops.adain_up_conv`) is t's edge with its sign turned, which the filter meets just
beyond: less of t's first number in the first output, less of its last in the last. That is one tap more for each
parity, of the pixel itself, which is there at one border only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpu_backend.ops.upfirdn import up_conv_left_pad


def axis_taps(taps: int, kernel: int) -> int:
    """Return how many taps each parity has on an axis; where one parity needs fewer, zeros fill up."""
    return (taps + kernel) // 2


def first_shift(parity: int, taps: int, kernel: int) -> int:
    """Return the shift s of a parity's first tap; the others follow one by one."""
    # The largest place in G is n + k - 2: s >= (r - left - k + 1) / 2
    return -(-(parity - up_conv_left_pad(taps, kernel) - kernel + 1) // 2)


def compose(weight: NDArray[np.float32], taps: Sequence[float], *, odd_border: bool = False) -> NDArray[np.float64]:
    """Return the four convolutions.

    Parameters
    ----------
    weight
        (out_channels, in_channels, k, k) as stored: the scatter orientation.
    odd_border
        With 3 x 3 weights and 4 taps: adds the taps of the border, the last of each axis.

    Returns
    -------
    (2, 2, a, a, in_channels, out_channels): row parity, column parity, row tap, column tap; a is `axis_taps`,
    one more with an odd border. The tap at (y, x) of parity (r, q) multiplies
    x[i + first_shift(r) + y, j + first_shift(q) + x].
    """
    channels = weight.shape[1::-1]
    kernel = weight.shape[-1]
    rows = _axis(len(taps), kernel, taps)
    if odd_border:
        border = np.zeros((2, 1, kernel))
        border[0, 0, 0], border[1, 0, -1] = -2.0 * taps[0], -2.0 * taps[-1]
        rows = np.concatenate((rows, border), axis=1)
    # G[i, j] = sum_ab rows[i, a] rows[j, b] W[a, b], for all parities and taps as one product of matrices
    both = np.einsum("rya,qxb->rqyxab", rows, rows)
    stored = weight.transpose(2, 3, 1, 0).astype(np.float64).reshape(kernel * kernel, -1)
    composed: NDArray[np.float64] = both.reshape(-1, kernel * kernel) @ stored
    return composed.reshape(*both.shape[:4], *channels)


def _axis(count: int, kernel: int, taps: Sequence[float]) -> NDArray[np.float64]:
    """Return (2, a, k): the contribution of each weight to each tap of each parity, gain 2 included."""
    filtered = np.zeros((count + kernel - 1, kernel))
    for j in range(kernel):
        filtered[j : j + count, j] = 2.0 * np.asarray(taps, np.float64)
    rows = np.zeros((2, axis_taps(count, kernel), kernel))
    for parity in (0, 1):
        first = first_shift(parity, count, kernel)
        for tap in range(rows.shape[1]):
            place = parity + count - 1 - up_conv_left_pad(count, kernel) - 2 * (first + tap)
            if 0 <= place < len(filtered):
                rows[parity, tap] = filtered[place]
    return rows
