"""Plan of a StyleGAN2 synthesis network: w rows to a picture (Karras et al. 2020b).

Inputs, fixed buffers whose values may change from run to run
    ``ws`` (batch, num_ws, w_dim)
        The w rows; a draft plan takes all of them too.
    ``noise_source`` (4,) uint32
        Source of the noise of all layers: [0, 0, 0, phase] selects the model's ``noise_const``, [1, low, high, phase]
        the generator of `gpu_backend.ops.noise` with a 64-bit seed; `gpu_backend.plan.noise_inputs` has the phase. All
        samples get the same noise. A bound plan starts with ``noise_const`` in phase 0.
    ``noise_gain`` (noise layers,)
        Factor on each layer's ``noise_strength``. A bound plan starts with ones; mode "none" sets zeros.
Outputs
    ``image`` (batch, R, R, img_channels) float32 in the network's output range, ``pixels`` (batch, R, R, 4) uint8 for
    display, ``flags`` (batch,) uint32. Bit 0 of a flag: the picture contains a value that is not finite.

Bent layers (`PlanEdits.bent`) are followed by a step with an input of its own (`gpu_backend.ops.bend_channels`); at the
end of a resnet block it bends the sum. With offsets of styles there is the input ``style_offsets``
(`gpu_backend.ops.styles`).

With masked blends a layer whose row of w is blended is followed by a step with an input for each mask
(`gpu_backend.ops.blend_samples`), and so is the picture of a toRGB. ``ws`` has the rows of the second latents after
those of the pictures, and steps up to the last blended layer run for all of them. If second latents are kept
(`PlanEdits.keeps_second`), their rows are the input ``second_ws`` (blends, num_ws, w_dim), and the plan begins with
their own steps up to that layer (`Plan.kept_steps`).

With a tap, ``pixels`` show the tapped layer, and the plan has only the layers that it depends on. There is no
``image``. A further input ``tap`` controls the display (`gpu_backend.ops.tap_display`). Further outputs are
``statistics`` (batch, 4, 4) and ``values`` (batch, side, side). A tapped toRGB gives its own output, without the
upsampled picture of the previous block.

An fp16 plan stores the activations of all convolutions in half precision. Sums, styles, noise and pictures stay in
single precision. The file's choice of half-precision layers (`LayerSpec.use_fp16`) is ignored.

A key whose resolution is below the model's is an early exit: the higher-resolution layers are left out. Only the skip
architecture has an early exit (`StyleGAN2Spec.draft_resolutions`). If the model has a readout for that side
(`gpu_backend.model.draft_file`), the readout replaces all toRGB layers, and the last convolution computes only the
channels that it reads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_backend.model.spec import LayerSpec, StyleGAN2Spec
from gpu_backend.ops.add import Add
from gpu_backend.ops.bias_act import BiasAct
from gpu_backend.ops.constant import Constant
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.ops.skip_conv import SkipConv
from gpu_backend.ops.styles import Styles, StyleSlot
from gpu_backend.ops.to_rgb import UNSTYLED, ToRgb
from gpu_backend.plan.builder import PlanBuilder
from gpu_backend.plan.plan import NOT_EDITED, BufferRole, Plan, PlanEdits, PlanKey, Precision, is_half


def layers_of(spec: StyleGAN2Spec, resolution: int | None = None) -> tuple[LayerSpec, ...]:
    """Return the layers that a plan of this resolution runs, in execution order.

    Raises
    ------
    ValueError
        If the network has no picture of that resolution.
    """
    if resolution is None or resolution == spec.resolution:
        return spec.layers
    if resolution not in spec.draft_resolutions:
        sides = (*spec.draft_resolutions, spec.resolution)
        raise ValueError(f"the network has pictures of {sides} pixels a side, not of {resolution}")
    return tuple(layer for layer in spec.layers if layer.resolution <= resolution)


def build_synthesis_plan(
    spec: StyleGAN2Spec,
    model_id: str,
    *,
    batch: int = 1,
    resolution: int | None = None,
    precision: Precision = "fp32",
    tap: str = "",
    readouts: Mapping[int, int] | None = None,
    edits: PlanEdits = NOT_EDITED,
) -> Plan:
    """Build the plan of the synthesis network for `batch` pictures.

    `readouts` holds side -> channels that the draft of that side reads; such a draft ends in its readout.

    Raises
    ------
    ValueError
        If the network has no picture of that resolution, or no layer of the tap's name.
    """
    layers = layers_of(spec, resolution) if not tap else layers_before(spec, tap)
    key = PlanKey(model_id, "synthesis", batch, layers[-1].resolution, precision, tap, edits)
    is_draft = not tap and key.resolution < spec.resolution
    width = (readouts or {}).get(key.resolution, 0) if is_draft else 0
    return _Synthesis(spec, layers, key, width).build()


def layers_before(spec: StyleGAN2Spec, tap: str) -> tuple[LayerSpec, ...]:
    """Layers that one layer needs, and that layer, in execution order.

    Raises
    ------
    ValueError
        If there is no layer of that name.
    """
    names = [layer.name for layer in spec.layers]
    if tap not in names:
        raise ValueError(f"the network has the layers {names}, not {tap!r}")
    last = spec.layers[names.index(tap)]

    def is_needed(layer: LayerSpec) -> bool:
        if layer.kind == "skip":  # it reaches others by the sum at the end of its block
            return layer.resolution < last.resolution or last.kind == "to_rgb"
        return layer.kind != "to_rgb"

    before = spec.layers[: names.index(tap)]
    return (*(layer for layer in before if is_needed(layer)), last)


class _Synthesis:
    """Assembles the plan of some layers.

    `readout_width` is the number of channels of the last convolution that a readout reads; 0 for no readout.
    """

    def __init__(
        self, spec: StyleGAN2Spec, layers: tuple[LayerSpec, ...], key: PlanKey, readout_width: int = 0
    ) -> None:
        self.spec = spec
        self.readout_width = readout_width
        self.layers = _before_readout(layers, readout_width) if readout_width else layers
        self.noise_layers = tuple(layer.name for layer in layers if layer.has_noise)
        self.styles = _styles(self.layers, spec.w_dim)
        self.slots = {slot.layer: slot for slot in self.styles.slots}
        self.plan = PlanBuilder(key, {layer.name: layer.w_index for layer in self.layers if layer.w_index >= 0})
        self.image: str | None = None

    def build(self) -> Plan:
        """Declare the inputs, then append one step for each layer."""
        plan = self.plan
        plan.rows(self.spec.num_ws, self.spec.w_dim)
        if self.noise_layers:
            plan.buffer("noise_source", (4,), "input", "uint32")
            plan.buffer("noise_gain", (len(self.noise_layers),), "input")
        if plan.keeps_second:
            with plan.second():
                self._append(self._second_layers())
        x = self._append(self.layers)
        last = self.layers[-1]
        if self.readout_width:
            self._readout(last, x)
        if plan.key.tap:
            shown = x if last.kind in ("conv", "up_conv") else last.name
            plan.show_tap(shown, last.out_channels, last.resolution)
        else:
            plan.show_picture(self._last_image(), self.spec.img_channels)
        return plan.freeze()

    def _append(self, layers: Sequence[LayerSpec]) -> str:
        """Append the steps of layers, from the first one on; return the output of the last convolution."""
        plan, batch = self.plan, self.plan.samples
        self.image = None
        ws = plan.rows(self.spec.num_ws, self.spec.w_dim)
        style_shape, demod_shape = self.styles.output_shapes(batch)
        styles = plan.buffer("styles", style_shape, "intermediate")
        demod = plan.buffer("demod", demod_shape, "intermediate")
        style_inputs = plan.style_inputs(ws, self.styles.style_width)
        plan.step("synthesis.styles", "styles", self.styles, style_inputs, (styles, demod), self._style_weights())

        first = layers[0]
        constant = Constant(first.in_channels)
        x = self._activation("b4.const", constant.output_shape(batch))
        plan.step("synthesis.b4.const", "constant", constant, (), (x,), {"const": "synthesis.b4.const"})
        skipped: str | None = None
        for layer in layers:
            if layer.kind == "skip":
                skipped = self._skip(layer, x)
            elif layer.kind == "to_rgb":
                self._to_rgb(layer, x)
            else:
                x = self._conv(layer, x)
                if layer.kind == "conv" and skipped is not None:
                    x, skipped = self._sum(layer, x, skipped), None
                x = plan.edited(layer.name, x)
        return x

    def _second_layers(self) -> tuple[LayerSpec, ...]:
        """Return the layers that the blended layers of second latents need, and these."""
        names = [layer.name for layer in self.layers]
        layers = self.layers[: names.index(self.plan.last_blended) + 1]
        blended_rgb = (layer.kind == "to_rgb" and self.plan.is_blended(layer.name) for layer in layers)
        last_rgb = max((place for place, is_one in enumerate(blended_rgb) if is_one), default=-1)
        sums = {layer.resolution for layer in layers if layer.kind == "conv"}
        return tuple(
            layer
            for place, layer in enumerate(layers)
            if not (layer.kind == "to_rgb" and place > last_rgb)
            and not (layer.kind == "skip" and layer.resolution not in sums)
        )

    def _activation(self, name: str, shape: tuple[int, ...]) -> str:
        dtype = "float16" if is_half(self.plan.key.precision) else "float32"
        return self.plan.buffer(name, shape, "intermediate", dtype)

    def _conv(self, layer: LayerSpec, x: str) -> str:
        slot = self.slots[layer.name]
        act = BiasAct.of_layer(layer.activation, layer.gain, layer.conv_clamp)
        noise_index = self.noise_layers.index(layer.name) if layer.has_noise else -1
        attributes: ModulatedConv | ModulatedUpConv
        if layer.kind == "up_conv":
            attributes = ModulatedUpConv(
                layer.in_channels,
                layer.out_channels,
                layer.kernel,
                layer.resolution,
                slot.style_offset,
                slot.demod_offset,
                noise_index,
                act,
                self.spec.resample_filter,
            )
        else:
            attributes = ModulatedConv(
                layer.in_channels,
                layer.out_channels,
                layer.kernel,
                layer.resolution,
                slot.style_offset,
                slot.demod_offset,
                noise_index,
                act,
            )
        name = f"synthesis.{layer.name}"
        weights = {role: self._conv_weight(layer.name, role) for role in ("weight", "bias")}
        inputs: tuple[str, ...] = (x, "styles", "demod")
        if layer.has_noise:
            weights["noise_strength"] = f"{name}.noise_strength"
            weights["noise_const"] = f"{name}.noise_const"
            inputs = (*inputs, "noise_source", "noise_gain")
        out = self._activation(layer.name, attributes.output_shape(self.plan.samples))
        op = "modulated_up_conv" if layer.kind == "up_conv" else "modulated_conv"
        self.plan.step(name, op, attributes, inputs, (out,), weights)
        return out

    def _conv_weight(self, layer: str, role: str) -> str:
        """Return the name of a convolution's weights."""
        if self.readout_width and layer == self.layers[-1].name:
            return f"drafts.{layer}.{role}"
        return f"synthesis.{layer}.{role}"

    def _style_weights(self) -> dict[str, str]:
        weights = {}
        for slot in self.styles.slots:
            for role in ("affine.weight", "affine.bias"):
                weights[f"{slot.layer}.{role}"] = f"synthesis.{slot.layer}.{role}"
            if slot.demod_offset >= 0:
                weights[f"{slot.layer}.weight"] = self._conv_weight(slot.layer, "weight")
        return weights

    def _to_rgb(self, layer: LayerSpec, x: str) -> None:
        attributes = ToRgb(
            layer.in_channels,
            layer.out_channels,
            layer.resolution,
            self.slots[layer.name].style_offset,
            None if layer.conv_clamp is None else layer.conv_clamp * layer.gain,
            self.spec.resample_filter,
            self.image is not None,
        )
        last = layer is self.layers[-1]
        name = f"synthesis.{layer.name}"
        shape = attributes.output_shape(self.plan.samples)
        made: tuple[str, BufferRole] = (f"image/{layer.resolution}", "intermediate")
        if self.plan.key.tap:
            made = layer.name, "intermediate"
        elif last:
            made = "image", "output"
        out = self.plan.picture(layer.name, shape, *made)
        inputs = (x, "styles") if self.image is None else (x, "styles", self.image)
        self.plan.step(name, "to_rgb", attributes, inputs, (out,), {"weight": f"{name}.weight", "bias": f"{name}.bias"})
        self.image = self.plan.blended_picture(layer.name, out, *made)

    def _readout(self, last: LayerSpec, x: str) -> None:
        attributes = ToRgb(
            last.out_channels, self.spec.img_channels, last.resolution, UNSTYLED, None, taps=(), adds_image=False
        )
        block = f"b{last.resolution}"
        self.image = self.plan.buffer("image", attributes.output_shape(self.plan.samples), "output")
        weights = {role: f"drafts.{block}.{role}" for role in ("weight", "bias")}
        self.plan.step(f"synthesis.{block}.draft", "to_rgb", attributes, (x,), (self.image,), weights)

    def _skip(self, layer: LayerSpec, x: str) -> str:
        attributes = SkipConv(
            layer.in_channels, layer.out_channels, layer.resolution, math.sqrt(0.5), self.spec.resample_filter
        )
        name = f"synthesis.{layer.name}"
        out = self._activation(layer.name, attributes.output_shape(self.plan.samples))
        self.plan.step(name, "skip_conv", attributes, (x,), (out,), {"weight": f"{name}.weight"})
        return out

    def _sum(self, layer: LayerSpec, x: str, skipped: str) -> str:
        attributes = Add((layer.resolution, layer.resolution, layer.out_channels))
        block = f"b{layer.resolution}"
        out = self._activation(f"{block}.sum", attributes.output_shape(self.plan.samples))
        self.plan.step(f"synthesis.{block}.sum", "add", attributes, (x, skipped), (out,))
        return out

    def _last_image(self) -> str:
        if self.image is None:
            raise ValueError("the network's layers end without a toRGB")
        return self.image


def _styles(layers: tuple[LayerSpec, ...], w_dim: int) -> Styles:
    slots = []
    style_width = demod_width = 0
    for layer in layers:
        if layer.w_index < 0:
            continue
        demodulates = layer.kind != "to_rgb"
        gain = 1.0 if demodulates else 1.0 / math.sqrt(layer.in_channels * layer.kernel**2)
        slots.append(
            StyleSlot(
                layer.name,
                layer.w_index,
                layer.in_channels,
                layer.out_channels,
                style_width,
                demod_width if demodulates else -1,
                gain,
            )
        )
        style_width += layer.in_channels
        demod_width += layer.out_channels if demodulates else 0
    return Styles(w_dim, tuple(slots), style_width, demod_width)


def _before_readout(layers: tuple[LayerSpec, ...], width: int) -> tuple[LayerSpec, ...]:
    """Return the layers of a draft without toRGB; the last has only the `width` channels that the readout reads."""
    *others, last = (layer for layer in layers if layer.kind != "to_rgb")
    return (*others, replace(last, out_channels=width))
