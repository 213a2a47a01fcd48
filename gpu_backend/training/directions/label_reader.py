"""Prediction of labels from pictures: a network trained on them, or a regression on features of a given network."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.training.directions.labelled_pictures import LabelledPictures
from gpu_backend.training.directions.probe import ReadFactors
from gpu_backend.training.quality.feature_network import spread
from gpu_backend.training.quality.feature_training import Batch, FeatureTraining, new_network, skill, train
from gpu_backend.training.quality.reading import FeatureReader

_CHECKED = 5
"""Every fifth picture is held out to measure the skill."""
_RIDGE = 1e-2


def train_label_reader(
    labelled: LabelledPictures,
    training: FeatureTraining,
    device: torch.device,
    progress: Callable[[int, float], None] | None = None,
) -> tuple[ReadFactors, dict[str, float]]:
    """Train a network of features on labelled pictures; return what reads labels, and its skill at each."""
    values = torch.from_numpy(labelled.values)
    checked = torch.arange(len(values)) % _CHECKED == _CHECKED - 1
    network = new_network(labelled.names, training, values, device)
    train(network, _drawn(values[~checked], labelled.pictures[~checked], training, device), training, progress)
    shares = skill(network, iter([(values[checked], _floats(labelled.pictures[checked], device))]))
    return FeatureReader(network, device).factors, shares


def fit_label_reader(labelled: LabelledPictures, reader: FeatureReader) -> tuple[ReadFactors, dict[str, float]]:
    """Fit labels to the features of a network by least squares with a ridge; return as `train_label_reader` does."""
    checked = np.arange(len(labelled.values)) % _CHECKED == _CHECKED - 1
    mean, deviation = (part.numpy() for part in spread(torch.from_numpy(labelled.values)))
    wanted = (labelled.values - mean) / deviation
    features = reader.features(_floats(labelled.pictures, torch.device("cpu")))
    middle = features[~checked].mean(axis=0)
    centred = features - middle
    gram = centred[~checked].T @ centred[~checked]
    gram = gram + _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    offset = wanted[~checked].mean(axis=0)
    slopes = np.linalg.solve(gram, centred[~checked].T @ (wanted[~checked] - offset))

    def read(pictures: NDArray[np.float32]) -> NDArray[np.float64]:
        found: NDArray[np.float64] = (reader.features(pictures) - middle) @ slopes + offset
        return found

    errors = centred[checked] @ slopes + offset - wanted[checked]
    shares = 1.0 - (errors**2).mean(axis=0) / np.maximum(wanted[checked].var(axis=0), 1e-12)
    return read, {name: float(share) for name, share in zip(labelled.names, shares, strict=True)}


def _drawn(values: Tensor, pictures: Tensor, training: FeatureTraining, device: torch.device) -> Iterator[Batch]:
    """Yield batches drawn at random with replacement, the same ones for the same seed."""
    generator = torch.Generator().manual_seed(training.seed)
    for _ in range(training.steps):
        chosen = torch.randint(len(values), (training.batch,), generator=generator)
        yield values[chosen], _floats(pictures[chosen], device)


def _floats(pictures: Tensor, device: torch.device) -> Tensor:
    return pictures.to(device).float() / 127.5 - 1.0
