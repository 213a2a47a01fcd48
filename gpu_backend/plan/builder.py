"""Builder of plans: declares buffers, appends steps in execution order, and freezes the result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_backend.ops.bend_channels import BEND_INPUT, BEND_NUMBERS, BendChannels
from gpu_backend.ops.blend_samples import MASK_INPUT, BlendSamples
from gpu_backend.ops.styles import OFFSETS_INPUT
from gpu_backend.ops.tap_display import TAP_NUMBERS, TapDisplay
from gpu_backend.ops.to_display import MIDDLE, ToDisplay
from gpu_backend.plan.arena import place
from gpu_backend.plan.executor import TAP_VALUES
from gpu_backend.plan.plan import Buffer, BufferRole, Plan, PlanKey, Step


class PlanBuilder:
    """Collects buffers and steps for one key.

    Parameters
    ----------
    w_rows
        Layer -> its row of w, for the layers of the plan that have one, in execution order.

    Attributes
    ----------
    samples
        Samples of the next steps: those of the second latents are there up to the last layer that is blended.
    """

    def __init__(self, key: PlanKey, w_rows: Mapping[str, int] | None = None) -> None:
        self.key = key
        self._buffers: dict[str, Buffer] = {}
        self._steps: list[Step] = []
        chosen = (
            (layer, tuple(k for k, rows in enumerate(key.edits.blends) if rows.holds(row)))
            for layer, row in (w_rows or {}).items()
        )
        self._blends = {layer: blends for layer, blends in chosen if blends}
        self.samples = key.batch + (len(key.edits.blends) if self._blends else 0)

    def buffer(self, name: str, shape: tuple[int, ...], role: BufferRole, dtype: str = "float32") -> str:
        """Declare a buffer and return its name.

        Raises
        ------
        ValueError
            If the name is taken.
        """
        if name in self._buffers:
            raise ValueError(f"the plan already has a buffer {name!r}")
        self._buffers[name] = Buffer(name, shape, dtype, role)
        return name

    def step(
        self,
        layer: str,
        op: str,
        attributes: Any,
        inputs: tuple[str, ...],
        outputs: tuple[str, ...],
        weights: Mapping[str, str] | None = None,
    ) -> None:
        """Append a step over declared buffers; `attributes` gives its operations and bytes.

        Raises
        ------
        ValueError
            If a buffer is not declared.
        """
        for name in (*inputs, *outputs):
            if name not in self._buffers:
                raise ValueError(f"step {layer!r} names an unknown buffer {name!r}")
        samples = self.samples
        self._steps.append(
            Step(
                layer,
                op,
                attributes,
                inputs,
                outputs,
                dict(weights or {}),
                attributes.flops(samples),
                attributes.nbytes(samples),
                samples,
            )
        )

    def style_inputs(self, ws: str, style_width: int) -> tuple[str, ...]:
        """Return the inputs of the styles step, and declare the offsets if the key has them."""
        if not self.key.edits.shifts_styles:
            return (ws,)
        return ws, self.buffer(OFFSETS_INPUT, (style_width,), "input")

    def _bent(self, layer: str, x: str) -> str:
        """Append the step that bends the output `x` of a layer, if the key has it; return what later steps read."""
        if layer not in self.key.edits.bent:
            return x
        source = self._buffers[x]
        settings = BendChannels(source.shape[-1], source.shape[1])
        table = self.buffer(f"{BEND_INPUT}{layer}", (settings.channels, BEND_NUMBERS), "input")
        out = self.buffer(f"{layer}/bent", source.shape, "intermediate", source.dtype)
        self.step(f"synthesis.{layer}.bend", "bend_channels", settings, (x, table), (out,))
        return out

    def edited(self, layer: str, x: str, extent: float = 1.0) -> str:
        """Append the steps that bend and blend the output `x` of a layer, if the key has them; return the last output.

        `extent` counts the widths of the picture that the layer covers.
        """
        x = self._bent(layer, x)
        if layer not in self._blends:
            return x
        source = self._buffers[x]
        shape = (self._samples_after(layer), *source.shape[1:])
        out = self.buffer(f"{layer}/blended", shape, "intermediate", source.dtype)
        return self._blend(layer, x, out, extent)

    def is_blended(self, layer: str) -> bool:
        """Whether the key blends a layer."""
        return layer in self._blends

    def blended_picture(self, layer: str, image: str, name: str, role: BufferRole) -> str:
        """Append the step that blends the picture of a toRGB; return its output, the new buffer `name`."""
        source = self._buffers[image]
        out = self.buffer(name, (self._samples_after(layer), *source.shape[1:]), role, source.dtype)
        return self._blend(layer, image, out, is_picture=True)

    def _samples_after(self, layer: str) -> int:
        return self.key.batch if layer == next(reversed(self._blends)) else self.samples

    def _blend(self, layer: str, x: str, out: str, extent: float = 1.0, *, is_picture: bool = False) -> str:
        source, blends, after = self._buffers[x], self._blends[layer], self._samples_after(layer)
        side, channels = source.shape[1], source.shape[3]
        settings = BlendSamples(channels, side, self.key.batch, blends, after, extent, is_picture)
        # Layers that cover the picture alone share the mask of their side.
        place = str(settings.mask_side) if extent == 1.0 else f"{side}x{extent:.6g}"
        masks = tuple(f"{MASK_INPUT}{blend}/{place}" for blend in blends)
        for mask in masks:
            if mask not in self._buffers:
                self.buffer(mask, (settings.mask_side, settings.mask_side), "input")
        self.step(f"synthesis.{layer}.blend", "blend_samples", settings, (x, *masks), (out,))
        self.samples = after
        return out

    def show_picture(self, image: str, channels: int, middle: float = MIDDLE) -> None:
        """Append the step that converts the picture to bytes; `middle` is the byte value of 0."""
        self._show("to_display", ToDisplay(channels, self.key.resolution, middle), (image,))

    def show_tap(self, layer: str, channels: int, side: int) -> None:
        """Append the step that converts a layer's output to bytes, and the `tap` input that controls it."""
        tap = self.buffer("tap", (TAP_NUMBERS,), "input")
        settings, batch = TapDisplay(channels, side), self.key.batch
        statistics = self.buffer("statistics", settings.statistics_shape(batch), "output")
        values = self.buffer(TAP_VALUES, settings.values_shape(batch), "output")
        self._show("tap_display", settings, (layer, tap), (statistics, values))

    def freeze(self) -> Plan:
        """Place the buffers and return the plan."""
        buffers, arena_nbytes = place(tuple(self._buffers.values()), self._steps)
        return Plan(self.key, buffers, tuple(self._steps), arena_nbytes)

    def _show(
        self,
        op: str,
        attributes: ToDisplay | TapDisplay,
        inputs: tuple[str, ...],
        others: tuple[str, ...] = (),
    ) -> None:
        pixels = self.buffer("pixels", attributes.output_shape(self.key.batch), "output", "uint8")
        flags = self.buffer("flags", (self.key.batch,), "output", "uint32")
        self.step("synthesis.display", op, attributes, inputs, (pixels, flags, *others))
