"""A whole StyleGAN3 synthesis network (Karras et al. 2021)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from torch import Tensor

from gpu_backend.model.spec import FilteredLayerSpec, StyleGAN3Spec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.reference.filtered_lrelu import filtered_lrelu
from gpu_backend.reference.fourier_features import fourier_features
from gpu_backend.reference.modulated_conv import modulated_conv
from gpu_backend.reference.styles import styles
from gpu_backend.reference.to_rgb import to_rgb


def run_stylegan3(
    spec: StyleGAN3Spec,
    weights: Mapping[str, Tensor],
    ws: Tensor,
    transform: Tensor | None = None,
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
    transform
        (3, 3); None for the stored one.
    observed
        Filled with each layer's output, edited, by official module name.
    offsets
        Layer name -> (style length,), added to the layer's style.
    edit
        Called with the name and output of each layer, of the input and of the toRGB too; returns what follows reads.
    """
    own = "synthesis.input."
    inputs = {name.removeprefix(own): value for name, value in weights.items() if name.startswith(own)}
    turned = inputs["transform"] if transform is None else transform
    x = fourier_features(ws, turned, inputs, FourierFeatures.of_network(spec))
    x = x if edit is None else edit("input", x)
    if observed is not None:
        observed["synthesis.input"] = x
    for layer in spec.layers:
        x = _layer(weights, layer, x, ws, (offsets or {}).get(layer.name))
        x = x if edit is None else edit(layer.name, x)
        if observed is not None:
            observed[f"synthesis.{layer.name}"] = x
    return x * spec.output_scale


def _layer(
    weights: Mapping[str, Tensor], layer: FilteredLayerSpec, x: Tensor, ws: Tensor, added: Tensor | None
) -> Tensor:
    prefix = f"synthesis.{layer.name}."
    own = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
    is_picture = layer.kind == "to_rgb"
    gain = 1.0 / math.sqrt(layer.in_channels * layer.kernel**2) if is_picture else 1.0
    offset = -1 if is_picture else 0
    slot = StyleSlot("", layer.w_index, layer.in_channels, layer.out_channels, 0, offset, gain, is_normalized=True)
    attributes = Styles(ws.shape[2], (slot,), layer.in_channels, 0 if is_picture else layer.out_channels)
    style, demod = styles(ws, {f".{name}": value for name, value in own.items()}, attributes, added)
    if is_picture:
        return to_rgb(x, own["weight"], own["bias"], style, layer.conv_clamp)
    x = modulated_conv(x, own["weight"], own["bias"], style, demod, None, BiasAct(), layer.kernel - 1)
    return filtered_lrelu(x, own.get("up_filter"), own.get("down_filter"), FilteredLrelu.of_layer(layer))
