"""A whole StyleGAN2 synthesis network: skip, resnet and orig (Karras et al. 2020b, figures 2 and 7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from torch import Tensor

from gpu_backend.model.spec import LayerSpec, StyleGAN2Spec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.reference.add import add
from gpu_backend.reference.constant import constant
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.modulated_up_conv import modulated_up_conv
from gpu_backend.reference.skip_conv import skip_conv
from gpu_backend.reference.styles import styles
from gpu_backend.reference.to_rgb import add_doubled, to_rgb


def run_synthesis(
    spec: StyleGAN2Spec,
    weights: Mapping[str, Tensor],
    ws: Tensor,
    noise: Mapping[str, Tensor] | None = None,
    *,
    observed: dict[str, Tensor] | None = None,
    offsets: Mapping[str, Tensor] | None = None,
    edit: Callable[[str, Tensor], Tensor] | None = None,
) -> Tensor:
    """Return the picture, (batch, img_channels, resolution, resolution).

    Parameters
    ----------
    weights
        Official state-dict names to tensors.
    ws
        (batch, num_ws, w_dim).
    noise
        Layer name -> (batch or 1, R, R), strength included; a layer left out gets none. None: the stored noise.
    observed
        Filled with each layer's output, by official module name.
    offsets
        Layer name -> (style length,), added to the layer's style.
    edit
        Called with a layer's name and its output, a block's sum or the picture after a toRGB; returns what later layers
        read.
    """
    offsets = offsets or {}
    if noise is None:
        noise = {
            name: (weights[f"synthesis.{name}.noise_const"] * weights[f"synthesis.{name}.noise_strength"])[None]
            for name in spec.noise_layers
        }
    x = constant(weights["synthesis.b4.const"], ws.shape[0])
    image: Tensor | None = None
    skipped: Tensor | None = None
    for layer in spec.layers:
        if layer.kind == "skip":
            y = skipped = skip_conv(x, _of(weights, layer, "weight"), math.sqrt(0.5), spec.resample_filter)
        elif layer.kind == "to_rgb":
            style, _ = _style(weights, layer, ws, offsets.get(layer.name))
            clamp = None if layer.conv_clamp is None else layer.conv_clamp * layer.gain
            y = to_rgb(x, _of(weights, layer, "weight"), _of(weights, layer, "bias"), style, clamp)
            image = y if image is None else add_doubled(image, y, spec.resample_filter)
            image = image if edit is None else edit(layer.name, image)
        else:
            y = _conv(spec, weights, layer, x, ws, noise.get(layer.name), offsets.get(layer.name))
            x = y
            if layer.kind == "conv" and skipped is not None:
                x, skipped = add(x, skipped), None
            x = x if edit is None else edit(layer.name, x)
        if observed is not None:
            observed[f"synthesis.{layer.name}"] = y
    if image is None:
        raise ValueError("the network's layers end without a toRGB")
    return image


def _conv(
    spec: StyleGAN2Spec,
    weights: Mapping[str, Tensor],
    layer: LayerSpec,
    x: Tensor,
    ws: Tensor,
    noise: Tensor | None,
    offset: Tensor | None,
) -> Tensor:
    style, demod = _style(weights, layer, ws, offset)
    weight, bias = _of(weights, layer, "weight"), _of(weights, layer, "bias")
    act = BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp)
    if layer.kind == "up_conv":
        return modulated_up_conv(x, weight, bias, style, demod, noise, act, spec.resample_filter)
    return modulated_conv(x, weight, bias, style, demod, noise, act)


def _style(weights: Mapping[str, Tensor], layer: LayerSpec, ws: Tensor, offset: Tensor | None) -> tuple[Tensor, Tensor]:
    gain = 1.0 / math.sqrt(layer.in_channels * layer.kernel**2) if layer.kind == "to_rgb" else 1.0
    slot = StyleSlot(layer.name, layer.w_index, layer.in_channels, layer.out_channels, 0, 0, gain)
    attributes = Styles(ws.shape[2], (slot,), layer.in_channels, layer.out_channels)
    roles = ("affine.weight", "affine.bias", "weight")
    return styles(ws, {f"{layer.name}.{role}": _of(weights, layer, role) for role in roles}, attributes, offset)


def _of(weights: Mapping[str, Tensor], layer: LayerSpec, role: str) -> Tensor:
    return weights[f"synthesis.{layer.name}.{role}"]
