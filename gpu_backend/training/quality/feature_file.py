"""File of the feature network: safetensors, with the network sizes in the header."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open

from gpu_backend.errors import ModelFileError
from gpu_backend.training.quality.feature_network import FeatureNetwork, FeatureShape
from gpu_backend.whole_file import write_readable

KEY = "latent-loom-features"
VERSION = 1
_MAX_SIDE, _MAX_WIDTH, _MAX_STAGES, _MAX_FACTORS = 512, 1024, 8, 256


def write_features(network: FeatureNetwork, skill: dict[str, float], path: str | os.PathLike[str]) -> None:
    """Write a network and its skill: the fraction of each factor's variance explained on held-out pictures.

    Raises
    ------
    ModelFileError
        If a number is not finite, or reading would refuse the file for another reason.
    LoomError
        If the file cannot be written.
    """
    said = {"version": VERSION, "names": list(network.names), "shape": asdict(network.shape), "skill": skill}
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in network.state_dict().items()}
    content = safetensors.torch.save(tensors, {KEY: json.dumps(said, sort_keys=True)})
    write_readable(Path(path), content, read_features)


def read_features(path: str | os.PathLike[str]) -> tuple[FeatureNetwork, dict[str, float]]:
    """Read a network onto the CPU, and its skill by factor.

    Raises
    ------
    ModelFileError
        If it is no such file, or damaged.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # opening a pipe would wait for its other end
        raise ModelFileError(
            f"{path.name} was not opened: expected a network of features, but this is a folder, a pipe or a device."
        )
    try:
        with safe_open(path, framework="pt") as file:
            said = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it cannot be iterated
        if said["version"] != VERSION:
            raise ValueError("version")
        names = tuple(str(name) for name in said["names"])
        network = _empty(names, said["shape"])
        network.load_state_dict(tensors)
        skill = {name: float(said["skill"][name]) for name in names}  # in the order of the outputs
    except FileNotFoundError:
        raise ModelFileError(
            f"{path.name} was not opened: expected a network of features, but there is no file of that name; "
            "make one with 'python -m gpu_backend.training.quality.train_features'."
        ) from None
    except (
        *(SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError),
        *(ArithmeticError, MemoryError),
    ) as error:
        raise ModelFileError(
            f"{path.name} was not opened: expected a network of features written by Latent Loom, but this is none.",
            str(error),
        ) from error
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise ModelFileError(f"{path.name} was not opened: expected finite numbers, but it holds NaN or infinity.")
    return network.eval(), skill


def _empty(names: tuple[str, ...], data: dict[str, Any]) -> FeatureNetwork:
    shape = FeatureShape(
        side=int(data["side"]),
        widths=tuple(int(width) for width in data["widths"]),
        squeezed=int(data["squeezed"]),
        features=int(data["features"]),
    )
    sizes = (*shape.widths, shape.squeezed, shape.features)
    if not 1 <= len(names) <= _MAX_FACTORS or not 2 <= len(shape.widths) <= _MAX_STAGES:
        raise ValueError("how many")
    if not 8 <= shape.side <= _MAX_SIDE or not all(1 <= size <= _MAX_WIDTH for size in sizes):
        raise ValueError("how large")
    return FeatureNetwork(names, shape, torch.zeros(len(names)), torch.ones(len(names)))
