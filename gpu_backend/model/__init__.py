"""Model file in, named arrays and a spec out: on the host, with NumPy alone, running nothing in the file.

Each name is imported from its module on first use, so that a type does not import every reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_backend.lazy_names import lazy_names

if TYPE_CHECKING:
    from gpu_backend.model.direction_file import (
        direction_path as direction_path,
        read_directions as read_directions,
        write_directions as write_directions,
    )
    from gpu_backend.model.model import Model as Model, Weights as Weights
    from gpu_backend.model.model_facts import LayerFacts as LayerFacts, ModelFacts as ModelFacts
    from gpu_backend.model.named_directions import (
        NamedDirections as NamedDirections,
        concatenated as concatenated,
        joined_directions as joined_directions,
        selected as selected,
    )
    from gpu_backend.model.reading import inspect_model as inspect_model, read_model as read_model
    from gpu_backend.model.safetensors_file import write_safetensors as write_safetensors
    from gpu_backend.model.spec import (
        LayerSpec as LayerSpec,
        MappingSpec as MappingSpec,
        NetworkSpec as NetworkSpec,
        StyleGAN2Spec as StyleGAN2Spec,
        StyleGAN3Spec as StyleGAN3Spec,
    )

_HOMES = {
    "direction_file": (
        "direction_path",
        "read_directions",
        "write_directions",
    ),
    "model": (
        "Model",
        "Weights",
    ),
    "model_facts": (
        "LayerFacts",
        "ModelFacts",
    ),
    "named_directions": ("NamedDirections", "concatenated", "joined_directions", "selected"),
    "reading": (
        "inspect_model",
        "read_model",
    ),
    "safetensors_file": ("write_safetensors",),
    "spec": (
        "LayerSpec",
        "MappingSpec",
        "NetworkSpec",
        "StyleGAN2Spec",
        "StyleGAN3Spec",
    ),
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

__all__ = sorted(name for names in _HOMES.values() for name in names)  # noqa: PLE0605 - _HOMES lists them
