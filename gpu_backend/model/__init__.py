"""Model file in, named arrays and a spec out: on the host, with NumPy alone, running nothing in the file."""

from __future__ import annotations

from gpu_backend.model.model import Model, ModelFacts, Weights
from gpu_backend.model.spec import LayerSpec, MappingSpec, NetworkSpec

__all__ = ["LayerSpec", "MappingSpec", "Model", "ModelFacts", "NetworkSpec", "Weights"]
