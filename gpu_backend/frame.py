"""A rendered picture with its request, its timings, and the statistics of a tapped layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from gpu_backend.lazy_names import LazyModule
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.request import RenderRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")

KernelState = Literal["fused", "plain", "fallback"]
"""``fused``: the fused kernel. ``plain``: plain by request. ``fallback``: plain because the fused one failed."""

TimingSource = Literal["cpu", "events", "cupti"]


@dataclass(frozen=True, slots=True)
class KernelCounters:
    """What the GPU's hardware counters say of a kernel, measured on request; None where there is nothing to count.

    Attributes
    ----------
    occupancy
        Achieved occupancy, 0..1: mean of the warps that were resident while a multiprocessor was active, divided by
        its maximum.
    sm_share, dram_share
        Throughput of the multiprocessors and of the device memory, 0..1, divided by its peak.
    load_sectors, store_sectors
        Mean of the 32-byte sectors that a warp's global load or store touches: 4 are ideal for 4 bytes per thread, 32
        mean that every thread touches its own. Copies by TMA are no loads.
    """

    occupancy: float | None
    sm_share: float | None
    dram_share: float | None
    load_sectors: float | None
    store_sectors: float | None


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """Launch configuration and resource use of a kernel on a GPU.

    Attributes
    ----------
    grid, block
        Blocks of the grid and threads of a block, along x, y, z.
    registers
        Registers per thread.
    shared_nbytes
        Shared memory per block, static and dynamic.
    spill_nbytes
        Local memory per thread.
    occupancy
        Theoretical occupancy, 0..1: resident warps per multiprocessor, divided by its maximum.
    waves
        Blocks of the grid, divided by the blocks that are resident on the whole GPU at once.
    state, reason
        Whether this is the fused kernel; `reason` is empty unless `state` is ``fallback``.
    digest
        SHA-256 of the kernel's source.
    limits
        What limits the theoretical occupancy, more than one where they are equal: "registers", "shared memory",
        "warps", "blocks". Empty if unknown.
    counters
        None unless they were measured.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    shared_nbytes: int
    spill_nbytes: int
    occupancy: float
    waves: float
    state: KernelState
    reason: str
    digest: str
    limits: tuple[str, ...] = ()
    counters: KernelCounters | None = None


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time that one step of the plan took.

    Attributes
    ----------
    layer
        Layer name: ``"synthesis.b64.conv1"``.
    kernel
        Name of the operation.
    flops, nbytes
        Minimum floating-point operations and bytes moved of the operation.
    facts
        None on the CPU.
    """

    layer: str
    kernel: str
    time_us: float
    flops: int
    nbytes: int
    facts: KernelFacts | None = None


def with_second(steps: Sequence[StepTime], count: int) -> tuple[StepTime, ...]:
    """Return steps whose first `count` are those of second latents of blends, with their layers named so.

    The pictures have steps of the same layers: ``"synthesis.b64.conv1.second"`` tells them apart.
    """
    return (*(replace(step, layer=f"{step.layer}.second") for step in steps[:count]), *steps[count:])


@dataclass(frozen=True, slots=True)
class FrameTimings:
    """Timings of a frame in milliseconds.

    Attributes
    ----------
    total_ms
        From the arrival of the request to the finished pixels.
    latent_ms
        Recipe to w rows.
    synthesis_ms
        All steps of the plan; on a GPU from submission to the finished pixels, copies included.
    steps
        In execution order; empty unless the request measured its steps.
    device_ms
        Busy time of the device, divided equally among the frames of a batch; None on the CPU. If the last kernel writes
        a picture's bytes to the host itself, their way there is part of it.
    host_ms
        Work of this process for the frame, without waiting. On the CPU this includes rendering.
    timing_source
        Clock that measured `steps`.
    """

    total_ms: float
    latent_ms: float
    synthesis_ms: float
    steps: tuple[StepTime, ...] = ()
    device_ms: float | None = None
    host_ms: float | None = None
    timing_source: TimingSource = "cpu"


@dataclass(frozen=True, slots=True)
class ValueStatistics:
    """Statistics of values of a layer. `std` is the population's. A value that is not finite makes them not finite."""

    mean: float
    std: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, eq=False)
class TappedLayer:
    """Data of the tapped layer that a frame shows, before normalisation and gain.

    Attributes
    ----------
    layer
        Its official name without ``synthesis.``.
    shape
        (channels, height, width).
    shown
        Statistics of each channel of the tap, in its order.
    whole
        Statistics of all channels together.
    values
        (height, width) float32, read-only: the first shown channel, if requested.
    """

    layer: str
    shape: tuple[int, int, int]
    shown: tuple[ValueStatistics, ...]
    whole: ValueStatistics
    values: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A rendered picture. It owns its pixels.

    Attributes
    ----------
    request
        The request that this frame answers.
    pixels
        (height, width, 4) uint8, contiguous and read-only: B, G, R, X as Qt's Format_RGB32 has them in memory, X = 255;
        with `has_alpha` the fourth byte is alpha (not premultiplied, Format_ARGB32).
    is_draft
        True for an early exit at a lower resolution than the model's.
    tap
        Data of the tapped layer; None for a picture.
    ws
        Rows of w of the picture, (num_ws, w_dim) float32; None if the frame was not rendered.
    image
        The network's output before it is clamped and rounded, (height, width, channels) float32, nominally -1..1,
        read-only; None unless requested.
    """

    request: RenderRequest
    pixels: NDArray[np.uint8]
    timings: FrameTimings
    is_draft: bool = False
    has_alpha: bool = False
    warnings: tuple[str, ...] = field(default=())
    tap: TappedLayer | None = None
    ws: NDArray[np.float32] | None = field(default=None, compare=False)
    image: NDArray[np.float32] | None = None

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.pixels.shape[1])

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.pixels.shape[0])

    def to_rgb(self) -> NDArray[np.uint8]:
        """Return the picture as (height, width, 3) uint8 R, G, B, or (height, width, 4) R, G, B, A with alpha."""
        order = [2, 1, 0, 3] if self.has_alpha else [2, 1, 0]
        return np.ascontiguousarray(self.pixels[..., order])
