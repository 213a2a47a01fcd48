"""A model's tensors under the names and in the layouts of other tools, written down from the facts of each format.

Every function goes the way that a tool's own converter would: from the official tensors to that tool's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gpu_backend.model import LayerSpec
from tests.helpers.networks import StyleGAN2Model

Tensors = dict[str, np.ndarray[Any, Any]]


def exact(model: StyleGAN2Model) -> StyleGAN2Model:
    """The model with biases of styles rounded so that taking one away and adding it again changes nothing."""
    for name, array in model.weights.items():
        if name.endswith("affine.bias"):
            array[...] = np.round(array * 1024) / 1024
    return model


def rosinality_tensors(model: StyleGAN2Model, *, has_noises: bool = True) -> Tensors:
    """rosinality/stylegan2-pytorch's state dict."""
    spec, weights = model.spec, model.weights
    tensors: Tensors = {}
    for index in range(len(spec.mapping.widths)):
        for ending in ("weight", "bias"):
            tensors[f"style.{index + 1}.{ending}"] = weights[f"mapping.fc{index}.{ending}"]
    tensors["input.input"] = weights["synthesis.b4.const"][None]
    for layer, own in _styled(model):
        place = int(math.log2(layer.resolution)) - 3
        if layer.kind == "to_rgb":
            name = "to_rgb1" if layer.resolution == 4 else f"to_rgbs.{place}"
            tensors[f"{name}.bias"] = own["bias"].reshape(1, -1, 1, 1)
        else:
            name = "conv1" if layer.resolution == 4 else f"convs.{2 * place + (layer.kind == 'conv')}"
            tensors[f"{name}.noise.weight"] = own["noise_strength"].reshape(1)
            tensors[f"{name}.activate.bias"] = own["bias"]
        tensors[f"{name}.conv.weight"] = own["weight"][None]
        tensors[f"{name}.conv.modulation.weight"] = own["affine.weight"]
        tensors[f"{name}.conv.modulation.bias"] = own["affine.bias"]
        if layer.kind == "up_conv":
            tensors[f"{name}.conv.blur.kernel"] = _kernel(model)
        elif layer.kind == "to_rgb" and layer.resolution > 4:
            tensors[f"{name}.upsample.kernel"] = _kernel(model)
    if has_noises:
        for number, layer_name in enumerate(spec.noise_layers):
            tensors[f"noises.noise_{number}"] = weights[f"synthesis.{layer_name}.noise_const"][None, None]
    return tensors


def random_numbers(*shape: int) -> np.ndarray[Any, Any]:
    """Return normal numbers that follow from the number of dimensions."""
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


