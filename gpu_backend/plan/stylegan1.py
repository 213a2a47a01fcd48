"""Plan of a StyleGAN1 synthesis network: w rows to a picture (Karras et al. 2019).

Inputs and outputs, including taps and local edits, are the same as for StyleGAN2 (`gpu_backend.plan.stylegan2`).
Pictures below the full resolution come from the toRGB layers of progressive growing, if the file contains them. The
full network does not run those layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend.model.spec import AdainLayerSpec, StyleGAN1Spec
from gpu_backend.model.stylegan1 import INPUT
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_input import AdainInput
from gpu_backend.ops.adain_up_conv import AdainUpConv
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.constant import Constant
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.plan import NOT_EDITED, Plan, PlanEdits, PlanKey, Precision

_OPS = {"input": "adain_input", "conv": "adain_conv", "up_conv": "adain_up_conv"}


def build_synthesis_plan(
    spec: StyleGAN1Spec,
    model_id: str,
    *,
    batch: int = 1,
    resolution: int | None = None,
    precision: Precision = "fp32",
    tap: str = "",
    edits: PlanEdits = NOT_EDITED,
) -> Plan:
    """Build the plan of the synthesis network for `batch` pictures.

    Raises
    ------
    ValueError
        If the network has no picture of that resolution, or no layer of the tap's name.
    """
    layers = layers_before(spec, tap or f"b{resolution or spec.resolution}.torgb")
    key = PlanKey(model_id, "synthesis", batch, layers[-1].resolution, precision, tap, edits)
    return _Synthesis(spec, layers, key).build()


def layers_before(spec: StyleGAN1Spec, name: str) -> tuple[AdainLayerSpec, ...]:
    """Return the layers that the named layer depends on, and that layer, in execution order.

    Raises
    ------
    ValueError
        If there is no layer of that name.
    """
    names = [layer.name for layer in spec.layers]
    if name not in names:
        raise ValueError(f"the network has the layers {names}, not {name!r}")
    before = spec.layers[: names.index(name)]
    return (*(layer for layer in before if layer.kind != "to_rgb"), spec.layers[names.index(name)])


class _Synthesis:
    def __init__(self, spec: StyleGAN1Spec, layers: tuple[AdainLayerSpec, ...], key: PlanKey) -> None:
        self.spec = spec
        self.layers = layers
        self.noise_layers = tuple(layer.name for layer in layers if layer.has_noise)
        self.styles = styles_of(layers, spec.w_dim)
        self.offsets = {slot.layer: slot.style_offset for slot in self.styles.slots}
        self.plan = PlanBuilder(key, {layer.name: layer.w_index for layer in layers if layer.w_index >= 0})

    def build(self) -> Plan:
        """Declare the inputs, then append one step for each layer."""
        plan = self.plan
        plan.rows(self.spec.num_ws, self.spec.w_dim)
        if self.noise_layers:
            plan.buffer("noise_source", (4,), "input", "uint32")
            plan.buffer("noise_gain", (len(self.noise_layers),), "input")
        if plan.keeps_second:
            names = [layer.name for layer in self.layers]
            with plan.second():
                self._append(self.layers[: names.index(plan.last_blended) + 1])
        x = self._append(self.layers)
        if plan.key.tap:
            plan.show_tap(x, self.layers[-1].out_channels, plan.key.resolution)
        else:
            plan.show_picture(x, self.spec.img_channels)
        return plan.freeze()

    def _append(self, layers: Sequence[AdainLayerSpec]) -> str:
        """Append the steps of layers, from the first one on; return the last output."""
        plan, batch = self.plan, self.plan.samples
        ws = plan.rows(self.spec.num_ws, self.spec.w_dim)
        styles, demod = (
            plan.buffer(name, shape, "intermediate")
            for name, shape in zip(("styles", "demod"), self.styles.output_shapes(batch), strict=True)
        )
        roles = ("affine.weight", "affine.bias")
        weights = {f"{name}.{role}": f"synthesis.{name}.{role}" for name in self.offsets for role in roles}
        style_inputs = plan.style_inputs(ws, self.styles.style_width)
        plan.step("synthesis.styles", "styles", self.styles, style_inputs, (styles, demod), weights)
        first = Constant(layers[0].out_channels)
        x = plan.buffer(f"{INPUT}.const", first.output_shape(batch), "intermediate")
        const = f"synthesis.{INPUT}.const"
        plan.step(const, "constant", first, (), (x,), {"const": const})
        for layer in layers:
            x = self._to_rgb(layer, x) if layer.kind == "to_rgb" else self._layer(layer, x)
        return x

    def _layer(self, layer: AdainLayerSpec, x: str) -> str:
        place = (
            layer.out_channels,
            layer.resolution,
            self.offsets[layer.name],
            self.noise_layers.index(layer.name) if layer.has_noise else -1,
            BiasAct(layer.activation),
            self.spec.epsilon,
        )
        attributes: AdainInput | AdainConv | AdainUpConv
        if layer.kind == "input":
            attributes = AdainInput(*place)
        elif layer.kind == "conv":
            attributes = AdainConv(layer.in_channels, *place)
        else:
            attributes = AdainUpConv(layer.in_channels, *place, self.spec.blurs_bias)
        name = f"synthesis.{layer.name}"
        roles = ["bias"] if layer.kind == "input" else ["bias", "weight"]
        inputs: tuple[str, ...] = (x, "styles")
        if layer.has_noise:
            roles += ["noise_strength", "noise_const"]
            inputs = (*inputs, "noise_source", "noise_gain")
        out = self.plan.buffer(layer.name, attributes.output_shape(self.plan.samples), "intermediate")
        weights = {role: f"{name}.{role}" for role in roles}
        self.plan.step(name, _OPS[layer.kind], attributes, inputs, (out,), weights)
        return self.plan.edited(layer.name, out)

    def _to_rgb(self, layer: AdainLayerSpec, x: str) -> str:
        attributes = ToRgb(
            layer.in_channels, layer.out_channels, layer.resolution, UNSTYLED, None, taps=(), adds_image=False
        )
        name, shape = f"synthesis.{layer.name}", attributes.output_shape(self.plan.samples)
        is_tap = bool(self.plan.key.tap)
        out = self.plan.buffer(*(layer.name, shape, "intermediate") if is_tap else ("image", shape, "output"))
        weights = {role: f"{name}.{role}" for role in ("weight", "bias")}
        self.plan.step(name, "to_rgb", attributes, (x,), (out,), weights)
        return out


def styles_of(layers: tuple[AdainLayerSpec, ...], w_dim: int) -> Styles:
    """Return the offsets of each layer's scales and shifts in the style buffer."""
    slots: list[StyleSlot] = []
    width = 0
    for layer in layers:
        if layer.w_index >= 0:
            slots.append(StyleSlot(layer.name, layer.w_index, 2 * layer.out_channels, 0, width, -1))
            width += 2 * layer.out_channels
    return Styles(w_dim, tuple(slots), width, 0)
