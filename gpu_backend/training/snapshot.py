"""Snapshots: the generator as a model file, which the explorer can open while training runs."""

from __future__ import annotations

from pathlib import Path

from gpu_backend.model import Model, write_safetensors
from gpu_backend.model.facts import FileFacts, facts_of
from gpu_backend.model.stylegan2 import tensor_shapes
from gpu_backend.training.networks.generator import Generator

FLAVOUR = "Latent Loom"


def model_of(generator: Generator, name: str) -> Model:
    """Return a copy of the generator's weights as a model; it has no file yet, so the name is its id."""
    state = generator.state_dict()
    weights = {
        key: state[key].detach().float().cpu().contiguous().clone().numpy() for key in tensor_shapes(generator.spec)
    }
    file = FileFacts(Path(name), sum(array.nbytes for array in weights.values()), name)
    return Model(generator.spec, weights, facts_of(generator.spec, file, container="training", flavour=FLAVOUR))


def write_snapshot(folder: Path, generator: Generator, pictures_seen: int) -> Path:
    """Write ``network-<pictures seen>.safetensors`` in float32. Raises LoomError if the system refuses."""
    path = folder / f"network-{pictures_seen:09d}.safetensors"
    write_safetensors(model_of(generator, path.stem), path)
    return path
