"""Plan of a StyleGAN3 synthesis network: w rows to a picture (Karras et al. 2021).

Inputs
    ``ws`` (batch, num_ws, w_dim)
        The w rows.
    ``transform`` (3, 3)
        Inverse transform: maps a position in the output to a position in the untransformed picture
        (`gpu_backend.ops.fourier_features`). A bound plan starts with the model's stored transform.
Outputs
    Those of StyleGAN2 (`gpu_backend.plan.stylegan2`), taps and local edits included. There is no noise, and no picture
    before the last layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpu_backend.model.spec import FilteredLayerSpec, StyleGAN3Spec
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.ops.fourier_features import FourierFeatures
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.ops.to_display import MIDDLE, MIDDLE_XL
from gpu_backend.ops.to_rgb import ToRgb
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.plan import NOT_EDITED, BufferRole, Plan, PlanEdits, PlanKey, Precision

INPUT = "input"
"""Layer name of the Fourier feature input."""


def build_synthesis_plan(
    spec: StyleGAN3Spec,
    model_id: str,
    *,
    batch: int = 1,
    precision: Precision = "fp32",
    tap: str = "",
    edits: PlanEdits = NOT_EDITED,
) -> Plan:
    """Build the plan of the synthesis network for `batch` pictures.

    Raises
    ------
    ValueError
        If there is no layer of the tap's name.
    """
    layers, side = spec.layers, spec.resolution
    if tap:
        names = [INPUT, *(layer.name for layer in layers)]
        if tap not in names:
            raise ValueError(f"the network has the layers {names}, not {tap!r}")
        layers = layers[: names.index(tap)]
        side = layers[-1].out_size if layers else spec.input.size
    return _Synthesis(spec, layers, PlanKey(model_id, "synthesis", batch, side, precision, tap, edits)).build()


class _Synthesis:
    def __init__(self, spec: StyleGAN3Spec, layers: tuple[FilteredLayerSpec, ...], key: PlanKey) -> None:
        self.spec = spec
        self.layers = layers
        self.styles = _styles(layers, spec.w_dim)
        self.plan = PlanBuilder(key, {INPUT: 0, **{layer.name: layer.w_index for layer in layers}})

    def build(self) -> Plan:
        """Declare the inputs, then append two steps for each layer: convolution and filtered activation."""
        plan, spec = self.plan, self.spec
        plan.rows(spec.num_ws, spec.w_dim)
        plan.buffer("transform", (3, 3), "input")
        if plan.keeps_second:
            names = [INPUT, *(layer.name for layer in self.layers)]
            with plan.second():
                self._append(self.layers[: names.index(plan.last_blended)])
        x = self._append(self.layers)
        if plan.key.tap:
            channels = self.layers[-1].out_channels if self.layers else spec.input.channels
            plan.show_tap(x, channels, plan.key.resolution)
        else:
            plan.show_picture(x, spec.img_channels, MIDDLE_XL if spec.family == "stylegan_xl" else MIDDLE)
        return plan.freeze()

    def _append(self, layers: Sequence[FilteredLayerSpec]) -> str:
        """Append the steps of the input and of layers, from the first one on; return the last output."""
        plan, spec = self.plan, self.spec
        ws = plan.rows(spec.num_ws, spec.w_dim)
        features = FourierFeatures.of_network(spec)
        x = plan.buffer(INPUT, features.output_shape(self.plan.samples), "intermediate")
        roles = ("affine.weight", "affine.bias", "freqs", "phases", "weight", "transform")
        weights = {role: f"synthesis.input.{role}" for role in roles}
        plan.step("synthesis.input", "fourier_features", features, (ws, "transform"), (x,), weights)
        x = plan.edited(INPUT, x, features.size / features.sampling_rate)
        if layers:
            style_shape, demod_shape = self.styles.output_shapes(self.plan.samples)
            outputs = (
                plan.buffer("styles", style_shape, "intermediate"),
                plan.buffer("demod", demod_shape, "intermediate"),
            )
            style_inputs = plan.style_inputs(ws, style_shape[1])
            plan.step("synthesis.styles", "styles", self.styles, style_inputs, outputs, _style_weights(self.styles))
        for layer, slot in zip(layers, self.styles.slots, strict=False):
            x = self._to_rgb(layer, slot, x) if layer.kind == "to_rgb" else self._layer(layer, slot, x)
        return x

    def _layer(self, layer: FilteredLayerSpec, slot: StyleSlot, x: str) -> str:
        plan, name = self.plan, f"synthesis.{layer.name}"
        convolution = ModulatedConv(
            layer.in_channels,
            layer.out_channels,
            layer.kernel,
            layer.conv_size,
            slot.style_offset,
            slot.demod_offset,
            -1,
            BiasAct(),
            layer.kernel - 1,
        )
        raw = plan.buffer(f"{layer.name}.conv", convolution.output_shape(self.plan.samples), "intermediate")
        weights = {role: f"{name}.{role}" for role in ("weight", "bias")}
        plan.step(name, "modulated_conv", convolution, (x, "styles", "demod"), (raw,), weights)
        activation = FilteredLrelu.of_layer(layer)
        out = plan.buffer(layer.name, activation.output_shape(self.plan.samples), "intermediate")
        taps = {"up_filter": layer.up_taps, "down_filter": layer.down_taps}
        filters = {role: f"{name}.{role}" for role, count in taps.items() if count > 1}
        plan.step(name, "filtered_lrelu", activation, (raw,), (out,), filters)
        return plan.edited(layer.name, out, layer.out_size / layer.out_rate)

    def _to_rgb(self, layer: FilteredLayerSpec, slot: StyleSlot, x: str) -> str:
        is_tap = bool(self.plan.key.tap)
        attributes = ToRgb(
            layer.in_channels,
            layer.out_channels,
            layer.out_size,
            slot.style_offset,
            layer.conv_clamp,
            taps=(),
            adds_image=False,
            gain=1.0 if is_tap else self.spec.output_scale,
        )
        name = f"synthesis.{layer.name}"
        shape = attributes.output_shape(self.plan.samples)
        made: tuple[str, BufferRole] = (layer.name, "intermediate") if is_tap else ("image", "output")
        out = self.plan.picture(layer.name, shape, *made)
        self.plan.step(
            name, "to_rgb", attributes, (x, "styles"), (out,), {role: f"{name}.{role}" for role in ("weight", "bias")}
        )
        return self.plan.blended_picture(layer.name, out, *made)


def _styles(layers: tuple[FilteredLayerSpec, ...], w_dim: int) -> Styles:
    slots = []
    style_width = demod_width = 0
    for layer in layers:
        is_picture = layer.kind == "to_rgb"
        slots.append(
            StyleSlot(
                layer.name,
                layer.w_index,
                layer.in_channels,
                layer.out_channels,
                style_width,
                -1 if is_picture else demod_width,
                1.0 / math.sqrt(layer.in_channels * layer.kernel**2) if is_picture else 1.0,
                is_normalized=True,
            )
        )
        style_width += layer.in_channels
        demod_width += 0 if is_picture else layer.out_channels
    return Styles(w_dim, tuple(slots), style_width, demod_width)


def _style_weights(styles: Styles) -> dict[str, str]:
    roles = ("affine.weight", "affine.bias", "magnitude_ema", "weight")
    return {
        f"{slot.layer}.{role}": f"synthesis.{slot.layer}.{role}"
        for slot in styles.slots
        for role in (roles if slot.demod_offset >= 0 else roles[:3])
    }
