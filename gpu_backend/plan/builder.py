"""Builder of plans: declares buffers, appends steps in execution order, and freezes the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gpu_backend.ops.bend_channels import BEND_INPUT, BEND_NUMBERS, BendChannels
from gpu_backend.ops.blend_samples import MASK_INPUT, BlendSamples
from gpu_backend.ops.styles import OFFSETS_INPUT
from gpu_backend.ops.tap_display import TAP_NUMBERS, TapDisplay
from gpu_backend.ops.to_display import MIDDLE, ToDisplay
from gpu_backend.plan.arena import place
from gpu_backend.plan.executor import TAP_VALUES
from gpu_backend.plan.plan import SECOND_ROWS, Buffer, BufferRole, Plan, PlanKey, Step, is_half

_OF_BOTH_PARTS = ("styles", "demod")
"""Buffers of both parts of a plan that keeps second latents, with rows for the part of more samples: kernels of a GPU
know them by these names."""


class PlanBuilder:
    """Collects buffers and steps for one key.

    A plan that keeps second latents (`PlanEdits.keeps_second`) begins with their steps: `second` has them appended.

    Parameters
    ----------
    w_rows
        Layer -> its row of w, for the layers of the plan that have one, in execution order.

    Attributes
    ----------
    samples
        Samples of the next steps: the pictures, and the second latents that run beside them up to the last layer that
        is blended; or the second latents that are kept.
    is_second
        Whether the next steps are those of second latents that are kept.
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
        self._second_count = len(key.edits.blends) if self._blends else 0
        self.keeps_second = key.edits.keeps_second and bool(self._blends)
        self.is_second = False
        self.samples = key.batch + (0 if self.keeps_second else self._second_count)
        self._kept_steps = 0
        self._named: set[str] = set()
        """Buffers that are declared in this part of the plan."""

    def buffer(self, name: str, shape: tuple[int, ...], role: BufferRole, dtype: str = "float32") -> str:
        """Declare a buffer and return its name; intermediates of second latents that are kept have names of their own.

        Raises
        ------
        ValueError
            If the name is taken.
        """
        if self.is_second and role == "intermediate" and name not in _OF_BOTH_PARTS:
            name = f"second/{name}"
        before = self._buffers.get(name)
        if before is not None and (name in self._named or name not in _OF_BOTH_PARTS):
            raise ValueError(f"the plan already has a buffer {name!r}")
        if before is not None:
            shape = (max(before.shape[0], shape[0]), *shape[1:])
        self._buffers[name] = Buffer(name, shape, dtype, role)
        self._named.add(name)
        return name

    def rows(self, num_ws: int, w_dim: int) -> str:
        """Return the input with the rows of w of the next steps' samples; declare it, and that of second latents."""
        if "ws" not in self._buffers:
            self.buffer("ws", (self.samples, num_ws, w_dim), "input")
            if self.keeps_second:
                self.buffer(SECOND_ROWS, (self._second_count, num_ws, w_dim), "input")
        return SECOND_ROWS if self.is_second else "ws"

    def _input(self, name: str, shape: tuple[int, ...]) -> str:
        """Return an input that several steps read; the first one declares it."""
        return name if name in self._buffers else self.buffer(name, shape, "input")

    @contextmanager
    def second(self) -> Iterator[None]:
        """Append the steps of the second latents that are kept, up to the last blended layer. Only as the first."""
        pictures, self.samples, self.is_second = self.samples, self._second_count, True
        yield
        self.samples, self.is_second = pictures, False
        self._kept_steps = len(self._steps)
        self._named.clear()

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
        return ws, self._input(OFFSETS_INPUT, (style_width,))

    def _bent(self, layer: str, x: str) -> str:
        """Append the step that bends the output `x` of a layer, if the key has it; return what later steps read."""
        if layer not in self.key.edits.bent:
            return x
        source = self._buffers[x]
        settings = BendChannels(source.shape[-1], source.shape[1])
        table = self._input(f"{BEND_INPUT}{layer}", (settings.channels, BEND_NUMBERS))
        out = self.buffer(f"{layer}/bent", (self.samples, *source.shape[1:]), "intermediate", source.dtype)
        self.step(f"synthesis.{layer}.bend", "bend_channels", settings, (x, table), (out,))
        return out

    def edited(self, layer: str, x: str, extent: float = 1.0) -> str:
        """Append the steps that bend and blend the output `x` of a layer, if the key has them; return the last output.

        Of second latents that are kept, it is bent and kept. `extent` counts the widths of the picture that the layer
        covers.
        """
        x = self._bent(layer, x)
        if layer not in self._blends:
            return x
        source = self._buffers[x]
        if self.is_second:
            return self._keep(layer, x, extent)
        shape = (self._samples_after(layer), *source.shape[1:])
        out = self.buffer(f"{layer}/blended", shape, "intermediate", source.dtype)
        return self._blend(layer, x, out, extent)

    def is_blended(self, layer: str) -> bool:
        """Whether the key blends a layer."""
        return layer in self._blends

    @property
    def last_blended(self) -> str:
        """The last layer that the key blends."""
        return next(reversed(self._blends))

    def picture(self, layer: str, shape: tuple[int, ...], name: str, role: BufferRole) -> str:
        """Declare and return what a toRGB writes: the buffer `name`, unless `blended_picture` or later runs read it."""
        if not self.is_blended(layer):
            return self.buffer(name, shape, role)
        return (
            self.buffer(_kept(layer), shape, "kept")
            if self.is_second
            else self.buffer(f"{layer}/alone", shape, "intermediate")
        )

    def blended_picture(self, layer: str, image: str, name: str, role: BufferRole) -> str:
        """Append the step that blends the picture of a toRGB, if the key does; return the buffer that others read."""
        if self.is_second or not self.is_blended(layer):
            return image
        source = self._buffers[image]
        out = self.buffer(name, (self._samples_after(layer), *source.shape[1:]), role, source.dtype)
        return self._blend(layer, image, out, is_picture=True)

    def _samples_after(self, layer: str) -> int:
        return self.key.batch if layer == self.last_blended else self.samples

    def _keep(self, layer: str, x: str, extent: float) -> str:
        side, channels = self._buffers[x].shape[1], self._buffers[x].shape[3]
        dtype = "float16" if is_half(self.key.precision) else "float32"
        out = self.buffer(_kept(layer), (self.samples, side, side, channels), "kept", dtype)
        settings = BlendSamples(channels, side, 0, (), self.samples, extent)
        self.step(f"synthesis.{layer}.keep", "blend_samples", settings, (x,), (out,))
        return out

    def _blend(self, layer: str, x: str, out: str, extent: float = 1.0, *, is_picture: bool = False) -> str:
        source, blends, after = self._buffers[x], self._blends[layer], self._samples_after(layer)
        side, channels = source.shape[1], source.shape[3]
        kept = (_kept(layer),) if self.keeps_second else ()
        settings = BlendSamples(channels, side, self.key.batch, blends, after, extent, is_picture, bool(kept))
        # Layers that cover the picture alone share the mask of their side.
        place = str(settings.mask_side) if extent == 1.0 else f"{side}x{extent:.6g}"
        shape = settings.mask_side, settings.mask_side
        masks = tuple(self._input(f"{MASK_INPUT}{blend}/{place}", shape) for blend in blends)
        self.step(f"synthesis.{layer}.blend", "blend_samples", settings, (x, *kept, *masks), (out,))
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
        return Plan(self.key, buffers, tuple(self._steps), arena_nbytes, self._kept_steps)

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


def _kept(layer: str) -> str:
    """Return the buffer that keeps a layer of the second latents."""
    return f"kept/{layer}"
