"""One convolution taken out of a schedule, with the tile that one wants, or as the plain kernel does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace

from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.lowering import lower
from gpu_backend.cuda.schedule import Address, Constant, Launch, Region, Schedule
from gpu_backend.cuda.target import Target
from gpu_backend.cuda.tiles import TileTable, Tuned
from gpu_backend.model.model import Weights
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.ops.adain_conv import AdainConv
from gpu_backend.ops.adain_up_conv import BLUR, AdainUpConv
from gpu_backend.ops.kernels.conv_tile import ConvKind, ConvShape, ConvTile
from gpu_backend.ops.modulated_conv import ModulatedConv
from gpu_backend.ops.modulated_up_conv import ModulatedUpConv
from gpu_backend.plan.plan import Plan, Step

X, WEIGHT, Y, Y_RAW = 0, 1, 2, 3
RGB_WEIGHT, RGB_STYLE, RGB_PARTS = 14, 15, 16
"""Places among the arguments that fused and plain convolutions take alike."""

_CONVOLUTIONS = (ModulatedConv, ModulatedUpConv, AdainConv, AdainUpConv)
_SMALL = 4096
_STEMS = {
    False: ("modulated_conv", "modulated_up_conv"),
    True: ("plain_modulated_conv", "plain_modulated_up_conv"),
}


@dataclass(frozen=True, slots=True, eq=False)
class IsolatedConv:
    """A launch, and the regions and constants that its arguments name."""

    step: Step
    launch: Launch
    regions: tuple[Region, ...]
    constants: tuple[Constant, ...]


def fused_extras(spec: NetworkSpec) -> tuple[int, int]:
    """Return what rides along with convolutions: taps of the filter after one that doubles, channels of a picture."""
    if isinstance(spec, StyleGAN2Spec):
        return len(spec.resample_filter), spec.img_channels
    return (len(BLUR) + 1, 0) if isinstance(spec, StyleGAN1Spec) else (1, 0)


def conv_steps(plans: Iterable[Plan]) -> dict[ConvShape, tuple[Plan, Step]]:
    """Return every distinct shape of convolutions, with the first step that has it, in order."""
    found: dict[ConvShape, tuple[Plan, Step]] = {}
    for plan in plans:
        for step in plan.steps:
            shape = shape_of_step(step, plan.key.batch)
            if shape is not None:
                found.setdefault(shape, (plan, step))
    return found


def shape_of_step(step: Step, batch: int) -> ConvShape | None:
    """Return the shape that tables know a step by; None if it is no convolution of a layer."""
    attributes = step.attributes
    if not isinstance(attributes, _CONVOLUTIONS) or attributes.kernel not in (1, 3):
        return None
    cin, cout = (-(-count // 8) * 8 for count in (attributes.in_channels, attributes.out_channels))
    kind: ConvKind = "conv1x1" if attributes.kernel == 1 else "conv"
    if isinstance(attributes, ModulatedUpConv | AdainUpConv):
        kind = "up_conv"
    return ConvShape(kind, attributes.resolution, cin, cout, batch)


class IsolatedConvs:
    """Convolutions of some plans, one at a time."""

    def __init__(
        self,
        plans: Iterable[Plan],
        weights: Weights,
        target: Target,
        lowered: Callable[..., Schedule] = lower,
    ) -> None:
        self._steps = conv_steps(plans)
        self._weights = weights
        self._target = target
        self._lower = lowered
        self._chosen = {shape: Tuned(target.tiles.choose(shape), 1.0) for shape in self._steps}

    @property
    def shapes(self) -> tuple[ConvShape, ...]:
        """All shapes, each once."""
        return tuple(self._steps)

    def fused(self, shape: ConvShape, tile: ConvTile) -> IsolatedConv:
        """Return the convolution with a tile.

        Raises
        ------
        KernelError
            If it cannot be cut so.
        """
        plan, step = self._steps[shape]
        given = self._target
        chosen = {**self._chosen, shape: Tuned(tile, 1.0)}
        table = TileTable(given.architecture, given.multiprocessors, chosen, {}, given.shared_nbytes_per_block)
        target = replace(given, tiles=table)
        conv = _taken_out(self._lower(plan, self._weights_for(step), target), step, _STEMS[False])
        if conv is None or not _has_tile(conv.launch, tile):
            raise KernelError("the tile does not fit this convolution")
        return conv

    def plain(self, shape: ConvShape) -> IsolatedConv:
        """Return the convolution as the plain kernel does it."""
        plan, step = self._steps[shape]
        schedule = self._lower(plan, self._weights_for(step), self._target, everything_plain=True)
        conv = _taken_out(schedule, step, _STEMS[True])
        if conv is None:
            raise KernelError(f"{step.layer} has no plain kernel")
        return conv

    def _weights_for(self, step: Step) -> Weights:
        """Return the weights with those of other convolutions cut short.

        Lowering looks for the largest weight of every layer, which takes longer than all that it does besides, and this
        is done for every tile.
        """
        kept = step.weights["weight"]
        return {
            name: array[:1, :1] if array.ndim == 4 and array.size > _SMALL and name != kept else array
            for name, array in self._weights.items()
        }


def _has_tile(launch: Launch, tile: ConvTile) -> bool:
    """Tell whether a launch is cut as wanted: a tile that does not fit gives way to another."""
    defines = dict(launch.recipe.defines)
    return all(defines.get(macro, value) == value for macro, value in macros_of(tile).items())


def macros_of(tile: ConvTile) -> dict[str, str]:
    """Return the macros that a tile's choices become."""
    renamed = {"blocks": "MIN_BLOCKS", "mma": "WGMMA"}
    choices = {declared.name: getattr(tile, declared.name) for declared in fields(tile)}
    choices["mma"] = tile.mma == "wgmma"
    return {renamed.get(name, name.upper()): str(int(value)) for name, value in choices.items()}


def _taken_out(schedule: Schedule, step: Step, stems: tuple[str, ...]) -> IsolatedConv | None:
    launches = (item for item in schedule.launches if item.layer == step.layer and item.recipe.stem in stems)
    launch = next(launches, None)
    if launch is None:
        return None
    named = {(item.kind, item.name) for item in launch.arguments if isinstance(item, Address)}
    return IsolatedConv(
        step,
        launch,
        tuple(region for region in schedule.regions if ("region", region.name) in named),
        tuple(constant for constant in schedule.constants if ("constant", constant.key) in named),
    )
