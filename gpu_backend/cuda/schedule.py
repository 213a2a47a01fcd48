"""A plan made ready for a GPU: kernel launches over regions of memory. Frozen data; nothing here touches a driver.

`gpu_backend.cuda.launches.lowering` makes it from a Plan; `gpu_backend.cuda.running.bound_plan` binds it to a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.plan import Plan
from gpu_backend.quick_dataclass import dataclass

RegionRole = Literal["input", "scratch", "zeroed", "kept", "lasting", "output"]
"""``input``: copied in before a run. ``zeroed``: scratch that is zero when bound and that every run leaves zero.
``kept``: zero when bound, and what a run leaves there the next one finds. ``lasting``: scratch of the first launches
that later runs read (`Schedule.kept_launches`). ``output``: copied out on request."""


@dataclass(frozen=True, slots=True)
class Region:
    """A named array on the device; activations are padded to whole 16-byte channel groups."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: RegionRole
    offset: int = -1
    """Bytes from the start of the schedule's one allocation."""

    @property
    def nbytes(self) -> int:
        """Bytes that its values take."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """An array made from the model's weights. Equal keys are the same array: plans of one model share it."""

    key: str
    make: Callable[[], NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Address:
    """A pointer argument: a region of the schedule or a constant by key, and bytes from its start."""

    name: str
    kind: Literal["region", "constant"]
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TensorMap:
    """How a GPU's TMA finds boxes in activations; a kernel gets it by value, as the driver writes it.

    Attributes
    ----------
    extents
        Channels, columns, rows, pictures, without gaps.
    box
        Channels, columns and rows of one copy; 32, 64 or 128 bytes of channels, swizzled in shared memory. What is
        outside the picture becomes zeros.
    splits_columns
        The box has columns in pairs, and gives the even ones before the odd ones; the extents' columns are even.
    itemsize
        Bytes of a number: 1 for e4m3, 2 for fp16, 4 for fp32.
    step
        Columns and rows of a picture from one of the box to the next.
    row
        Numbers from a row to the next one where columns leave a gap or reach into it; 0 where they do not.
    bounds
        A copy has successive pixels, as many as the box has rows, row after row of a rectangle (TMA's mode "im2col").
        Its first column and row from the picture's first pixel, and its last ones from the picture's last pixel, within
        -128 to 127; a kernel's tap moves it. None for copies of boxes.
    """

    address: Address
    extents: tuple[int, int, int, int]
    box: tuple[int, int, int]
    splits_columns: bool = False
    itemsize: int = 2
    step: int = 1
    row: int = 0
    bounds: tuple[tuple[int, int], tuple[int, int]] | None = None


Argument = Address | TensorMap | np.int32 | np.uint32 | np.float32 | None
"""None is the null pointer."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel of a frame.

    Attributes
    ----------
    layer
        As in the plan's Step: ``"synthesis.b64.conv1"``.
    label
        What runs, for the panel: ``"modulated_conv"``.
    shared_nbytes
        Dynamic shared memory.
    arguments
        By the names of the kernel's parameters, in their order.
    flops, nbytes
        Minimum operations and bytes of the operation, not of this kernel.
    is_fused
        False for a plain kernel that stands in for a fused one.
    reason
        The reason for the fallback, one phrase; empty for fused ones and in plans that are plain throughout.
    op
        The plan's operation that the launch belongs to: ``"adain_conv"``.
    optional
        Arguments that are null in runs that do not request the outputs that they name.
    pictures
        Other layers, of toRGB, whose pictures the launch computes.
    convolutions
        Layers of a launch that computes several, in their order.
    observed
        Argument that gets memory for the output of the layer, in a run beside that observes it; empty if the launch
        does not store it.
    stands_for
        Label of the layer's plain launch in whose place it runs, that it is checked against; empty for kernels that
        plain schedules have too, and for one whose output the next launch alone reads.
    """

    layer: str
    label: str
    recipe: KernelRecipe
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_nbytes: int
    arguments: Mapping[str, Argument]
    flops: int = 0
    nbytes: int = 0
    is_fused: bool = True
    reason: str = ""
    op: str = ""
    optional: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    convolutions: tuple[str, ...] = ()
    observed: str = ""
    stands_for: str = ""

    @property
    def region_names(self) -> tuple[str, ...]:
        """Regions among the arguments, tensor maps included, each once."""
        values = (item.address if isinstance(item, TensorMap) else item for item in self.arguments.values())
        found = (item.name for item in values if isinstance(item, Address) and item.kind == "region")
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Built:
    """A piece of a schedule: launches in order, and the constants and regions that only their builder knows of."""

    launches: tuple[Launch, ...]
    constants: tuple[Constant, ...] = ()
    regions: tuple[Region, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Built]) -> Built:
        """Put pieces one after another."""
        listed = tuple(parts)
        return cls(
            tuple(launch for part in listed for launch in part.launches),
            tuple(constant for part in listed for constant in part.constants),
            tuple(region for part in listed for region in part.regions),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Launches in order, the regions and constants that they name, and the bytes that all regions take.

    `starts` says what inputs hold before anything was copied into them, where that is not zeros.

    The first `kept_launches` are those of the plan's `kept_steps`, which a run may leave out.

    `zero_copy` takes the place of the last two launches in a run whose pixels and flags go straight to the host; None
    if there is no such kernel.
    """

    plan: Plan
    regions: tuple[Region, ...]
    constants: tuple[Constant, ...]
    launches: tuple[Launch, ...]
    nbytes: int
    starts: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    zero_copy: Launch | None = None
    kept_launches: int = 0

    @property
    def with_zero_copy(self) -> Schedule | None:
        """The same memory with the launches of a run whose bytes go straight to the host."""
        if self.zero_copy is None:
            return None
        return replace(self, launches=(*self.launches[:-2], self.zero_copy), zero_copy=None)

    @property
    def recipes(self) -> tuple[KernelRecipe, ...]:
        """Kernels to compile, each once, in order of first use."""
        return tuple(dict.fromkeys(launch.recipe for launch in self.all_launches))

    @property
    def optional_outputs(self) -> frozenset[str]:
        """Outputs that a run leaves out unless they are requested."""
        named = (launch.arguments[name] for launch in self.launches for name in launch.optional)
        return frozenset(item.name for item in named if isinstance(item, Address))

    @property
    def all_launches(self) -> tuple[Launch, ...]:
        """Those of every run, `zero_copy` included."""
        return self.launches if self.zero_copy is None else (*self.launches, self.zero_copy)
