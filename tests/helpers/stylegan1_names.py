"""A StyleGAN1's tensors under the names and in the layouts of each tool, from facts about the formats.

Every function goes the way that a tool's own converter would: from our tensors to that tool's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_backend.model import Model
from gpu_backend.model.spec import AdainLayerSpec, StyleGAN1Spec
from tests.helpers.tool_names import Tensors

BLUR = (np.outer([1, 2, 1], [1, 2, 1]) / 16).astype(np.float32)


def tensorflow1_variables(model: Model, *, fused_from: int = 128) -> Tensors:
    """The variables of a TensorFlow network; up-convolutions are turned round below `fused_from`."""
    spec, weights = _spec(model), model.weights
    tensors: Tensors = {"dlatent_avg": weights["mapping.w_avg"], "synthesis/lod": np.zeros((), np.float32)}
    for index in range(len(spec.mapping.widths)):
        tensors[f"mapping/Dense{index}/weight"] = weights[f"mapping.fc{index}.weight"].T
        tensors[f"mapping/Dense{index}/bias"] = _with_gain(weights[f"mapping.fc{index}.bias"])
    if spec.mapping.c_dim:
        tensors["mapping/LabelConcat/weight"] = weights["mapping.embed.weight"].T
    for layer in spec.layers:
        own, side, level = _own(model, layer), layer.resolution, _level(layer)
        if layer.kind == "to_rgb":
            name = f"synthesis/ToRGB_lod{int(math.log2(spec.resolution // side))}"
            tensors[f"{name}/weight"] = own["weight"].transpose(2, 3, 1, 0)
            tensors[f"{name}/bias"] = own["bias"]
            continue
        part = {"input": "Const", "up_conv": "Conv0_up", "conv": "Conv" if side == 4 else "Conv1"}[layer.kind]
        name = f"synthesis/{side}x{side}/{part}"
        if layer.kind == "input":
            tensors[f"{name}/const"] = own["const"][None]
        else:
            tensors[f"{name}/weight"] = _kernel(layer, own["weight"], fused_from).transpose(2, 3, 1, 0)
        tensors[f"{name}/bias"] = own["bias"]
        tensors[f"{name}/StyleMod/weight"] = own["affine.weight"].T
        tensors[f"{name}/StyleMod/bias"] = _around_zero(own["affine.bias"])
        if layer.has_noise:
            tensors[f"{name}/Noise/weight"] = own["noise_strength"]
            tensors[f"synthesis/noise{2 * level + (layer.kind == 'conv')}"] = own["noise_const"][None, None]
    return tensors


def lernapparat_tensors(model: Model) -> Tensors:
    """The state dict of lernapparat's port."""
    spec, weights = _spec(model), model.weights
    tensors: Tensors = {}
    for index in range(len(spec.mapping.widths)):
        tensors[f"g_mapping.dense{index}.weight"] = weights[f"mapping.fc{index}.weight"]
        tensors[f"g_mapping.dense{index}.bias"] = _with_gain(weights[f"mapping.fc{index}.bias"])
    for layer in spec.layers:
        own, side = _own(model, layer), layer.resolution
        block = f"g_synthesis.blocks.{side}x{side}"
        if layer.kind == "to_rgb":
            if side == spec.resolution:
                tensors |= {f"g_synthesis.torgb.{role}": own[role] for role in ("weight", "bias")}
            continue
        if layer.kind == "input":
            tensors[f"{block}.const"], tensors[f"{block}.bias"] = own["const"][None], own["bias"]
        else:
            conv = "conv0_up" if layer.kind == "up_conv" else "conv" if side == 4 else "conv1"
            tensors[f"{block}.{conv}.weight"], tensors[f"{block}.{conv}.bias"] = (
                _kernel(layer, own["weight"]),
                own["bias"],
            )
            if layer.kind == "up_conv":
                tensors[f"{block}.conv0_up.intermediate.kernel"] = BLUR[None, None]
        end = f"{block}.epi{2 if layer.kind == 'conv' else 1}"
        tensors[f"{end}.top_epi.noise.weight"] = own["noise_strength"]
        tensors[f"{end}.style_mod.lin.weight"] = own["affine.weight"]
        tensors[f"{end}.style_mod.lin.bias"] = _around_zero(own["affine.bias"])
    return tensors


