"""The known StyleGAN1 layouts: one table a tool.

With L = log2(R), styled layers and noise pictures are numbered 2L - 4 and 2L - 3 in block R. Up-convolutions of NVIDIA,
and of ports, hold their weights as a correlation on doubled pixels wants them up to 64 pixels, and as a transposed
convolution scatters them above, which is turned round; here all are as the latter. Activations of the mapping network
have no gain there, so that its biases are divided by the gain that they have here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from gpu_backend.model.layout import SAME, Change
from gpu_backend.model.layouts import JOINED_LABEL
from gpu_backend.model.shapes import Shapes
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings
from gpu_backend.model.stylegan1_layout import Roles, StyleGAN1Layout

FUSED_FROM = 128
"""Default resolution from which NVIDIA's networks upsample by a transposed convolution."""

_FIRST = Change(drop=(0,))
_FIRST_TWO = Change(drop=(0, 1))
_MATRIX = Change(order=(1, 0))
_KERNEL = Change(order=(3, 2, 0, 1))
_TURNED_KERNEL = Change(order=(3, 2, 0, 1), flips=True)
_TURNED = Change(flips=True)
_AROUND_ONE = Change(plus_first=1.0)
_WITHOUT_GAIN = Change(times=math.sqrt(0.5))


def _level(resolution: int) -> int:
    return resolution.bit_length() - 3


def _is_fused(resolution: int) -> bool:
    return resolution >= FUSED_FROM


# TensorFlow


def tensorflow_stylegan1(is_fused: Callable[[int], bool] = _is_fused) -> StyleGAN1Layout:
    """The layout of NVIDIA's files; `is_fused` selects resolutions that upsample by a transposed convolution."""

    def styled(resolution: int, index: int, shapes: Shapes) -> Roles:
        block = f"synthesis/{resolution}x{resolution}"
        first, second = ("Const", "Conv") if resolution == 4 else ("Conv0_up", "Conv1")
        layer = f"{block}/{second if index else first}"
        kernel = ("weight", f"{layer}/weight", _KERNEL if index or is_fused(resolution) else _TURNED_KERNEL)
        role, name, change = ("const", f"{layer}/const", _FIRST) if layer.endswith("/Const") else kernel
        return {
            role: (name, change),
            "bias": (f"{layer}/bias", SAME),
            "noise_strength": (f"{layer}/Noise/weight", SAME),
            "noise_const": (f"synthesis/noise{2 * _level(resolution) + index}", _FIRST_TWO),
            "affine.weight": (f"{layer}/StyleMod/weight", _MATRIX),
            "affine.bias": (f"{layer}/StyleMod/bias", _AROUND_ONE),
        }

    def to_rgb(resolution: int, full: int) -> Roles:
        layer = f"synthesis/ToRGB_lod{_level(full) - _level(resolution)}"
        return {"weight": (f"{layer}/weight", _KERNEL), "bias": (f"{layer}/bias", SAME)}

    return StyleGAN1Layout(
        flavour="TensorFlow",
        marker="synthesis/4x4/Const/StyleMod/weight",
        styled=styled,
        to_rgb=to_rgb,
        mapping=lambda index: {
            "weight": (f"mapping/Dense{index}/weight", _MATRIX),
            "bias": (f"mapping/Dense{index}/bias", _WITHOUT_GAIN),
        },
        others={"w_avg": ("dlatent_avg", SAME), "embed.weight": (JOINED_LABEL, _MATRIX)},
        lods=("lod", "synthesis/lod"),
    )


# lernapparat's port, which keeps one toRGB


def _lernapparat(resolution: int, index: int, shapes: Shapes) -> Roles:
    block = f"g_synthesis.blocks.{resolution}x{resolution}"
    if resolution == 4:
        role, name, bias = ("weight", "conv.weight", "conv.bias") if index else ("const", "const", "bias")
    else:
        conv = "conv1" if index else "conv0_up"
        role, name, bias = "weight", f"{conv}.weight", f"{conv}.bias"
    is_turned = role == "weight" and not index and not _is_fused(resolution)
    change = _FIRST if role == "const" else _TURNED if is_turned else SAME
    end = f"{block}.epi{index + 1}"
    return {
        role: (f"{block}.{name}", change),
        "bias": (f"{block}.{bias}", SAME),
        "noise_strength": (f"{end}.top_epi.noise.weight", SAME),
        "affine.weight": (f"{end}.style_mod.lin.weight", SAME),
        "affine.bias": (f"{end}.style_mod.lin.bias", _AROUND_ONE),
    }


