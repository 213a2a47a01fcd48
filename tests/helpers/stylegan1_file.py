"""Writes StyleGAN1s as NVIDIA's TensorFlow tools pickle them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpu_backend import Model
from gpu_backend.model.spec import StyleGAN1Spec
from tests.helpers.stylegan1_names import tensorflow1_variables
from tests.helpers.tensorflow_file import network, pickled
from tests.helpers.tool_names import Tensors


def arguments1_of(model: Model) -> dict[str, Any]:
    """The arguments of the tools for a model."""
    spec, mapping = model.spec, model.spec.mapping
    assert isinstance(spec, StyleGAN1Spec)
    return {
        "resolution": spec.resolution,
        "num_channels": spec.img_channels,
        "label_size": mapping.c_dim,
        "latent_size": mapping.z_dim,
        "dlatent_size": mapping.w_dim,
        "dlatent_broadcast": spec.num_ws,
        "mapping_layers": len(mapping.widths),
        "mapping_lrmul": mapping.lr_multiplier,
        "mapping_nonlinearity": mapping.activation,
        "nonlinearity": spec.layers[0].activation,
        "truncation_psi": 0.7,
        "truncation_cutoff": 8,
        "structure": "linear",
    }


def write_stylegan1(
    path: Path,
    model: Model,
    *,
    protocol: int = 4,
    changes: Mapping[str, Any] | None = None,
    tensors: Tensors | None = None,
) -> Path:
    """Write (G, D, Gs) and return the path.

    Parameters
    ----------
    changes
        Arguments to set, or to leave out where None stands for them.
    tensors
        In place of the model's own.
    """
    arguments = {**arguments1_of(model), **(changes or {})}
    arguments = {name: value for name, value in arguments.items() if name not in (changes or {}) or value is not None}
    parts: dict[str, dict[str, Any]] = {"": {"lod": np.float32(0)}, "mapping": {}, "synthesis": {}}
    for key, value in (tensorflow1_variables(model) if tensors is None else tensors).items():
        part, _, name = key.partition("/")
        own = np.ascontiguousarray(value).reshape(value.shape) if isinstance(value, np.ndarray) else value
        parts[part if part in parts else ""][name if part in parts else key] = own
    components = {
        part: network(f"G_{part}", f"G_{part}", parts[part], arguments, version=3) for part in ("synthesis", "mapping")
    }
    average = network("Gs", "G_style", parts[""], arguments, components, version=3)
    other = network("D", "D_basic", {"lod": np.float32(0)}, {}, version=3)
    path.write_bytes(pickled((other, other, average), protocol))
    return path
