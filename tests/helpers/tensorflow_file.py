"""Writes networks as NVIDIA's TensorFlow tools pickle them, by Python's own pickler."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tests.helpers.networks import StyleGAN2Model
from tests.helpers.tool_names import Tensors, tensorflow_variables

SOURCE = "open('PWNED', 'w').close()\n" + "# source\n" * 1000
"""The source code in such a file, long enough for the reader to leave it in place."""


class Network:
    """Stands for the tools' class; only its name gets into the file."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def __getstate__(self) -> dict[str, Any]:
        return self._state


Network.__module__ = "dnnlib.tflib.network"


def network(
    name: str,
    function: str,
    variables: Mapping[str, Any],
    arguments: Mapping[str, Any],
    components: Mapping[str, Network] | None = None,
    *,
    version: int = 4,
) -> Network:
    """A network; NumPy scalars stand for variables without dimensions, as TensorFlow gives them."""
    values = [
        (key, np.float32(value) if isinstance(value, np.ndarray) and not value.ndim else value)
        for key, value in variables.items()
    ]
    state = {
        "version": version,
        "name": name,
        "static_kwargs": dict(arguments),
        "components": dict(components or {}),
        "build_module_src": SOURCE,
        "build_func_name": function,
        "variables": values,
    }
    return Network(state)


def generator(tensors: Tensors, arguments: Mapping[str, Any], *, version: int = 4, is_grown: bool = False) -> Network:
    """A generator whose tensors have the names of its components before them."""
    parts: dict[str, dict[str, Any]] = {"": {"lod": np.float32(0)}, "mapping": {}, "synthesis": {}}
    for key, value in tensors.items():
        part, _, name = key.partition("/")
        parts[part if part in parts else ""][name if part in parts else key] = np.ascontiguousarray(value).reshape(
            value.shape
        )
    function = "G_synthesis" if version >= 5 else f"G_synthesis_stylegan{'_revised' if is_grown else '2'}"
    components = {
        "synthesis": network("G_synthesis", function, parts["synthesis"], arguments, version=version),
        "mapping": network("G_mapping", "G_mapping", parts["mapping"], arguments, version=version),
    }
    return network("Gs", "G_main", parts[""], arguments, components, version=version)


def arguments_of(model: StyleGAN2Model) -> dict[str, Any]:
    """The arguments of the tools for a model."""
    spec, mapping = model.spec, model.spec.mapping
    layers = [layer for layer in spec.layers if layer.kind == "conv"]
    halves = [layer.resolution for layer in layers if layer.use_fp16]
    return {
        "resolution": spec.resolution,
        "num_channels": spec.img_channels,
        "label_size": mapping.c_dim,
        "latent_size": mapping.z_dim,
        "dlatent_size": mapping.w_dim,
        "mapping_layers": len(mapping.widths),
        "mapping_lrmul": mapping.lr_multiplier,
        "mapping_nonlinearity": mapping.activation,
        "architecture": spec.architecture,
        "nonlinearity": layers[0].activation,
        "resample_kernel": [1, 3, 3, 1],
        "conv_clamp": layers[0].conv_clamp,
        "num_fp16_res": len(halves),
        "truncation_psi": 0.5,
    }


def write_tensorflow(
    path: Path,
    model: StyleGAN2Model,
    *,
    protocol: int = 4,
    version: int = 4,
    is_grown: bool = False,
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
    arguments = {**arguments_of(model), **(changes or {})}
    arguments = {name: value for name, value in arguments.items() if name not in (changes or {}) or value is not None}
    if is_grown:
        del arguments["architecture"]
    tensors = tensorflow_variables(model, is_grown=is_grown) if tensors is None else tensors
    average = generator(tensors, arguments, version=version, is_grown=is_grown)
    other = network("D", "D_stylegan2", {"lod": np.float32(0)}, {}, version=version)
    path.write_bytes(pickled((other, other, average), protocol))
    return path


def pickled(value: Any, protocol: int = 4) -> bytes:
    """Pickle a value with networks in it."""
    with _tools():
        return pickle.dumps(value, protocol)


@contextmanager
def _tools() -> Iterator[None]:
    """Make the class importable under its name for the pickler."""
    names = ("dnnlib", "dnnlib.tflib", "dnnlib.tflib.network")
    for name in names:
        sys.modules[name] = ModuleType(name)
    sys.modules[names[-1]].Network = Network  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
