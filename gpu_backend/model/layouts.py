"""Known layouts: one table for each tool.

With L = log2(R), noise pictures and styled layers are numbered 0 for the 4 x 4 convolution, 2L - 5 for conv0 and 2L - 4
for conv1 of block R. NVIDIA's conv0 stores the weights of a transposed convolution; tools that store a correlation need
a flip. The bias of a style includes the offset of one, or not.
"""

from __future__ import annotations

import re
from dataclasses import replace

from gpu_backend.model.layout import SAME, Change, Layout, Part, Parts

_AROUND_ONE = Change(plus=1.0)
_FIRST = Change(drop=(0,))
_FIRST_TWO = Change(drop=(0, 1))
_TURNED = Change(flips=True)
_MATRIX = Change(order=(1, 0))
_KERNEL = Change(order=(3, 2, 0, 1))
_TURNED_KERNEL = Change(order=(3, 2, 0, 1), flips=True)


def _level(resolution: int) -> int:
    return resolution.bit_length() - 1


def styled_layer(resolution: int, part: Part) -> int:
    """Number of a convolution among the styled ones."""
    if resolution == 4:
        return 0
    return 2 * _level(resolution) - (5 if part == "conv0" else 4)


# NVIDIA's PyTorch names


def _official(resolution: int, part: Part) -> str:
    return f"synthesis.b{resolution}.{part}"


_STYLED: Parts = tuple(
    (ending, ending, SAME) for ending in (".weight", ".bias", ".affine.weight", ".affine.bias", ".noise_strength")
)

OFFICIAL = Layout(
    flavour="NVIDIA's names",
    marker="synthesis.b4.const",
    const=SAME,
    prefix=_official,
    conv=_STYLED,
    up_conv=_STYLED,
    to_rgb=_STYLED[:4],
    skip=_STYLED[:1],
    noise_name=lambda resolution, part: f"{_official(resolution, part)}.noise_const",
    noise=SAME,
    mapping_name=lambda index: f"mapping.fc{index}.",
    fully_connected=SAME,
    w_avg=("mapping.w_avg", SAME),
    labels=((".weight", "mapping.embed.weight", SAME), (".bias", "mapping.embed.bias", SAME)),
    filters=re.compile(r"synthesis\.b[0-9]{1,4}\.((conv[01]|skip)\.)?resample_filter", re.ASCII),
    filter_sums=(1.0,),
)

# rosinality/stylegan2-pytorch


def _rosinality(resolution: int, part: Part) -> str:
    place = _level(resolution) - 3
    if part == "torgb":
        return "to_rgb1" if resolution == 4 else f"to_rgbs.{place}"
    return "conv1" if resolution == 4 else f"convs.{2 * place + (part == 'conv1')}"


_ROSINALITY_STYLE: Parts = (
    (".weight", ".conv.weight", _FIRST),
    (".affine.weight", ".conv.modulation.weight", SAME),
    (".affine.bias", ".conv.modulation.bias", SAME),
)
_ROSINALITY_CONV: Parts = (
    *_ROSINALITY_STYLE,
    (".bias", ".activate.bias", SAME),
    (".noise_strength", ".noise.weight", _FIRST),
)

ROSINALITY = Layout(
    flavour="rosinality",
    marker="input.input",
    const=_FIRST,
    prefix=_rosinality,
    conv=_ROSINALITY_CONV,
    up_conv=_ROSINALITY_CONV,
    to_rgb=(*_ROSINALITY_STYLE, (".bias", ".bias", Change(drop=(0, 2, 3)))),
    skip=(),
    noise_name=lambda resolution, part: f"noises.noise_{styled_layer(resolution, part)}",
    noise=_FIRST_TWO,
    mapping_name=lambda index: f"style.{index + 1}.",
    fully_connected=SAME,
    w_avg=("latent_avg", Change(mean=True)),
    filters=re.compile(r"(convs\.[0-9]{1,2}\.conv\.blur|to_rgbs\.[0-9]{1,2}\.upsample)\.kernel", re.ASCII),
    filter_sums=(4.0,),
    architecture="skip",
)

# GenForce