def rosinality_discriminator() -> Tensors:
    """Return random blocks of a discriminator of 16 x 16 pictures, by rosinality's names."""
    numbers, channels = random_numbers, {16: 4, 8: 6, 4: 8}
    tensors = {"convs.0.0.weight": numbers(4, 3, 1, 1), "convs.0.1.bias": numbers(4)}
    for number, side in enumerate((16, 8), 1):
        inputs, outputs = channels[side], channels[side // 2]
        tensors |= {
            f"convs.{number}.conv1.0.weight": numbers(inputs, inputs, 3, 3),
            f"convs.{number}.conv1.1.bias": numbers(inputs),
            f"convs.{number}.conv2.0.kernel": numbers(4, 4),
            f"convs.{number}.conv2.1.weight": numbers(outputs, inputs, 3, 3),
            f"convs.{number}.conv2.2.bias": numbers(1, outputs, 1, 1),
            f"convs.{number}.skip.0.kernel": numbers(4, 4),
            f"convs.{number}.skip.1.weight": numbers(outputs, inputs, 1, 1),
        }
    return tensors | {"final_conv.0.weight": numbers(8, 9, 3, 3)}


def genforce_tensors(model: StyleGAN2Model) -> Tensors:
    """GenForce's state dict."""
    spec, weights = model.spec, model.weights
    tensors: Tensors = {"truncation.w_avg": weights["mapping.w_avg"]}
    for index in range(len(spec.mapping.widths)):
        for ending in ("weight", "bias"):
            tensors[f"mapping.dense{index}.{ending}"] = weights[f"mapping.fc{index}.{ending}"]
    tensors["synthesis.early_layer.const"] = weights["synthesis.b4.const"][None]
    for layer, own in _styled(model):
        level = int(math.log2(layer.resolution)) - 2
        number = {"conv": 2 * level, "up_conv": 2 * level - 1, "to_rgb": level}[layer.kind]
        name = f"synthesis.{'output' if layer.kind == 'to_rgb' else 'layer'}{number}"
        tensors[f"{name}.weight"] = own["weight"][..., ::-1, ::-1] if layer.kind == "up_conv" else own["weight"]
        tensors[f"{name}.bias"] = own["bias"]
        tensors[f"{name}.style.weight"] = own["affine.weight"]
        tensors[f"{name}.style.bias"] = own["affine.bias"] - 1
        if layer.kind != "to_rgb":
            tensors[f"{name}.noise_strength"] = own["noise_strength"]
            tensors[f"{name}.noise"] = own["noise_const"][None, None]
    return tensors


def tensorflow_variables(model: StyleGAN2Model, *, is_grown: bool = False) -> Tensors:
    """The variables of a TensorFlow network; `is_grown` names toRGB as configurations B to D do."""
    spec, weights = model.spec, model.weights
    tensors: Tensors = {"dlatent_avg": weights["mapping.w_avg"]}
    for index in range(len(spec.mapping.widths)):
        tensors[f"mapping/Dense{index}/weight"] = weights[f"mapping.fc{index}.weight"].T
        tensors[f"mapping/Dense{index}/bias"] = weights[f"mapping.fc{index}.bias"]
    if spec.mapping.joins_label:
        tensors["mapping/LabelConcat/weight"] = weights["mapping.embed.weight"].T
    elif spec.mapping.c_dim:
        tensors["mapping/LabelEmbed/weight"] = weights["mapping.embed.weight"].T
        tensors["mapping/LabelEmbed/bias"] = weights["mapping.embed.bias"]
    tensors["synthesis/4x4/Const/const"] = weights["synthesis.b4.const"][None]
    for number, layer_name in enumerate(spec.noise_layers):
        tensors[f"synthesis/noise{number}"] = weights[f"synthesis.{layer_name}.noise_const"][None, None]
    for layer in spec.layers:
        side = layer.resolution
        own = "Conv" if (side, layer.kind) == (4, "conv") else {"conv": "Conv1", "up_conv": "Conv0_up"}.get(layer.kind)
        name = f"synthesis/{side}x{side}/{own or {'to_rgb': 'ToRGB', 'skip': 'Skip'}[layer.kind]}"
        if is_grown and layer.kind == "to_rgb":
            name = f"synthesis/ToRGB_lod{int(math.log2(spec.resolution // side))}"
        kernel = weights[f"synthesis.{layer.name}.weight"]
        kernel = kernel[..., ::-1, ::-1] if layer.kind == "up_conv" else kernel
        tensors[f"{name}/weight"] = kernel.transpose(2, 3, 1, 0)
        if layer.kind == "skip":
            continue
        tensors[f"{name}/bias"] = weights[f"synthesis.{layer.name}.bias"]
        tensors[f"{name}/mod_weight"] = weights[f"synthesis.{layer.name}.affine.weight"].T
        tensors[f"{name}/mod_bias"] = weights[f"synthesis.{layer.name}.affine.bias"] - 1
        if layer.has_noise:
            tensors[f"{name}/noise_strength"] = weights[f"synthesis.{layer.name}.noise_strength"]
    return tensors


def official_tensors(model: StyleGAN2Model) -> Tensors:
    """NVIDIA's state dict, resample filters among it."""
    tensors: Tensors = dict(model.weights)
    taps = np.outer(model.spec.resample_filter, model.spec.resample_filter).astype(np.float32)
    default = np.outer((1, 3, 3, 1), (1, 3, 3, 1)).astype(np.float32) / 64
    for layer in model.spec.layers:
        tensors[f"synthesis.{layer.name.partition('.')[0]}.resample_filter"] = taps
        if layer.kind != "to_rgb":
            # Nothing reads that of conv1: the tools leave it at its default.
            tensors[f"synthesis.{layer.name}.resample_filter"] = default if layer.kind == "conv" else taps
    return tensors


def _styled(model: StyleGAN2Model) -> Iterator[tuple[LayerSpec, Mapping[str, np.ndarray[Any, Any]]]]:
    for layer in model.spec.layers:
        prefix = f"synthesis.{layer.name}."
        yield layer, {name.removeprefix(prefix): a for name, a in model.weights.items() if name.startswith(prefix)}


def _kernel(model: StyleGAN2Model) -> np.ndarray[Any, Any]:
    taps = model.spec.resample_filter
    return np.outer(taps, taps).astype(np.float32) * 4
