"""What the modules of a pickled StyleGAN2 say about themselves: the settings, and whether they agree with the tensors.

A hyper-parameter that shapes do not tell is looked for in the module's own attribute, then in the arguments the
generator was made with, then in the defaults of the repository whose conventions the file follows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import cast, get_args

from gpu_backend.model.assembly import GENERATOR, LayerSettings, Settings, find_resolutions
from gpu_backend.model.modules import Modules
from gpu_backend.model.pickle_values import kind_of
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.spec import ACTIVATION_GAINS, Activation, StyleGAN2Spec

ADA = "StyleGAN2-ADA"
STYLEGAN3_REPOSITORY = "StyleGAN3 repository"

_CONVOLUTION = {"in_channels", "out_channels", "w_dim", "resolution", "up", "down", "use_noise", "activation"}
_KNOWN_ATTRIBUTES = {
    "Generator": {"z_dim", "c_dim", "w_dim", "img_resolution", "img_channels", "num_ws"},
    "MappingNetwork": {"z_dim", "c_dim", "w_dim", "num_ws", "num_layers", "w_avg_beta", "embed"},
    "SynthesisNetwork": {
        "w_dim",
        "img_resolution",
        "img_resolution_log2",
        "img_channels",
        "num_fp16_res",
        "block_resolutions",
        "num_ws",
    },
    "SynthesisBlock": {
        "in_channels",
        "w_dim",
        "resolution",
        "img_channels",
        "is_last",
        "architecture",
        "use_fp16",
        "channels_last",
        "fused_modconv_default",
        "num_conv",
        "num_torgb",
    },
    "SynthesisLayer": _CONVOLUTION | {"conv_clamp", "padding", "act_gain"},
    "ToRGBLayer": {"in_channels", "out_channels", "w_dim", "conv_clamp", "weight_gain"},
    "FullyConnectedLayer": {"in_features", "out_features", "activation", "weight_gain", "bias_gain"},
    "Conv2dLayer": _CONVOLUTION | {"conv_clamp", "channels_last", "padding", "weight_gain", "act_gain"},
}
"""Class -> the plain attributes that its pictures may depend on. Others may mean a changed network."""

_ROLES = (
    (re.compile(r""), "Generator"),
    (re.compile(r"mapping"), "MappingNetwork"),
    (re.compile(r"mapping\.(embed|fc\d+)"), "FullyConnectedLayer"),
    (re.compile(r"synthesis"), "SynthesisNetwork"),
    (re.compile(r"synthesis\.b\d+"), "SynthesisBlock"),
    (re.compile(r"synthesis\.b\d+\.conv[01]"), "SynthesisLayer"),
    (re.compile(r"synthesis\.b\d+\.torgb"), "ToRGBLayer"),
    (re.compile(r"synthesis\.b\d+\.skip"), "Conv2dLayer"),
    (re.compile(r"synthesis\.b\d+\.(conv[01]|torgb)\.affine"), "FullyConnectedLayer"),
)


def flavour_of(modules: Modules) -> str:
    """Whose conventions a file follows; the tensors are the same."""
    synthesis = modules.records["synthesis"].state
    block = modules.records["synthesis.b4"].state
    return STYLEGAN3_REPOSITORY if "num_fp16_res" in synthesis or "fused_modconv_default" in block else ADA


def check_classes(modules: Modules) -> tuple[str, ...]:
    """Check that each module is of the class its place asks for; return warnings about attributes nobody knows.

    Raises
    ------
    Unsupported
        If a module stands where StyleGAN2 has none, or is of another class.
    """
    unknown: set[str] = set()
    for path, record in modules.records.items():
        role = next((name for pattern, name in _ROLES if pattern.fullmatch(path)), None)
        if role is None:
            raise Unsupported(GENERATOR, f"it has a part {shown(path)}, which such a network does not have")
        if record.class_name != role:
            raise Unsupported(f"class {role} at {path or 'the top'}", f"class {shown(record.class_name)} came")
        plain = {str(name) for name in record.state if not str(name).startswith("_") and name != "training"}
        unknown |= plain - _KNOWN_ATTRIBUTES[role]
    warnings = []
    if unknown:
        named = ", ".join(shown(name) for name in sorted(unknown)[:3])
        warnings.append(f"The network keeps settings that are not known here ({named}): its pictures may differ.")
    versions = {record.version for record in modules.records.values()} - {6}
    if versions:
        warnings.append(f"The file was written in version {min(versions)} of its format, not 6.")
    return tuple(warnings)


def read_settings(modules: Modules, taps: tuple[float, ...], flavour: str) -> Settings:
    """Collect the hyper-parameters that shapes do not tell."""
    defaults = _clamp_default(modules, flavour)
    layers: dict[str, LayerSettings] = {}
    for resolution in find_resolutions(modules.tensors):
        block = f"synthesis.b{resolution}"
        use_fp16 = _truth(modules, block, "use_fp16")
        for name in ("conv0", "conv1", "torgb"):
            path = f"{block}.{name}"
            if path not in modules.records:
                continue
            state = modules.records[path].state
            clamp = state.get("conv_clamp", defaults)
            activation = "linear" if name == "torgb" else state.get("activation", "lrelu")
            layers[f"b{resolution}.{name}"] = LayerSettings(
                _activation(activation, path), _clamp(clamp, path), use_fp16
            )
    rate = modules.attribute("mapping.fc0", "bias_gain")
    rate = 0.01 if rate is None else rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < math.inf:
        raise Refusal("a learning-rate multiplier above 0 in the mapping network", f"came {_value(rate)}")
    activation = modules.attribute("mapping.fc0", "activation") or "lrelu"
    return Settings(_activation(activation, "mapping.fc0"), float(rate), taps, layers)


def check_attributes(modules: Modules, spec: StyleGAN2Spec) -> None:
    """Check what the modules say about themselves against what their tensors are.

    Raises
    ------
    Refusal
        If an attribute contradicts a shape, or asks for a calculation that StyleGAN2 does not do.
    """
    for path, name, expected in _expected(spec):
        record = modules.records.get(path)
        if record is None or name not in record.state:
            continue
        came = record.state[name]
        if not _same(came, expected):
            where = f"{path}.{name}" if path else name
            raise Refusal(f"{where} to be {_value(expected)}, as its tensors are", f"it is {_value(came)}")


def _expected(spec: StyleGAN2Spec) -> Iterator[tuple[str, str, object]]:
    """Yield (module path, attribute, value) for every attribute that follows from the spec."""
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
    yield from _connected("mapping.embed", mapping.c_dim, mapping.embed_dim, "linear", 1.0)
    for index, width in enumerate(mapping.widths):
        yield from _connected(f"mapping.fc{index}", features, width, mapping.activation, mapping.lr_multiplier)
        features = width
    for layer in spec.layers:
        path = f"synthesis.{layer.name}"
        block = path.rpartition(".")[0]
        gain = 1 / math.sqrt(layer.in_channels * layer.kernel**2)
        yield block, "architecture", spec.architecture
        yield block, "resolution", layer.resolution
        yield block, "is_last", layer.resolution == spec.resolution
        yield block, "img_channels", spec.img_channels
        yield path, "in_channels", layer.in_channels
        yield path, "out_channels", layer.out_channels
        if layer.kind == "skip":
            same = {"up": 2, "down": 1, "activation": "linear", "conv_clamp": None, "act_gain": 1, "weight_gain": gain}
            yield from ((path, name, value) for name, value in same.items())
            continue
        yield path, "w_dim", spec.w_dim
        yield from _connected(f"{path}.affine", spec.w_dim, layer.in_channels, "linear", 1.0)
        if layer.kind == "to_rgb":
            yield path, "weight_gain", gain
            continue
        yield path, "resolution", layer.resolution
        yield path, "up", 2 if layer.kind == "up_conv" else 1
        yield path, "use_noise", layer.has_noise
        yield path, "padding", layer.kernel // 2
        yield path, "act_gain", ACTIVATION_GAINS[layer.activation]


def _connected(path: str, inputs: int, outputs: int, activation: str, rate: float) -> Iterator[tuple[str, str, object]]:
    yield path, "in_features", inputs
    yield path, "out_features", outputs
    yield path, "activation", activation
    yield path, "bias_gain", rate
    if inputs:
        yield path, "weight_gain", rate / math.sqrt(inputs)


def _clamp_default(modules: Modules, flavour: str) -> object:
    arguments = modules.attribute("", "_init_kwargs")
    table = arguments if isinstance(arguments, dict) else {}
    if flavour == ADA:
        nested = table.get("synthesis_kwargs")
        return nested.get("conv_clamp") if isinstance(nested, dict) else None
    return table.get("conv_clamp", 256)


def _truth(modules: Modules, path: str, name: str) -> bool:
    value = modules.attribute(path, name)
    if value is not None and not isinstance(value, bool):
        raise Refusal(f"yes or no at {path}.{name}", f"came {_value(value)}")
    return bool(value)


def _activation(value: object, path: str) -> Activation:
    if value not in get_args(Activation):
        raise Unsupported(f"one of StyleGAN2's activations at {path}", f"came {_value(value)}")
    return cast("Activation", value)


def _clamp(value: object, path: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise Refusal(f"a positive clamp at {path}, or none", f"came {_value(value)}")
    return float(value)


def _same(came: object, expected: object) -> bool:
    if isinstance(expected, bool) or expected is None or isinstance(expected, str):
        return type(came) is type(expected) and came == expected
    if isinstance(came, bool) or not isinstance(came, int | float):
        return False
    return math.isclose(came, cast("float", expected), rel_tol=1e-6)


def _value(value: object) -> str:
    if isinstance(value, str):
        return shown(value)
    if value is None or isinstance(value, bool | int | float):
        return "none" if value is None else str(value) if not isinstance(value, float) else f"{value:g}"
    return kind_of(value)
