"""Which steps of a plan become one kernel on a GPU, as frozen data that can be printed and tested without a GPU.

The epilogue of a convolution takes in the noise, the skip of a resnet block, the style of the convolution that reads
the output, and the products of toRGB. A filtered activation of StyleGAN3 takes in that style, or toRGB's products. Bent
channels and blended samples are kernels of their own between two layers, which take in style and products in place of
the layer before; a blended picture takes in the display. Where its kernel can, a convolution, or a toRGB's picture,
takes in the blend with one kept second latent. Kept activations of second latents are a kernel between two layers, too;
the two parts of a plan that keeps them are fused each by itself.
In fp8 plans an up-convolution or a filtered activation from 64 x 64 on stores its output as e4m3 for the convolution
that alone reads it.
The convolution of StyleGAN1 accumulates the moments of the normalisation after it, which may be folded into the weights
of the convolution that reads the layer, or make the picture of toRGB. The learned constant is made with the styles, the
display with the last toRGB.
The picture of a toRGB before the last may be added up beside the next up-convolution.
`gpu_backend.cuda.launches.lowering` makes launches of each fused step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from gpu_backend.ops.blend_samples import BlendSamples
from gpu_backend.ops.filtered_lrelu import FilteredLrelu
from gpu_backend.ops.kernels.streaming_tile import MOST_CHANNELS
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import BINOMIAL_TAPS, ModulatedUpConv
from gpu_backend.plan.plan import Plan, Step, is_half
from gpu_backend.quick_dataclass import dataclass

_MODULATED = ("modulated_conv", "modulated_up_conv")
_ADAIN = ("adain_input", "adain_conv", "adain_up_conv")
_READERS = ("filtered_lrelu", "bend_channels", "blend_samples")
"""Operations besides modulated convolutions that read what a convolution stores; they take it without a style."""
LEAST_FP8_SIDE = 64
"""Side of the first layers that multiply e4m3: smaller ones are limited by latency, unless their sums are long."""

LEAST_FOLDED_SIDE = 256
"""Side of the first layers of StyleGAN1 whose normalisation is folded: a pass over smaller ones is as fast."""

_LONG_FP8_SUM = 1024 * 9
"""Products of a sum with which smaller layers of a StyleGAN3 multiply e4m3 too."""

_FP8_KERNELS = (1, 3)
"""Sides of the kernels that multiply e4m3."""

_FP8_CHANNELS = 16
"""An up-convolution's channels of e4m3 come in this number, so that each pixel begins at a multiple of 16 bytes."""

_UP_KERNEL = 3
_FP8_BLOCK, _LEAST_FP8_CHANNELS = 64, 128
"""Output channels of a block of the up-convolution that reads e4m3, and its fewest input channels that were measured:
from 128 to 64 at 256 x 256 it takes 55 instead of 86 us for eight pictures, but 12.9 instead of 11.4 for one."""

_LEAST_STREAMED_SIDE = 512
"""Of an up-convolution that the streaming kernel computes at any batch size, if it has no more than its channels."""

_ABSORBED = ("constant", "add", "to_display")
"""Operations without a kernel of their own."""