def genforce1_tensors(model: Model) -> Tensors:
    """GenForce's state dict."""
    spec, weights = _spec(model), model.weights
    tensors: Tensors = {"truncation.w_avg": weights["mapping.w_avg"], "synthesis.lod": np.zeros((), np.float32)}
    for index in range(len(spec.mapping.widths)):
        tensors[f"mapping.dense{index}.weight"] = weights[f"mapping.fc{index}.weight"]
        tensors[f"mapping.dense{index}.bias"] = _with_gain(weights[f"mapping.fc{index}.bias"])
    if spec.mapping.c_dim:
        tensors["mapping.label_weight"] = weights["mapping.embed.weight"].T
    for layer in spec.layers:
        own, level = _own(model, layer), _level(layer)
        if layer.kind == "to_rgb":
            tensors |= {f"synthesis.output{level}.{role}": own[role] for role in ("weight", "bias")}
            continue
        name = f"synthesis.layer{2 * level + (layer.kind == 'conv')}"
        if layer.kind == "input":
            tensors[f"{name}.const"] = own["const"][None]
        else:
            tensors[f"{name}.weight"] = _kernel(layer, own["weight"])
        if layer.kind == "up_conv":
            tensors[f"{name}.blur.kernel"] = np.repeat(BLUR[None, None], layer.out_channels, axis=0)
        tensors[f"{name}.bias"] = own["bias"]
        tensors[f"{name}.apply_noise.weight"] = own["noise_strength"]
        tensors[f"{name}.apply_noise.noise"] = own["noise_const"][None, None]
        tensors[f"{name}.style.weight"] = own["affine.weight"]
        tensors[f"{name}.style.bias"] = _around_zero(own["affine.bias"])
    return tensors


def rosinality1_tensors(model: Model, *, fused_from: int = 128) -> Tensors:
    """rosinality/style-based-gan-pytorch's state dict; the bias of the constant must be zeros."""
    spec, weights = _spec(model), model.weights
    tensors: Tensors = {}
    for index in range(len(spec.mapping.widths)):
        tensors[f"style.{2 * index + 1}.linear.weight_orig"] = weights[f"mapping.fc{index}.weight"]
        tensors[f"style.{2 * index + 1}.linear.bias"] = _with_gain(weights[f"mapping.fc{index}.bias"])
    for layer in spec.layers:
        own, level = _own(model, layer), _level(layer)
        if layer.kind == "to_rgb":
            tensors[f"generator.to_rgb.{level}.conv.weight_orig"] = own["weight"] / np.float32(math.sqrt(2))
            tensors[f"generator.to_rgb.{level}.conv.bias"] = own["bias"]
            continue
        block, number = f"generator.progression.{level}", 2 if layer.kind == "conv" else 1
        if layer.kind == "input":
            assert not own["bias"].any()
            tensors[f"{block}.conv1.input"] = own["const"][None]
        elif layer.kind == "conv":
            tensors[f"{block}.conv2.conv.weight_orig"] = own["weight"]
            tensors[f"{block}.conv2.conv.bias"] = own["bias"]
        else:
            is_fused = layer.resolution >= fused_from
            name = f"{block}.conv1.0" if is_fused else f"{block}.conv1.1.conv"
            kernel = own["weight"].transpose(1, 0, 2, 3) * 4 if is_fused else own["weight"][..., ::-1, ::-1]
            tensors[f"{name}.weight{'' if is_fused else '_orig'}"] = kernel
            tensors[f"{name}.bias"] = own["bias"]
            for ending in ("weight", "weight_flip"):
                blurs = np.repeat(BLUR[None, None], layer.out_channels, axis=0)
                tensors[f"{block}.conv1.{1 if is_fused else 2}.{ending}"] = blurs
        strength = own["noise_strength"] / np.float32(math.sqrt(2 / layer.out_channels))
        tensors[f"{block}.noise{number}.weight_orig"] = strength.reshape(1, -1, 1, 1)
        style = f"{block}.adain{number}.style.linear"
        tensors[f"{style}.weight_orig"] = own["affine.weight"] / np.float32(math.sqrt(2))
        tensors[f"{style}.bias"] = own["affine.bias"]
    return tensors


def _spec(model: Model) -> StyleGAN1Spec:
    assert isinstance(model.spec, StyleGAN1Spec)
    return model.spec


def _own(model: Model, layer: AdainLayerSpec) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    prefix = f"synthesis.{layer.name}."
    return {name.removeprefix(prefix): a for name, a in model.weights.items() if name.startswith(prefix)}


def _level(layer: AdainLayerSpec) -> int:
    return int(math.log2(layer.resolution)) - 2


def _kernel(
    layer: AdainLayerSpec, weight: np.ndarray[Any, Any], fused_from: int = 128
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The weight as the tools store it: flipped for up-convolutions."""
    return weight[..., ::-1, ::-1] if layer.kind == "up_conv" and layer.resolution < fused_from else weight


def _around_zero(bias: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    half = len(bias) // 2
    return np.concatenate([bias[:half] - np.float32(1), bias[half:]])


def _with_gain(bias: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    return (bias.astype(np.float64) * math.sqrt(2)).astype(np.float32)


TOOLS = {"lernapparat": lernapparat_tensors, "GenForce": genforce1_tensors, "rosinality": rosinality1_tensors}
"""Tool -> writer of its state dict."""
