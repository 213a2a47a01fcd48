"""The colours: ten palettes set by hand, and the few axes along which they differ."""

from __future__ import annotations

import numpy as np

from bundled_model.layers import Array

PARTS = ("top", "horizon", "ring", "sun", "far", "second", "third", "near")
"""Sky at the top and at the horizon, the sun's ring and disc, four hills."""

AXES = 3

_PALETTES = (
    "24506b 93b9c8 b9cdca fff3d3 8a9fb6 5f7893 3c546d 1d2e42",  # blue hour
    "3d2a5c f0a268 f7bf7f ffe9b8 b0667f 7f476d 523258 281d3d",  # ember
    "155058 a8d8bd c6e3c5 fdf6d6 6eae9f 428379 265f5e 103a41",  # sea
    "7585bd f6c8c2 f9d7c8 fff7e8 c69ab1 96719a 665080 38325a",  # rose
    "2f6288 f5d698 f9e2b0 fffae2 d79d66 b27148 834d39 4a2a2b",  # desert
    "0c1430 36537d 57739b ecf1fb 304669 233552 17253d 0b1527",  # night
    "7a2f4f f28b66 f8ab7c ffe8bd a8485c 7a3452 4f2748 26193a",  # crimson
    "4a8fb0 d8ecec e6f2e6 fffdf0 a3c4c4 6fa0a4 467a84 235260",  # noon
    "4b3f7a c7a6d8 dcbede fff0e4 8f7dba 665a9c 443d78 241f4c",  # violet
    "35604a e3d58c eee2a6 fff9da 9bb06c 6d8c55 456743 213f31",  # moss
)


def palettes() -> Array:
    """Return (palettes, parts, 3) in -1 .. 1, the network's own range."""
    rows = [[[int(code[i : i + 2], 16) for i in (0, 2, 4)] for code in line.split()] for line in _PALETTES]
    return np.array(rows, dtype=np.float64) / 127.5 - 1.0


def palette_axes() -> tuple[Array, Array]:
    """Return the mean palette (parts, 3) and `AXES` axes (AXES, parts, 3), each one standard deviation long."""
    samples = palettes()
    mean = samples.mean(axis=0)
    offsets = (samples - mean).reshape(len(samples), -1)
    _, lengths, axes = np.linalg.svd(offsets, full_matrices=False)
    axes = axes[:AXES] * (lengths[:AXES] / np.sqrt(len(samples)))[:, None]
    # A singular vector has no sign of its own; brighter is chosen to be the positive end.
    axes *= np.where(axes.sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
    return mean, axes.reshape(AXES, *mean.shape)
