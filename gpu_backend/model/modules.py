"""Decomposition of a pickled generator: modules by path, tensors by state-dict name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from gpu_backend.model.dill_names import is_code
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.recognised import PROJECTED, not_run
from gpu_backend.model.records import Foreign, Name, Namespace, Persistent, TensorFlowNetwork, TensorRecord
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR

_MAX_MODULES = 1000
_MAX_TENSORS = 5000
_MAX_DEPTH = 8
_MAX_CHILDREN = 256
"""Maximum table length of a module. Shared tables count for each module."""
CLASS_TABLE = "mapping.embed"
"""Paths of torch's own modules in a StyleGAN-XL; no other supported network has any."""
SUPER_RESOLUTION = "SuperresGenerator"
"""Class of a StyleGAN-XL that was grown from a smaller one."""
_PART = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)


@dataclass(slots=True)
class Modules:
    """The modules of a network.

    Attributes
    ----------
    records
        Path (``"synthesis.b8.conv0"``, the generator itself is ``""``) -> module.
    foreign
        Path -> module of a foreign library.
    tensors
        State-dict name -> tensor.
    """

    records: dict[str, Persistent] = field(default_factory=dict)
    foreign: dict[str, Foreign] = field(default_factory=dict)
    tensors: dict[str, TensorRecord] = field(default_factory=dict)

    def attribute(self, path: str, name: str) -> object:
        """Return an attribute of a module; None if missing."""
        record = self.records.get(path)
        return None if record is None else record.state.get(name)


def take_apart(generator: Persistent) -> Modules:
    """Traverse a generator depth first.

    Raises
    ------
    Refusal
        If a module has unexpected content, or the limits of a network are exceeded.
    """
    _refuse_code(generator)
    modules = Modules()
    waiting: list[tuple[str, Persistent]] = [("", generator)]
    while waiting:
        path, module = waiting.pop()
        modules.records[path] = module
        if len(modules.records) > _MAX_MODULES or path.count(".") >= _MAX_DEPTH:
            raise Refusal(f"a network of at most {_MAX_MODULES} modules", "this one has more, or nests them deeper")
        for kind in ("_parameters", "_buffers"):
            for name, value in _children(module, kind):
                if isinstance(value, TensorRecord):
                    modules.tensors[_joined(path, name)] = value
                elif value is not None:
                    raise Refusal(f"a tensor at {shown(_joined(path, name))}", f"found {kind_of(value)}")
        if len(modules.tensors) > _MAX_TENSORS:
            raise Refusal(f"a network of at most {_MAX_TENSORS} tensors", "this one has more")
        for name, value in _children(module, "_modules"):
            if isinstance(value, Persistent):
                waiting.append((_joined(path, name), value))
            elif isinstance(value, Foreign):
                modules.foreign[_joined(path, name)] = value
            elif value is not None:
                raise Refusal(f"a module at {shown(_joined(path, name))}", f"found {kind_of(value)}")
    return modules


def _refuse_code(generator: Persistent) -> None:
    """Refuse functions and types anywhere in a generator, including hooks and unused attributes."""
    seen: set[int] = set()
    waiting: list[object] = [generator]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Foreign | Name):
            name = value.name if isinstance(value, Foreign) else value
            if is_code(name):
                raise Refusal("a network and nothing that runs", f"its generator holds '{name}' (nothing was run)")
        if isinstance(value, Persistent | Foreign | Namespace | TensorFlowNetwork):
            waiting.append(value.state)
        elif isinstance(value, dict | list | tuple | set):
            waiting.extend(value)
            if isinstance(value, dict):
                waiting.extend(value.values())


def _children(module: Persistent, kind: str) -> list[tuple[str, object]]:
    table = module.state.get(kind)
    if not isinstance(table, dict):
        raise Refusal(GENERATOR, f"a module of class {shown(module.class_name)} lacks its {kind.strip('_')}")
    if len(table) > _MAX_CHILDREN:
        raise Refusal(f"at most {_MAX_CHILDREN} {kind.strip('_')} in a module of a network", f"there are {len(table)}")
    children: list[tuple[str, object]] = []
    for name, value in table.items():
        if not isinstance(name, str) or not _PART.fullmatch(name):
            raise Refusal("names of letters, digits and underscores in a network", "found another name")
        children.append((name, value))
    return children


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def family_of(modules: Modules) -> Literal["stylegan2", "stylegan3", "stylegan_xl"]:
    """Return the family of the network.

    Raises
    ------
    Unsupported
        If it is a network that is recognised but not supported.
    Refusal
        If it is not a generator.
    """
    class_name = modules.records[""].class_name
    if "synthesis.init" in modules.records or "synthesis.init" in modules.foreign:
        raise not_run(PROJECTED)
    if class_name not in ("Generator", SUPER_RESOLUTION):
        raise Refusal(GENERATOR, f"its network is of class {shown(class_name)}")
    for path, foreign in modules.foreign.items():
        if path != CLASS_TABLE:
            raise Unsupported(GENERATOR, f"its part {shown(path)} is of the foreign class {shown(str(foreign.name))}")
    is_xl = CLASS_TABLE in modules.foreign or "mapping.embed_proj" in modules.records
    if is_xl or class_name == SUPER_RESOLUTION:
        if "synthesis.input.freqs" not in modules.tensors:
            raise not_run("the mapping network of a StyleGAN-XL with another synthesis network")
        return "stylegan_xl"
    if "synthesis.input.freqs" in modules.tensors:
        return "stylegan3"
    if "synthesis.b4.const" not in modules.tensors:
        raise Refusal(GENERATOR, "its tensor synthesis.b4.const is missing")
    return "stylegan2"
