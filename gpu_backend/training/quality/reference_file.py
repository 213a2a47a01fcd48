"""File of the Gaussian that fits the features of real pictures, so that they are drawn once."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError, safe_open

from gpu_backend.errors import ModelFileError
from gpu_backend.training.quality.frechet import Gaussian
from gpu_backend.whole_file import write_readable

KEY = "latent-loom-real-features"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ReferenceFacts:
    """What the statistics depend on.

    Attributes
    ----------
    network
        SHA-256 of the file of the feature network.
    world
        Name of the world.
    seed, batch
        As for `world_batches`: `batch` divides the stream of random factors.
    """

    network: str
    world: str
    count: int
    seed: int
    batch: int
    resolution: int


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a small file, in hexadecimal digits."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def write_reference(gaussian: Gaussian, facts: ReferenceFacts, path: str | os.PathLike[str]) -> None:
    """Write the statistics.

    Raises
    ------
    ModelFileError
        If a number is not finite.
    LoomError
        If the file cannot be written.
    """
    said = json.dumps({"version": VERSION, **asdict(facts)}, sort_keys=True)
    content = safetensors.numpy.save({"mean": gaussian.mean, "covariance": gaussian.covariance}, {KEY: said})
    write_readable(Path(path), content, partial(read_reference, facts=facts))


def read_reference(path: str | os.PathLike[str], facts: ReferenceFacts) -> Gaussian:
    """Read the statistics of these facts.

    Raises
    ------
    ModelFileError
        If it is no such file, damaged, or has other facts.
    """
    path = Path(path)
    try:
        with safe_open(path, framework="np") as file:
            said = json.loads((file.metadata() or {})[KEY])
            gaussian = Gaussian(file.get_tensor("mean"), file.get_tensor("covariance"))
        if said.pop("version") != VERSION:
            raise ValueError("version")
        found = ReferenceFacts(**said)
        size = gaussian.mean.size
        if gaussian.mean.shape != (size,) or gaussian.covariance.shape != (size, size):
            raise ValueError("shape")
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{path.name} was not opened: expected statistics of real pictures written by Latent Loom, "
            "but this is none.",
            str(error),
        ) from error
    for name, value in asdict(facts).items():
        other = getattr(found, name)
        if other != value:
            raise ModelFileError(
                f"{path.name} was not used: expected statistics of real pictures with {name} {value}, not {other}; "
                "name another file, which is then written."
            )
    if not (np.isfinite(gaussian.mean).all() and np.isfinite(gaussian.covariance).all()):
        raise ModelFileError(f"{path.name} was not opened: expected finite numbers, but it holds NaN or infinity.")
    return gaussian
