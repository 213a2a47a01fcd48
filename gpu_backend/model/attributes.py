"""Settings of a pickled StyleGAN2 from the attributes of its modules, checked against its tensors.

A hyper-parameter that shapes do not determine is looked up in the module's attribute, then in the constructor arguments
of the generator, then in the defaults of the repository whose conventions the file follows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from gpu_backend.model.assembly import LayerSettings, Settings, find_resolutions
from gpu_backend.model.attribute_checks import (
    MAPPING_ATTRIBUTES,
    MAPPING_ROLES,
    as_activation,
    as_clamp,
    as_truth,
    check_expected,
    check_roles,
    expected_of_connected,
    expected_of_mapping,
    mapping_settings,
)
from gpu_backend.model.modules import Modules
from gpu_backend.model.spec import ACTIVATION_GAINS, StyleGAN2Spec

ADA = "StyleGAN2-ADA"
STYLEGAN3_REPOSITORY = "StyleGAN3 repository"

_CONVOLUTION = {"in_channels", "out_channels", "w_dim", "resolution", "up", "down", "use_noise", "activation"}
_KNOWN_ATTRIBUTES = {
    **MAPPING_ATTRIBUTES,
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
    "Conv2dLayer": _CONVOLUTION | {"bias", "conv_clamp", "channels_last", "padding", "weight_gain", "act_gain"},
}

_ROLES = (
    *MAPPING_ROLES,
    (re.compile(r"synthesis"), "SynthesisNetwork"),
    (re.compile(r"synthesis\.b\d+"), "SynthesisBlock"),
    (re.compile(r"synthesis\.b\d+\.conv[01]"), "SynthesisLayer"),
    (re.compile(r"synthesis\.b\d+\.torgb"), "ToRGBLayer"),
    (re.compile(r"synthesis\.b\d+\.skip"), "Conv2dLayer"),
    (re.compile(r"synthesis\.b\d+\.(conv[01]|torgb)\.affine"), "FullyConnectedLayer"),
)


def flavour_of(modules: Modules) -> str:
    """Repository whose conventions a file follows; the tensors are the same in all."""
    synthesis = modules.records["synthesis"].state
    block = modules.records["synthesis.b4"].state
    return STYLEGAN3_REPOSITORY if "num_fp16_res" in synthesis or "fused_modconv_default" in block else ADA


def check_classes(modules: Modules) -> tuple[str, ...]:
    """Check the class of each module; return warnings about unknown attributes.

    Raises
    ------
    Unsupported
        If a module is unexpected or of another class.
    """
    return check_roles(modules, _ROLES, _KNOWN_ATTRIBUTES)


def read_settings(modules: Modules, taps: tuple[float, ...], flavour: str) -> Settings:
    """Collect the hyper-parameters that shapes do not determine."""
    defaults = _clamp_default(modules, flavour)
    layers: dict[str, LayerSettings] = {}
    for resolution in find_resolutions(modules.tensors):
        block = f"synthesis.b{resolution}"
        use_fp16 = as_truth(modules, block, "use_fp16")
        for name in ("conv0", "conv1", "torgb"):
            path = f"{block}.{name}"
            if path not in modules.records:
                continue
            state = modules.records[path].state
            clamp = state.get("conv_clamp", defaults)
            activation = "linear" if name == "torgb" else state.get("activation", "lrelu")
            layers[f"b{resolution}.{name}"] = LayerSettings(
                as_activation(activation, path), as_clamp(clamp, path), use_fp16
            )
    activation, rate = mapping_settings(modules)
    return Settings(activation, rate, taps, layers)


def check_attributes(modules: Modules, spec: StyleGAN2Spec) -> None:
    """Check the attributes of the modules against their tensors.

    Raises
    ------
    Refusal
        If an attribute contradicts a shape, or requires an operation that StyleGAN2 does not have.
    """
    check_expected(modules, _expected(spec))


def _expected(spec: StyleGAN2Spec) -> Iterator[tuple[str, str, object]]:
    """Yield (module path, attribute, value) for every attribute that follows from the spec."""
    yield from expected_of_mapping(spec)
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
            # The bias of a layer without one is an attribute, not a parameter.
            same = {"up": 2, "down": 1, "activation": "linear", "conv_clamp": None, "act_gain": 1, "bias": None}
            yield path, "weight_gain", gain
            yield from ((path, name, value) for name, value in same.items())
            continue
        yield path, "w_dim", spec.w_dim
        yield from expected_of_connected(f"{path}.affine", spec.w_dim, layer.in_channels, "linear", 1.0)
        if layer.kind == "to_rgb":
            yield path, "weight_gain", gain
            continue
        yield path, "resolution", layer.resolution
        yield path, "up", 2 if layer.kind == "up_conv" else 1
        yield path, "use_noise", layer.has_noise
        yield path, "padding", layer.kernel // 2
        yield path, "act_gain", ACTIVATION_GAINS[layer.activation]


def _clamp_default(modules: Modules, flavour: str) -> object:
    arguments = modules.attribute("", "_init_kwargs")
    table = arguments if isinstance(arguments, dict) else {}
    if flavour == ADA:
        nested = table.get("synthesis_kwargs")
        return nested.get("conv_clamp") if isinstance(nested, dict) else None
    return table.get("conv_clamp", 256)