@dataclass(frozen=True, slots=True)
class FusedStep:
    """A step of a plan and what its kernels compute besides.

    Attributes
    ----------
    main
        The step that names the kernel.
    x
        Region that it reads: activations, for toRGB the parts of its products.
    y
        Region of the output, times the styles of `next_style`; None if nothing reads it.
    y_raw
        Region of the output without a style; None if nothing reads it.
    next_style
        Convolution that reads `y`, whose styles scale it.
    skip
        Skip convolution of a resnet block whose upsampled output is added.
    to_rgb
        toRGB whose products are computed. It is `main` itself if no kernel before computes them.
    picture
        toRGB before an up-convolution: blocks beside the up-convolution's add up its picture, which this step does not
        read.
    blend
        Blend with a second latent that is kept: style and products are those of its output.
    blended
        This step with the blend that alone reads its output, in place of both. Lowering decides.
    moments
        Whether per-channel moments are accumulated for the normalisation, which is part of this step.
    folds_into
        Convolution of StyleGAN1, not an up-convolution, whose weights may take in the normalisation: it alone reads the
        output, of one picture. Lowering decides.
    shows
        toRGB of these products, with the display, where a normalisation may make its picture. Lowering decides.
    is_shown
        Whether a tap shows the output.
    stores_fp8
        Whether `y` is e4m3.
    absorbed
        Other steps of the plan that are computed here and nowhere else.
    """

    main: Step
    x: str
    y: str | None = None
    y_raw: str | None = None
    next_style: Step | None = None
    skip: Step | None = None
    to_rgb: Step | None = None
    picture: Step | None = None
    blend: Step | None = None
    blended: FusedStep | None = None
    moments: bool = False
    folds_into: FusedStep | None = None
    shows: FusedStep | None = None
    is_shown: bool = False
    stores_fp8: bool = False
    absorbed: tuple[Step, ...] = ()

    @property
    def noise(self) -> int:
        """Index of the layer's noise among the network's noise layers; -1 without noise."""
        index: int = getattr(self.main.attributes, "noise_index", -1)
        return index

    def __str__(self) -> str:
        parts = [f"{self.main.layer}: {self.main.op}"]
        if self.noise >= 0:
            parts.append(f"noise {self.noise}")
        if self.moments:
            parts.append("moments, normalisation")
        if self.folds_into is not None:
            parts.append(f"weights of {self.folds_into.main.layer}")
        if self.skip is not None:
            parts.append(f"skip of {self.skip.layer}")
        if self.blended is not None:
            parts.append("perhaps the blend")
        if self.next_style is not None:
            parts.append(f"style of {self.next_style.layer}")
        if self.to_rgb is not None:
            own = self.to_rgb is self.main
            parts.append("its products" if own else f"products of {self.to_rgb.layer}")
        if self.shows is not None:
            parts.append(f"display of {self.shows.main.layer}")
        if self.picture is not None:
            parts.append(f"picture of {self.picture.layer}")
        parts += [step.op for step in self.absorbed if step.op not in ("add", "to_rgb")]
        if self.stores_fp8:
            parts.append("e4m3")
        written = [name for name in (self.y, self.y_raw) if name is not None]
        return " + ".join(parts) + (f" -> {', '.join(written)}" if written else "")


def fuse(plan: Plan, *, up_convs_read_fp8: bool = False) -> tuple[FusedStep, ...]:
    """Return the kernels' steps in order: the styles of a part first, then as in the plan. Each step is in one.

    Parameters
    ----------
    up_convs_read_fp8
        Whether up-convolutions of fp8 plans read e4m3, too: where the GPU has such kernels.
    """
    if plan.key.part == "mapping":
        return tuple(FusedStep(step, step.inputs[0], step.outputs[0]) for step in plan.steps)
    parts = (replace(plan, steps=steps, kept_steps=0) for steps in plan.parts)
    return tuple(step for part in parts for step in _Fusion(part, up_convs_read_fp8=up_convs_read_fp8).steps())


def multiplies_fp8(plan: Plan) -> bool:
    """Return whether a layer of a plan multiplies e4m3."""
    return any(step.stores_fp8 for step in fuse(plan))


def raw(buffer: str) -> str:
    """Return the region that holds a buffer before the style of the convolution that reads it."""
    return f"{buffer}/raw"


def kept_regions(plan: Plan) -> frozenset[str]:
    """Return the regions that a run leaves to later ones: raw activations, and pictures."""
    kept = {buffer.name for buffer in plan.buffers if buffer.role == "kept"}
    writers = ((step.op, name) for step in plan.steps for name in step.outputs if name in kept)
    return frozenset(raw(name) if op == "blend_samples" else name for op, name in writers)


def small(buffer: str) -> str:
    """Return the region of a skip at half the side; its reader upsamples it."""
    return f"{buffer}/small"


def parts(buffer: str) -> str:
    """Return the region of the partial products of the toRGB that reads a buffer."""
    return f"{buffer}/rgb"


def _with_picture(step: FusedStep, picture: Step) -> FusedStep:
    """Return an up-convolution with the picture that is added up beside it."""
    blended = None if step.blended is None else _with_picture(step.blended, picture)
    return replace(step, picture=picture, blended=blended, absorbed=(*step.absorbed, picture))


