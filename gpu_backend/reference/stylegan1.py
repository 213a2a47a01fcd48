"""A whole StyleGAN1 synthesis network (Karras et al. 2019, figure 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from gpu_backend.model.spec import AdainLayerSpec, StyleGAN1Spec
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.reference.adain_conv import adain_conv
from gpu_backend.reference.adain_input import adain_input
from gpu_backend.reference.adain_up_conv import adain_up_conv
from gpu_backend.reference.constant import constant
from gpu_backend.reference.styles import styles
from gpu_backend.reference.to_rgb import to_rgb


def run_stylegan1(
    spec: StyleGAN1Spec,
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
        Layer name -> (batch or 1, R, R) before its strength; a layer left out gets none. None: the stored noise.
    observed
        Filled with each layer's output, edited, by official module name; including toRGB layers below the full
        resolution.
    offsets
        Layer name -> (style length,), added to the layer's style.
    edit
        Called with each layer's name and output, but not for toRGB; returns what later layers read.
    """
    if noise is None:
        noise = {name: weights[f"synthesis.{name}.noise_const"][None] for name in spec.noise_layers}
    x = image = ws
    for layer in spec.layers:
        prefix = f"synthesis.{layer.name}."
        own = {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
        if layer.kind == "to_rgb":
            y = image = to_rgb(x, own["weight"], own["bias"], None, None)
        else:
            x = _layer(spec, layer, own, x, ws, noise.get(layer.name), (offsets or {}).get(layer.name))
            y = x = x if edit is None else edit(layer.name, x)
        if observed is not None:
            observed[f"synthesis.{layer.name}"] = y
    return image


def _layer(
    spec: StyleGAN1Spec,
    layer: AdainLayerSpec,
    own: Mapping[str, Tensor],
    x: Tensor,
    ws: Tensor,
    noise: Tensor | None,
    offset: Tensor | None,
) -> Tensor:
    slot = StyleSlot(layer.name, layer.w_index, 2 * layer.out_channels, 0, 0, -1)
    affine = {f"{layer.name}.{role}": own[role] for role in ("affine.weight", "affine.bias")}
    style, _ = styles(ws, affine, Styles(spec.w_dim, (slot,), 2 * layer.out_channels, 0), offset)
    scaled = None if noise is None else noise[:, None] * own["noise_strength"][:, None, None]
    place = (layer.out_channels, layer.resolution, 0, -1, BiasAct(layer.activation), spec.epsilon)
    if layer.kind == "input":
        x = constant(own["const"], ws.shape[0])
        return adain_input(x, own["bias"], scaled, style, AdainInput(*place))
    if layer.kind == "conv":
        return adain_conv(x, own["weight"], own["bias"], scaled, style, AdainConv(layer.in_channels, *place))
    up_conv = AdainUpConv(layer.in_channels, *place, spec.blurs_bias)
    return adain_up_conv(x, own["weight"], own["bias"], scaled, style, up_conv)
