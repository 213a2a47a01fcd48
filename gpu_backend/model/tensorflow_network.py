"""Contents of a pickled TensorFlow network: its arrays by name, the arguments it was built with."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpu_backend.model.numpy_values import ArrayRecord
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.records import StorageRecord, TensorFlowNetwork, TensorRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR

_COMPONENTS = ("mapping", "synthesis")
_MAX_VARIABLES = 2000
_MAX_ARGUMENTS = 200
_VARIABLE = re.compile(r"[A-Za-z0-9_./]{1,128}", re.ASCII)
_EXPECTED = "a network described the way NVIDIA's TensorFlow tools do"


@dataclass(slots=True)
class TensorFlowParts:
    """A generator and its components.

    Attributes
    ----------
    tensors
        Name -> tensor; tensors of a component are prefixed with its name (``"synthesis/4x4/Conv/weight"``).
    arguments
        What the networks were built with, the components' own where two differ.
    functions
        Component, ``""`` for the generator itself -> name of the function that built it.
    version
        Of the format.
    """

    tensors: dict[str, TensorRecord] = field(default_factory=dict)
    arguments: dict[str, object] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    version: int = 0


def take_apart(generator: TensorFlowNetwork) -> TensorFlowParts:
    """Collect the contents of a generator and its components.

    Raises
    ------
    Unsupported
        If it has a component that no StyleGAN has.
    Refusal
        If something in it is not what such a network holds, or there is more than a network has.
    """
    parts = TensorFlowParts()
    state = _collect(parts, "", generator)
    version = state.get("version")
    parts.version = version if isinstance(version, int) else 0
    components = state.get("components", {})
    if not isinstance(components, dict):
        raise Refusal(_EXPECTED, f"its components are {kind_of(components)}")
    for name in components:
        if name not in _COMPONENTS:
            raise Unsupported(GENERATOR, f"it has a part {shown(str(name))}, which such a network does not have")
    for name in _COMPONENTS:
        if name in components:
            _collect(parts, name, components[name])
    return parts


def _collect(parts: TensorFlowParts, component: str, network: object) -> Mapping[object, object]:
    state = network.state if isinstance(network, TensorFlowNetwork) else None
    if not isinstance(state, dict):
        raise Refusal(_EXPECTED, f"found {kind_of(network if state is None else state)}")
    arguments, variables = state.get("static_kwargs"), state.get("variables")
    if not isinstance(arguments, dict) or len(arguments) > _MAX_ARGUMENTS:
        raise Refusal(_EXPECTED, "its arguments are missing")
    parts.arguments.update((name, value) for name, value in arguments.items() if isinstance(name, str))
    function = state.get("build_func_name")
    parts.functions[component] = function if isinstance(function, str) else ""
    if not isinstance(variables, list) or len(variables) > _MAX_VARIABLES:
        raise Refusal(f"a list of at most {_MAX_VARIABLES} variables in a TensorFlow network", "found another")
    for item in variables:
        if not isinstance(item, tuple) or len(item) != 2:
            raise Refusal("a name and a value for each variable of a TensorFlow network", "found something else")
        name = item[0]
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            raise Refusal("names of letters, digits and slashes in a TensorFlow network", "found another name")
        own = f"{component}/{name}" if component else name
        if own in parts.tensors:
            raise Refusal("variables of different names in a TensorFlow network", f"{shown(own)} comes twice")
        parts.tensors[own] = _tensor(own, item[1])
    return state


def _tensor(name: str, value: object) -> TensorRecord:
    if isinstance(value, ArrayRecord):
        return value.tensor()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return TensorRecord(StorageRecord("f8", 1, 0, struct.pack("<d", value)), 0, (), ())
    raise Refusal(f"numbers in {shown(name)}", f"found {kind_of(value)}")
