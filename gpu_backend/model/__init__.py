"""Model file in, named arrays and a spec out: on the host, with NumPy alone, running nothing in the file."""

from __future__ import annotations

from gpu_backend.model.direction_file import direction_path, read_directions, write_directions
from gpu_backend.model.model import LayerFacts, Model, ModelFacts, Weights
from gpu_backend.model.named_directions import NamedDirections
from gpu_backend.model.reading import inspect_model, read_model
from gpu_backend.model.safetensors_file import write_safetensors
from gpu_backend.model.spec import LayerSpec, MappingSpec, NetworkSpec, StyleGAN2Spec, StyleGAN3Spec

__all__ = [
    "LayerFacts",
    "LayerSpec",
    "MappingSpec",
    "Model",
    "ModelFacts",
    "NamedDirections",
    "NetworkSpec",
    "StyleGAN2Spec",
    "StyleGAN3Spec",
    "Weights",
    "direction_path",
    "inspect_model",
    "read_directions",
    "read_model",
    "write_directions",
    "write_safetensors",
]
