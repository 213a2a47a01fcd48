"""One convolution of a schedule by itself, with a given tile or by the plain kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, replace

from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.launches.op_table import GPU_OPS
from gpu_backend.cuda.schedule import Address, Constant, Launch, Region, Schedule
from gpu_backend.cuda.tiles.table import KERNELS, Origin, TileTable, Tuned
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.model.model import Weights
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN2Spec
from gpu_backend.ops.adain_up_conv import BLUR
from gpu_backend.ops.kernels.conv_tile import ConvShape, ConvTile, Operands
from gpu_backend.plan.fusion import fuse
from gpu_backend.plan.plan import Plan, PlanKey, Step
from gpu_backend.quick_dataclass import dataclass

_SMALL = 4096


@dataclass(frozen=True, slots=True, eq=False)
class IsolatedConv:
    """A launch, and the regions and constants that its arguments name."""

    step: Step
    launch: Launch
    regions: tuple[Region, ...]
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class FusedExtras:
    """What is fused with the convolutions of a network, as in `ConvGeometry`."""

    taps: int = 1
    picture_channels: int = 0
    has_moments: bool = False

    @classmethod
    def of(cls, spec: NetworkSpec) -> FusedExtras:
        """Return those of a network."""
        if isinstance(spec, StyleGAN2Spec):
            return cls(len(spec.resample_filter), spec.img_channels)
        return cls(len(BLUR) + 1, has_moments=True) if isinstance(spec, StyleGAN1Spec) else cls()

    def explain(self, table: TileTable, shape: ConvShape) -> tuple[ConvTile, Origin]:
        """Return the tile that such a convolution runs with, and where the choice comes from. Raises NoTileError."""
        return table.explain(
            shape, taps=self.taps, picture_channels=self.picture_channels, has_moments=self.has_moments
        )


def conv_steps(plans: Iterable[Plan]) -> dict[ConvShape, tuple[Plan, Step]]:
    """Return every distinct shape of convolutions, with the first step that has it, in order.

    Of fp8 plans they are those that multiply e4m3; the others are those of an fp16 plan.
    """
    found: dict[ConvShape, tuple[Plan, Step]] = {}
    for plan in plans:
        of_fp8 = {step.next_style.layer for step in fuse(plan) if step.stores_fp8 and step.next_style is not None}
        for step in plan.steps:
            if plan.key.precision == "fp8" and step.layer not in of_fp8:
                continue
            op = GPU_OPS.get(step.op)  # some are part of others
            shape = None if op is None else op.shape_for_tuning(step, plan.key.batch)
            if shape is not None:
                precision = plan.key.precision
                operands: Operands = "fp16" if precision == "fp32" else precision
                found.setdefault(replace(shape, operands=operands), (plan, step))
    return found


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
        self._frames: dict[PlanKey, Schedule] = {}
        self._chosen = {shape: Tuned(target.tiles.choose(shape), 1.0) for shape in self._steps}

    @property
    def shapes(self) -> tuple[ConvShape, ...]:
        """All shapes, each once."""
        return tuple(self._steps)

    def runs_with_tile(self, shape: ConvShape) -> bool:
        """Return whether a frame computes such a convolution with a tile; some kernels divide it by other rules."""
        plan, step = self._steps[shape]
        if plan.key not in self._frames:
            self._frames[plan.key] = self._lower(plan, self._weights_for(None), self._target)
        launches = self._frames[plan.key].launches
        return any(item.layer == step.layer and item.recipe.stem in KERNELS for item in launches)

    def fused(self, shape: ConvShape, tile: ConvTile) -> IsolatedConv:
        """Return the convolution with a tile.

        Raises
        ------
        KernelError
            If the tile does not fit.
        """
        plan, step = self._steps[shape]
        given = self._target
        chosen = {**self._chosen, shape: Tuned(tile, 1.0)}
        table = TileTable(given.architecture, given.multiprocessors, chosen, {}, given.shared_nbytes_per_block)
        target = replace(given, tiles=table, streams=False, adds_pictures=False, folds=False)
        conv = _taken_out(self._lower(plan, self._weights_for(step), target), step, is_fused=True)
        if conv is None or not _has_tile(conv.launch, tile):
            raise KernelError("the tile does not fit this convolution")
        return conv

    def plain(self, shape: ConvShape) -> IsolatedConv:
        """Return the convolution by the plain kernel."""
        plan, step = self._steps[shape]
        schedule = self._lower(plan, self._weights_for(step), self._target, everything_plain=True)
        conv = _taken_out(schedule, step, is_fused=False)
        if conv is None:
            raise KernelError(f"{step.layer} has no plain kernel")
        return conv

    def _weights_for(self, step: Step | None) -> Weights:
        """Return the weights; those of other convolutions are truncated, with None those of all.

        Lowering looks for the largest weight of every layer, which takes longer than all that it does besides, and this
        is done for every tile.
        """
        kept = None if step is None else step.weights["weight"]
        return {
            name: array[:1, :1] if array.ndim == 4 and array.size > _SMALL and name != kept else array
            for name, array in self._weights.items()
        }


def _has_tile(launch: Launch, tile: ConvTile) -> bool:
    """Return whether a launch has the tile: one that does not fit is replaced by another."""
    defines = dict(launch.recipe.defines)
    return all(defines.get(macro, value) == value for macro, value in macros_of(tile).items())


def macros_of(tile: ConvTile) -> dict[str, str]:
    """Return the macros that a tile's choices become."""
    choices = {declared.name: getattr(tile, declared.name) for declared in fields(tile)}
    choices["use_wgmma"] = choices.pop("mma") == "wgmma"
    return {name.upper(): str(int(value)) for name, value in choices.items()}


def _taken_out(schedule: Schedule, step: Step, *, is_fused: bool) -> IsolatedConv | None:
    # The convolution comes first: a normalisation or toRGB's products follow it.
    launch = next(item for item in schedule.launches if (item.layer, item.op) == (step.layer, step.op))
    if launch.is_fused != is_fused:
        return None
    named = {(item.kind, item.name) for item in launch.arguments.values() if isinstance(item, Address)}
    return IsolatedConv(
        step,
        launch,
        tuple(region for region in schedule.regions if ("region", region.name) in named),
        tuple(constant for constant in schedule.constants if ("constant", constant.key) in named),
    )
