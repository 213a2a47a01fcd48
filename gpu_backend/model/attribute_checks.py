"""Checks of the attributes of a pickled network's modules against its tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast, get_args

from gpu_backend.model.modules import Modules
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR
from gpu_backend.model.spec import Activation, NetworkSpec

Expected = Iterable[tuple[str, str, object]]
"""(module path, attribute, value) triples."""

Roles = Iterable[tuple[re.Pattern[str], str]]
"""(module paths, class) pairs, the first that matches counts."""

MAPPING_ROLES = (
    (re.compile(r""), "Generator"),
    (re.compile(r"mapping"), "MappingNetwork"),
    (re.compile(r"mapping\.(embed|fc\d+)"), "FullyConnectedLayer"),
)

MAPPING_ATTRIBUTES = {
    "Generator": {"z_dim", "c_dim", "w_dim", "img_resolution", "img_channels", "num_ws"},
    "MappingNetwork": {"z_dim", "c_dim", "w_dim", "num_ws", "num_layers", "w_avg_beta", "embed"},
    "FullyConnectedLayer": {"in_features", "out_features", "activation", "weight_gain", "bias_gain"},
}


def check_roles(modules: Modules, roles: Roles, known: Mapping[str, set[str]]) -> tuple[str, ...]:
    """Check the class of each module; return warnings about unknown attributes.

    Parameters
    ----------
    known
        Class -> known plain attributes. Others may indicate a modified network.

    Raises
    ------
    Unsupported
        If a module is unexpected or of another class.
    """
    unknown: set[str] = set()
    for path, record in modules.records.items():
        role = next((name for pattern, name in roles if pattern.fullmatch(path)), None)
        if role is None:
            raise Unsupported(GENERATOR, f"it has a part {shown(path)}, which such a network does not have")
        if record.class_name != role:
            raise Unsupported(f"class {role} at {path or 'the top'}", f"found class {shown(record.class_name)}")
        plain = {str(name) for name in record.state if not str(name).startswith("_") and name != "training"}
        unknown |= plain - known[role]
    warnings = []
    if unknown:
        named = ", ".join(shown(name) for name in sorted(unknown)[:3])
        warnings.append(f"The network keeps settings that are not known here ({named}): its pictures may differ.")
    versions = {record.version for record in modules.records.values()} - {6}
    if versions:
        warnings.append(f"The file was written in version {min(versions)} of its format, not 6.")
    return tuple(warnings)


def check_expected(modules: Modules, expected: Expected) -> None:
    """Check the attributes of modules; missing attributes are accepted.

    Raises
    ------
    Refusal
        If an attribute has another value.
    """
    for path, name, value in expected:
        record = modules.records.get(path)
        if record is None or name not in record.state:
            continue
        found = record.state[name]
        if not _same(found, value):
            where = f"{path}.{name}" if path else name
            raise Refusal(f"{where} to be {in_words(value)}, as its tensors are", f"it is {in_words(found)}")


def expected_of_mapping(spec: NetworkSpec) -> Iterator[tuple[str, str, object]]:
    """Yield the expected attributes of generator, mapping network and synthesis network."""
    mapping = spec.mapping
    own: dict[str, object] = {
        "z_dim": mapping.z_dim,
        "c_dim": mapping.c_dim,
        "w_dim": spec.w_dim,
        "num_ws": spec.num_ws,
    }
    picture: dict[str, object] = {"img_resolution": spec.resolution, "img_channels": spec.img_channels}
    yield from (("", name, value) for name, value in {**own, **picture}.items())
    yield from (("mapping", name, value) for name, value in {**own, "num_layers": len(mapping.widths)}.items())
    yield from (("synthesis", name, value) for name, value in picture.items())
    yield "synthesis", "w_dim", spec.w_dim
    yield "synthesis", "num_ws", spec.num_ws
    features = mapping.z_dim + mapping.embed_dim
    yield from expected_of_connected("mapping.embed", mapping.c_dim, mapping.embed_dim, "linear", 1.0)
    for index, width in enumerate(mapping.widths):
        yield from expected_of_connected(
            f"mapping.fc{index}", features, width, mapping.activation, mapping.lr_multiplier
        )
        features = width


def expected_of_connected(
    path: str, inputs: int, outputs: int, activation: str, rate: float
) -> Iterator[tuple[str, str, object]]:
    """Yield the expected attributes of a fully connected layer."""
    yield path, "in_features", inputs
    yield path, "out_features", outputs
    yield path, "activation", activation
    yield path, "bias_gain", rate
    if inputs:
        yield path, "weight_gain", rate / math.sqrt(inputs)


def mapping_settings(modules: Modules) -> tuple[Activation, float]:
    """Return activation and learning-rate multiplier of the mapping network.

    Raises
    ------
    Refusal
        If one of them is invalid.
    """
    rate = modules.attribute("mapping.fc0", "bias_gain")
    rate = 0.01 if rate is None else rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise Refusal("a learning-rate multiplier above 0 in the mapping network", f"found {in_words(rate)}")
    activation = modules.attribute("mapping.fc0", "activation") or "lrelu"
    return as_activation(activation, "mapping.fc0"), float(rate)


def as_truth(modules: Modules, path: str, name: str) -> bool:
    """Return a boolean attribute; False if missing."""
    value = modules.attribute(path, name)
    if value is not None and not isinstance(value, bool):
        raise Refusal(f"yes or no at {path}.{name}", f"found {in_words(value)}")
    return bool(value)


def as_activation(value: object, path: str) -> Activation:
    """Return the activation that a module names."""
    if value not in get_args(Activation):
        raise Unsupported(f"one of StyleGAN's activations at {path}", f"found {in_words(value)}")
    return cast("Activation", value)


def as_clamp(value: object, path: str) -> float | None:
    """Return a clamp, None for none."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise Refusal(f"a positive clamp at {path}, or none", f"found {in_words(value)}")
    return float(value)


def in_words(value: object) -> str:
    """Format a value from a file for an error message."""
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, bool | int | float):
        return "none" if value is None else str(value) if not isinstance(value, float) else f"{value:g}"
    if isinstance(value, list | tuple) and len(value) <= 4 and all(isinstance(item, int) for item in value):
        return f"[{', '.join(str(item) for item in value)}]"
    return kind_of(value)


def _same(found: object, expected: object) -> bool:
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return type(found) is type(expected) and found == expected
    if isinstance(expected, list):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return False
        return all(_same(one, other) for one, other in zip(found, expected, strict=True))
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    return math.isclose(found, cast("float", expected), rel_tol=1e-6)