LERNAPPARAT = StyleGAN1Layout(
    flavour="lernapparat",
    marker="g_synthesis.blocks.4x4.const",
    styled=_lernapparat,
    to_rgb=lambda resolution, full: (
        {role: (f"g_synthesis.torgb.{role}", SAME) for role in ("weight", "bias")} if resolution == full else {}
    ),
    mapping=lambda index: {
        "weight": (f"g_mapping.dense{index}.weight", SAME),
        "bias": (f"g_mapping.dense{index}.bias", _WITHOUT_GAIN),
    },
    others={},
    filters=re.compile(r"g_synthesis\.blocks\.[0-9x]{1,9}\.conv0_up\.intermediate\.kernel", re.ASCII),
    settings=StyleGAN1Settings(epsilon=1e-5),
)

# GenForce


def _genforce(resolution: int, index: int, shapes: Shapes) -> Roles:
    number = 2 * _level(resolution) + index
    layer = f"synthesis.layer{number}"
    is_turned = number > 0 and not index and not _is_fused(resolution)
    role, change = ("const", _FIRST) if number == 0 else ("weight", _TURNED if is_turned else SAME)
    return {
        role: (f"{layer}.{role}", change),
        "bias": (f"{layer}.bias", SAME),
        "noise_strength": (f"{layer}.apply_noise.weight", SAME),
        "noise_const": (f"{layer}.apply_noise.noise", _FIRST_TWO),
        "affine.weight": (f"{layer}.style.weight", SAME),
        "affine.bias": (f"{layer}.style.bias", _AROUND_ONE),
    }


GENFORCE_STYLEGAN1 = StyleGAN1Layout(
    flavour="GenForce",
    marker="synthesis.layer0.const",
    styled=_genforce,
    to_rgb=lambda resolution, full: {
        role: (f"synthesis.output{_level(resolution)}.{role}", SAME) for role in ("weight", "bias")
    },
    mapping=lambda index: {
        "weight": (f"mapping.dense{index}.weight", SAME),
        "bias": (f"mapping.dense{index}.bias", _WITHOUT_GAIN),
    },
    others={
        "w_avg": ("truncation.w_avg", Change(mean=True)),
        "embed.weight": ("mapping.label_weight", _MATRIX),
    },
    filters=re.compile(r"synthesis\.layer[0-9]{1,2}\.blur\.kernel", re.ASCII),
    lods=("synthesis.lod",),
)

# rosinality/style-based-gan-pytorch, which computes differently: all weights, those of noise too, are scaled by
# sqrt(2 / inputs), a transposed convolution's by a quarter of it, and the bias of an up-convolution is blurred with it


def _rosinality(resolution: int, index: int, shapes: Shapes) -> Roles:
    block = f"generator.progression.{_level(resolution)}"
    roles: dict[str, tuple[str, Change]] = {}
    if index:
        roles["weight"] = (f"{block}.conv2.conv.weight_orig", SAME)
        roles["bias"] = (f"{block}.conv2.conv.bias", SAME)
    elif resolution == 4:
        roles["const"] = (f"{block}.conv1.input", _FIRST)
    elif f"{block}.conv1.0.bias" in shapes:
        roles["weight"] = (f"{block}.conv1.0.weight", Change(order=(1, 0, 2, 3), times=0.25))
        roles["bias"] = (f"{block}.conv1.0.bias", SAME)
    else:
        roles["weight"] = (f"{block}.conv1.1.conv.weight_orig", _TURNED)
        roles["bias"] = (f"{block}.conv1.1.conv.bias", SAME)
    noise = f"{block}.noise{index + 1}.weight_orig"
    channels = max(shapes.get(noise, ()), default=1)
    roles["noise_strength"] = (noise, Change(drop=(0, 2, 3), times=math.sqrt(2 / max(1, channels))))
    roles["affine.weight"] = (f"{block}.adain{index + 1}.style.linear.weight_orig", Change(times=math.sqrt(2)))
    roles["affine.bias"] = (f"{block}.adain{index + 1}.style.linear.bias", SAME)
    return roles


def _rosinality_to_rgb(resolution: int, full: int) -> Roles:
    layer = f"generator.to_rgb.{_level(resolution)}.conv"
    return {"weight": (f"{layer}.weight_orig", Change(times=math.sqrt(2))), "bias": (f"{layer}.bias", SAME)}


ROSINALITY_STYLEGAN1 = StyleGAN1Layout(
    flavour="rosinality",
    marker="style.1.linear.weight_orig",
    styled=_rosinality,
    to_rgb=_rosinality_to_rgb,
    mapping=lambda index: {
        "weight": (f"style.{2 * index + 1}.linear.weight_orig", SAME),
        "bias": (f"style.{2 * index + 1}.linear.bias", _WITHOUT_GAIN),
    },
    others={},
    unused=re.compile(r"generator\.progression\.[0-9]{1,2}\.conv1\.[0-9]\.weight(_flip)?", re.ASCII),
    settings=StyleGAN1Settings(lr_multiplier=1.0, epsilon=1e-5, blurs_bias=True),
)
