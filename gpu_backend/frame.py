"""A rendered picture, its request, what it cost, and what is known of a layer that is shown instead of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpu_backend.request import RenderRequest

KernelState = Literal["fused", "plain", "fallback"]
"""``fused``: as meant. ``plain``: asked to be plain. ``fallback``: plain because the fused one failed."""

TimingSource = Literal["cpu", "events", "cupti"]


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """How a kernel sits on a GPU.

    Attributes
    ----------
    grid, block
        Blocks of the grid and threads of a block, along x, y, z.
    registers
        A thread's.
    shared_nbytes
        A block's shared memory, static and dynamic.
    spill_nbytes
        A thread's local memory.
    occupancy
        Theoretical, 0..1: warps that fit a multiprocessor at once, of those that it could hold.
    waves
        Blocks of the grid, divided by those that the whole GPU holds at once.
    state, reason
        Whether this is the kernel that was meant; the reason is empty unless it is a ``fallback``.
    digest
        SHA-256 of the kernel's source.
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


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time that one step of the plan took.

    Attributes
    ----------
    layer
        Where in the network: ``"synthesis.b64.conv1"``.
    kernel
        Which operation ran.
    flops, nbytes
        Operations and bytes moved that the work asks for.
    facts
        None on the CPU.
    """

    layer: str
    kernel: str
    time_us: float
    flops: int
    nbytes: int
    facts: KernelFacts | None = None


@dataclass(frozen=True, slots=True)
class FrameTimings:
    """What a frame cost.

    Attributes
    ----------
    total_ms
        From the request being taken to the bytes being there.
    latent_ms
        Recipe to w rows.
    synthesis_ms
        All steps of the plan; on a GPU with the copies in and out, from handing over to the bytes being there.
    steps
        In execution order; empty when this frame was not measured step by step.
    device_ms
        Time of the device's own work, for one of several frames of a run an equal part of it; None on the CPU.
    host_ms
        Everything that this process did for the frame, waiting excluded. On the CPU that is the picture itself too.
    timing_source
        Where the times of `steps` come from.
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
    """Some numbers of a layer. `std` is the population's. Where one of them is not finite, neither are these."""

    mean: float
    std: float
    min: float
    max: float

    @property
    def peak(self) -> float:
        """Largest magnitude: what a normalised channel is divided by."""
        return max(abs(self.min), abs(self.max))


@dataclass(frozen=True, slots=True, eq=False)
class TappedLayer:
    """A layer that a frame shows. All of it is about the layer's own numbers, before normalisation and gain.

    Attributes
    ----------
    layer
        Its official name without ``synthesis.``.
    shape
        (channels, height, width).
    shown
        One for each channel that the tap names, in its order.
    whole
        All channels together.
    values
        (height, width) float32, read-only: the first of the channels that are shown, if the request wants it.
    """

    layer: str
    shape: tuple[int, int, int]
    shown: tuple[ValueStatistics, ...]
    whole: ValueStatistics
    values: NDArray[np.float32] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A picture that owns its bytes.

    Attributes
    ----------
    request
        The request that this frame answers.
    pixels
        (height, width, 4) uint8, contiguous and read-only: B, G, R, X as Qt's Format_RGB32 has them in memory, X = 255;
        with `has_alpha` the fourth byte is alpha (not premultiplied, Format_ARGB32).
    is_draft
        True when the picture left the network early, at a lower resolution than the model's.
    tap
        What is known of the layer that is shown; None for a picture.
    ws
        Rows of w that the picture was made of, (num_ws, w_dim) float32; None where a frame was not rendered.
    """

    request: RenderRequest
    pixels: NDArray[np.uint8]
    timings: FrameTimings
    is_draft: bool = False
    has_alpha: bool = False
    warnings: tuple[str, ...] = field(default=())
    tap: TappedLayer | None = None
    ws: NDArray[np.float32] | None = field(default=None, compare=False)

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
