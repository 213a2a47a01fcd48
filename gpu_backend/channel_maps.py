"""Channels of a layer as small grey pictures, and clusters of channels that show the same parts of the picture."""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from gpu_backend.quick_dataclass import dataclass

MAP_PX = 32
"""Largest side of a channel's picture."""

CLUSTERS = 6

_POOLED = 16
"""Side at which channels are compared."""

_ROUNDS = 30


@dataclass(frozen=True, slots=True, eq=False)
class ChannelMaps:
    """Activations of a layer.

    Attributes
    ----------
    model_id, layer
        Of which model and layer.
    maps
        (channels, side, side) uint8: 128 is 0, a channel's largest magnitude black or white.
    clusters
        (channels,) cluster of each channel; cluster 0 has the most channels.
    cluster_maps
        (clusters, side, side) uint8: mean magnitude of a cluster's channels, 0 to its largest.
    """

    model_id: str
    layer: str
    maps: NDArray[np.uint8] = field(repr=False)
    clusters: NDArray[np.int64] = field(repr=False)
    cluster_maps: NDArray[np.uint8] = field(repr=False)

    def channels_of(self, cluster: int) -> tuple[int, ...]:
        """Return the channels of a cluster."""
        return tuple(int(channel) for channel in np.flatnonzero(self.clusters == cluster))


def channel_maps(model_id: str, layer: str, values: NDArray[np.float32], clusters: int = CLUSTERS) -> ChannelMaps:
    """Return the pictures and clusters of a layer's output, (channels, side, side)."""
    small = pooled(values, MAP_PX)
    largest = np.abs(small).max((1, 2), keepdims=True)
    maps = np.rint(128 + 127 * small / np.maximum(largest, 1e-12))
    labels = cluster_channels(values, clusters)
    count = int(labels.max()) + 1
    magnitude = np.abs(small) / np.maximum(largest, 1e-12)
    means = np.stack([magnitude[labels == index].mean(0) for index in range(count)])
    means = 255 * means / np.maximum(means.max((1, 2), keepdims=True), 1e-12)
    return ChannelMaps(model_id, layer, maps.astype(np.uint8), labels, np.rint(means).astype(np.uint8))


def cluster_channels(values: NDArray[np.float32], clusters: int) -> NDArray[np.int64]:
    """Return the cluster of each channel, (channels,), by k-means on where the channels are active.

    A channel is described by its magnitude over the picture at unit length, so that strong and weak channels with the
    same place are alike (Broad et al. 2021 cluster activation maps likewise). Centres start far apart: each next one is
    the channel that is farthest from those before, so that equal activations give equal clusters.
    """
    features = pooled(np.abs(values), _POOLED).reshape(len(values), -1).astype(np.float64)
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    centres = _far_apart(features, min(clusters, len(features)))
    labels = np.zeros(len(features), np.int64)
    for round_ in range(_ROUNDS):
        # Of unit vectors the largest product is the smallest distance.
        nearest = (features @ centres.T - 0.5 * np.square(centres).sum(1)).argmax(1)
        if round_ and np.array_equal(nearest, labels):
            break
        labels = nearest
        for index in range(len(centres)):
            if (labels == index).any():
                centres[index] = features[labels == index].mean(0)
    used, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    place = np.empty(len(used), np.int64)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(used))
    return place[labels]


def pooled(values: NDArray[np.float32], side: int) -> NDArray[np.float32]:
    """Return (channels, height, width) as means of at most `side` x `side` parts of nearly equal size."""
    edges = [np.linspace(0, size, min(side, size) + 1).astype(np.intp) for size in values.shape[1:]]
    for axis, edge in enumerate(edges, 1):
        shape = [1, 1, 1]
        shape[axis] = -1
        values = (np.add.reduceat(values, edge[:-1], axis) / np.diff(edge).reshape(shape)).astype(np.float32)
    return values


def _far_apart(features: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    chosen = [int(np.square(features - features.mean(0)).sum(1).argmin())]
    nearest = np.full(len(features), np.inf)
    while len(chosen) < count:
        nearest = np.minimum(nearest, np.square(features - features[chosen[-1]]).sum(1))
        chosen.append(int(nearest.argmax()))
    return features[chosen].copy()