def _genforce(resolution: int, part: Part) -> str:
    if part == "torgb":
        return f"synthesis.output{_level(resolution) - 2}"
    return f"synthesis.layer{styled_layer(resolution, part)}" if part != "skip" else f"synthesis.skip{resolution}"


_GENFORCE_STYLE: Parts = (
    (".weight", ".weight", SAME),
    (".bias", ".bias", SAME),
    (".affine.weight", ".style.weight", SAME),
    (".affine.bias", ".style.bias", _AROUND_ONE),
)
_GENFORCE_CONV: Parts = (*_GENFORCE_STYLE, (".noise_strength", ".noise_strength", SAME))

GENFORCE = Layout(
    flavour="GenForce",
    marker="synthesis.early_layer.const",
    const=_FIRST,
    prefix=_genforce,
    conv=_GENFORCE_CONV,
    up_conv=((".weight", ".weight", _TURNED), *_GENFORCE_CONV[1:]),
    to_rgb=_GENFORCE_STYLE,
    skip=(),
    noise_name=lambda resolution, part: f"{_genforce(resolution, part)}.noise",
    noise=_FIRST_TWO,
    mapping_name=lambda index: f"mapping.dense{index}.",
    fully_connected=SAME,
    w_avg=("truncation.w_avg", SAME),
    filters=re.compile(r"synthesis\.[a-z0-9_.]{1,40}\.kernel", re.ASCII),
)

# TensorFlow: StyleGAN2 and StyleGAN2-ADA


def _tensorflow(resolution: int, part: Part) -> str:
    name = {"conv0": "Conv0_up", "conv1": "Conv1", "torgb": "ToRGB", "skip": "Skip"}[part]
    return f"synthesis/{resolution}x{resolution}/{'Conv' if (resolution, part) == (4, 'conv1') else name}"


JOINED_LABEL = "mapping/LabelConcat/weight"
"""Label embedding without a bias, concatenated to z before both are normalised."""

_TENSORFLOW_STYLE: Parts = (
    (".weight", "/weight", _KERNEL),
    (".bias", "/bias", SAME),
    (".affine.weight", "/mod_weight", _MATRIX),
    (".affine.bias", "/mod_bias", _AROUND_ONE),
)
_TENSORFLOW_CONV: Parts = (*_TENSORFLOW_STYLE, (".noise_strength", "/noise_strength", SAME))

TENSORFLOW = Layout(
    flavour="TensorFlow",
    marker="synthesis/4x4/Const/const",
    const=_FIRST,
    prefix=_tensorflow,
    conv=_TENSORFLOW_CONV,
    up_conv=((".weight", "/weight", _TURNED_KERNEL), *_TENSORFLOW_CONV[1:]),
    to_rgb=_TENSORFLOW_STYLE,
    skip=((".weight", "/weight", _KERNEL),),
    noise_name=lambda resolution, part: f"synthesis/noise{styled_layer(resolution, part)}",
    noise=_FIRST_TWO,
    mapping_name=lambda index: f"mapping/Dense{index}/",
    fully_connected=_MATRIX,
    w_avg=("dlatent_avg", SAME),
    labels=(
        (".weight", "mapping/LabelEmbed/weight", _MATRIX),
        (".bias", "mapping/LabelEmbed/bias", SAME),
        (".weight", JOINED_LABEL, _MATRIX),
    ),
    unused=re.compile(r"((mapping|synthesis)/)?lod", re.ASCII),
)


def tensorflow_grown(resolution: int) -> Layout:
    """The layout of configurations B to D (Karras et al. 2020a, table 1), which use progressive growing.

    Each resolution has its own toRGB, numbered from the highest; a fully grown network uses only that one.
    """

    def prefix(size: int, part: Part) -> str:
        if part != "torgb":
            return _tensorflow(size, part)
        return f"synthesis/ToRGB_lod{_level(resolution) - _level(size)}"

    unused = re.compile(r"((mapping|synthesis)/)?lod|synthesis/ToRGB_lod[1-9]/[a-z_]{1,40}", re.ASCII)
    return replace(TENSORFLOW, prefix=prefix, skip=(), unused=unused, architecture="orig")