class _Fusion:
    def __init__(self, plan: Plan, *, up_convs_read_fp8: bool) -> None:
        self._plan = plan
        self._up_convs_read_fp8 = up_convs_read_fp8
        self._readers: dict[str, list[Step]] = {}
        for step in plan.steps:
            for name in step.inputs:
                self._readers.setdefault(name, []).append(step)
        self._writers = {name: step for step in plan.steps for name in step.outputs}
        self._constant = next((step for step in plan.steps if step.op == "constant"), None)
        self._fused_rgb: set[str] = set()
        """Layers of toRGB whose products a kernel before computes."""

    def steps(self) -> Iterator[FusedStep]:
        yield from (self._styles(step) for step in self._plan.steps if step.op == "styles")
        steps = [step for step in self._plan.steps if step.op != "styles" and step.op not in _ABSORBED]
        beside: Step | None = None
        for step, following in zip_longest(steps, steps[1:]):
            if self._waits(step, following):
                beside = step
            else:
                fused = self._fused(step)
                if beside is not None:
                    fused, beside = _with_picture(fused, beside), None
                if fused.to_rgb is not None:
                    self._fused_rgb.add(fused.to_rgb.layer)
                yield fused

    def _waits(self, step: Step, following: Step | None) -> bool:
        """Whether a toRGB's picture is added up beside the next step."""
        is_picture = step.op == "to_rgb" and step.layer in self._fused_rgb
        return is_picture and following is not None and following.op == "modulated_up_conv"

    def _fused(self, step: Step) -> FusedStep:
        if step.op in _MODULATED:
            return self._modulated(step)
        if step.op in _ADAIN:
            return self._adain(step)
        if step.op == "fourier_features":
            return self._convolution(step, f"{step.outputs[0]}/sines", step.outputs[0])
        if step.op == "filtered_lrelu":
            return self._filtered(step)
        if step.op == "blend_samples" and step.attributes.is_picture:
            return self._blended_picture(step)
        if step.op in ("bend_channels", "blend_samples"):
            return self._between_layers(step)
        if step.op == "skip_conv":
            is_shown = self._is_shown(step.outputs[0])
            return FusedStep(step, raw(step.inputs[0]), small(step.outputs[0]), is_shown=is_shown)
        if step.op == "to_rgb":
            return self._to_rgb(step)
        return FusedStep(step, step.inputs[0])

    def _styles(self, step: Step) -> FusedStep:
        constant = self._constant
        if constant is None or (reader := self._next_modulated(constant.outputs[0])) is None:
            return FusedStep(step, step.inputs[0])  # no style touches a StyleGAN1's constant before its first layer
        return FusedStep(step, step.inputs[0], constant.outputs[0], next_style=reader, absorbed=(constant,))

    def _modulated(self, step: Step) -> FusedStep:
        add = next((reader for reader in self._readers[step.outputs[0]] if reader.op == "add"), None)
        if add is None:
            return self._convolution(step, step.inputs[0], step.outputs[0])
        # A resnet block ends here: the sum is the output.
        written = (self._writers.get(name) for name in add.inputs)
        skip = next(writer for writer in written if writer is not None and writer.op == "skip_conv")
        return self._convolution(step, step.inputs[0], add.outputs[0], skip, (add,))

    def _convolution(
        self, step: Step, x: str, out: str, skip: Step | None = None, absorbed: tuple[Step, ...] = ()
    ) -> FusedStep:
        """Return a convolution whose output is the plan's buffer `out`."""
        readers = self._readers.get(out, [])
        next_style = self._next_modulated(out)
        is_shown = self._is_shown(out)
        is_read = is_shown or next_style is not None or any(reader.op in _READERS for reader in readers)
        blend = self._kept_blend_of(out) if step.op in _MODULATED else None
        blended: FusedStep | None = None
        if blend is not None:
            whole = self._convolution(step, x, blend.outputs[0], skip, (*absorbed, blend))
            blended = replace(whole, blend=blend, stores_fp8=False)
        return FusedStep(
            step,
            x,
            y=out if is_read else None,
            y_raw=raw(out) if any(reader.op == "skip_conv" for reader in readers) else None,
            next_style=next_style,
            skip=skip,
            to_rgb=next((reader for reader in readers if reader.op == "to_rgb" and reader.inputs[0] == out), None),
            blended=blended,
            is_shown=is_shown,
            stores_fp8=self._stores_fp8(step, readers),
            absorbed=absorbed,
        )

    def _stores_fp8(self, step: Step, readers: list[Step]) -> bool:
        """Whether a step's output is e4m3: a convolution alone reads it, or an up-convolution beside toRGB."""
        if self._plan.key.precision != "fp8":
            return False
        operations = [reader.op for reader in readers if reader.op != "to_rgb"]
        if step.op == "modulated_conv" and operations == ["modulated_up_conv"]:
            return self._up_convs_read_fp8 and self._reads_fp8(next(one for one in readers if one.op != "to_rgb"))
        if [reader.op for reader in readers] != ["modulated_conv"]:
            return False
        reader: ModulatedConv = readers[0].attributes
        if reader.kernel not in _FP8_KERNELS:
            return False
        settings: object = step.attributes
        if isinstance(settings, FilteredLrelu):
            return settings.out_size >= LEAST_FP8_SIDE or reader.in_channels * reader.kernel**2 >= _LONG_FP8_SUM
        if isinstance(settings, ModulatedUpConv):
            return settings.resolution >= LEAST_FP8_SIDE and settings.out_channels % _FP8_CHANNELS == 0
        return False

    def _reads_fp8(self, step: Step) -> bool:
        """Whether an up-convolution gains by reading e4m3; it stores e4m3, too."""
        settings: ModulatedUpConv = step.attributes
        is_usual = settings.taps == BINOMIAL_TAPS and settings.kernel == _UP_KERNEL
        if not is_usual or not self._stores_fp8(step, self._readers.get(step.outputs[0], [])):
            return False
        if settings.in_channels % _FP8_CHANNELS:
            return False
        if settings.resolution >= _LEAST_STREAMED_SIDE and settings.in_channels <= MOST_CHANNELS:
            return True
        return settings.out_channels % _FP8_BLOCK == 0 and settings.in_channels >= _LEAST_FP8_CHANNELS

    def _adain(self, step: Step) -> FusedStep:
        out, readers = step.outputs[0], self._readers.get(step.outputs[0], [])
        if step.op == "adain_input":
            absorbed = () if self._constant is None else (self._constant,)
            return FusedStep(step, step.inputs[0], out, is_shown=self._is_shown(out), absorbed=absorbed)
        rgb = readers[0] if [reader.op for reader in readers] == ["to_rgb"] else None
        y = out if rgb is None else None
        return FusedStep(
            step,
            step.inputs[0],
            y,
            to_rgb=rgb,
            moments=True,
            folds_into=self._folds_into(step, readers),
            shows=None if rgb is None or not self._display_of(rgb) else replace(self._to_rgb(rgb), to_rgb=None),
            is_shown=self._is_shown(out),
        )

    def _folds_into(self, step: Step, readers: list[Step]) -> FusedStep | None:
        key = self._plan.key
        is_one = key.batch == 1 and step.samples in (0, 1) and is_half(key.precision)
        if not is_one or step.attributes.resolution < LEAST_FOLDED_SIDE or len(readers) != 1:
            return None
        return self._adain(readers[0]) if readers[0].op == "adain_conv" else None

    def _filtered(self, step: Step) -> FusedStep:
        out, readers = step.outputs[0], self._readers.get(step.outputs[0], [])
        next_style = self._next_modulated(out)
        # What toRGB reads has no style of another layer.
        rgb = next((reader for reader in readers if reader.op == "to_rgb" and next_style is None), None)
        y = out if any(reader is not rgb for reader in readers) else None
        return FusedStep(
            step,
            step.inputs[0],
            y,
            next_style=next_style,
            to_rgb=rgb,
            is_shown=self._is_shown(out),
            stores_fp8=self._stores_fp8(step, readers),
        )

    def _between_layers(self, step: Step) -> FusedStep:
        """Return a change of activations, with toRGB's products: the layer before no longer has what toRGB reads."""
        out, readers = step.outputs[0], self._readers.get(step.outputs[0], [])
        rgb = next((reader for reader in readers if reader.op == "to_rgb"), None)
        is_raw = any(reader.op in ("to_rgb", "skip_conv") for reader in readers)
        is_raw |= step.op == "blend_samples" and step.attributes.is_keeping
        return FusedStep(
            step,
            step.inputs[0],
            y=out if any(reader.op not in ("to_rgb", "skip_conv") for reader in readers) else None,
            y_raw=raw(out) if is_raw else None,
            next_style=self._next_modulated(out),
            to_rgb=rgb,
            is_shown=self._is_shown(out),
        )

    def _blended_picture(self, step: Step) -> FusedStep:
        return FusedStep(step, step.inputs[0], step.outputs[0], absorbed=self._display_of(step))

    def _display_of(self, step: Step) -> tuple[Step, ...]:
        """Return the display of a step's picture; empty if another step reads it."""
        return tuple(reader for reader in self._readers.get(step.outputs[0], []) if reader.op == "to_display")[:1]

    def _to_rgb(self, step: Step) -> FusedStep:
        own = None if step.layer in self._fused_rgb else step
        fused = FusedStep(step, parts(step.inputs[0]), step.outputs[0], to_rgb=own, absorbed=self._display_of(step))
        blend = self._kept_blend_of(step.outputs[0])
        if blend is None:
            return fused
        absorbed = (*self._display_of(blend), blend)
        return replace(fused, blended=replace(fused, y=blend.outputs[0], blend=blend, absorbed=absorbed))

    def _kept_blend_of(self, buffer: str) -> Step | None:
        """Return the blend with one kept second latent that alone reads a buffer."""
        readers = self._readers.get(buffer, [])
        settings: object = readers[0].attributes if len(readers) == 1 else None
        is_usual = isinstance(settings, BlendSamples) and settings.reads_kept and len(settings.blends) == 1
        return readers[0] if is_usual else None

    def _next_modulated(self, buffer: str) -> Step | None:
        return next((reader for reader in self._readers.get(buffer, []) if reader.op in _MODULATED), None)

    def _is_shown(self, buffer: str) -> bool:
        return any(reader.op == "tap_display" for reader in self._readers.get(buffer, []))
