"""A drag on a GPU: each step is one CUDA graph, and the host reads back no more than the handles and the loss.

Steps that are quick are enqueued together, since waiting for one costs a tenth of it.

The formulas are those of `gpu_backend.gradients.objective`, `motion` and `solvers.Adam`. Templates, positions, Adam's
moments and counters are in device memory. The host changes targets and which handles pull, between two steps.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.cuda.driver.arguments import Value
from gpu_backend.cuda.driver.interface import Graph
from gpu_backend.gradients.drag_engine import Progress
from gpu_backend.gradients.gpu.kernels import GradientKernel
from gpu_backend.gradients.gpu.memory import DeviceArrays
from gpu_backend.gradients.gpu.network import RowUpdate
from gpu_backend.gradients.gpu.open_network import GpuGradients
from gpu_backend.gradients.motion import CLOSE, REACHED, REST_STEPS, is_resting
from gpu_backend.gradients.objective import DragTerms
from gpu_backend.gradients.sampling import feature_scale, patch_offsets, sample
from gpu_backend.gradients.tracking import windows

_HANDLE_FLOATS = 12
_POSITION, _TARGET, _PLACES, _TRAIL = slice(0, 2), slice(2, 4), slice(0, 4), slice(4, 6)
_PULLS, _DIFFERENCE, _STEPS, _RESTED = 6, 7, 9, 10
"""Columns of a handle's state, as parts/gradient_handle.cuh has them."""
_SLACK = 1e-3
"""Difference from a template, in units of the features' scale, that counts as none: about fp16's rounding."""
_LEVEL = 16.0
"""Magnitude of a handle's gradients while they are fp16: those of what should stay are a thousandth of it."""
_CALL_S = 4e-3
"""Seconds of steps that are enqueued together: previews wait for them."""
_LEAST_S = 1e-6
_LOSS_GROUPS = 512
"""Groups of eight channels of a block of gradient_loss."""


class GpuHandle:
    """A handle with its state in device memory; see `HandleMotion`. Lengths are in samples."""

    def __init__(self, drag: GpuDrag, index: int) -> None:
        self._drag, self._index = drag, index

    @property
    def position(self) -> Tensor:
        """Where the optimiser holds it, (2,)."""
        return torch.from_numpy(self._state[_POSITION].copy())

    @property
    def target(self) -> Tensor:
        """Where it goes, (2,)."""
        return torch.from_numpy(self._state[_TARGET].copy())

    @property
    def left(self) -> tuple[float, float]:
        """What is left of the way from the position to the target, (x, y) in samples."""
        x, y, target_x, target_y = self._state[_PLACES].tolist()
        return target_x - x, target_y - y

    @property
    def has_arrived(self) -> bool:
        """Whether the handle is at its target, with the features of the template or as near as they come."""
        rested = self._state[_RESTED]
        enough = REACHED if rested >= REST_STEPS else CLOSE
        return bool(rested > 0 and self._state[_DIFFERENCE] <= enough)

    @property
    def is_resting(self) -> bool:
        """Whether it is at its target, with the features of its template, or after some steps without."""
        return is_resting(float(self._state[_RESTED]), float(self._state[_DIFFERENCE]))

    def aim(self, target: Tensor) -> None:
        """Go to another target (2,) from here."""
        state = self._state
        state[_TARGET] = target.numpy()
        state[_RESTED] = state[_STEPS] = 0.0
        self._drag.mark_changed()

    @property
    def _state(self) -> NDArray[np.float32]:
        row: NDArray[np.float32] = self._drag.states[self._index]
        return row


class GpuDrag:
    """Implements `gpu_backend.gradients.drag_engine.DragEngine` on a GPU.

    Parameters
    ----------
    gpu
        The network on its device. It serves one drag at a time, the newest.
    terms
        What the drag compares, and what may change.
    radius, rate
        As in `DragSettings`.

    Raises
    ------
    DeviceMemoryError, DeviceLostError
        If the device refuses; nothing is left then.
    """

    def __init__(self, gpu: GpuGradients, terms: DragTerms, *, radius: int, rate: float) -> None:
        self._gpu, self._terms, self._radius, self._rate = gpu, terms, radius, rate
        self.grid = terms.grid
        self.states = np.zeros((0, _HANDLE_FLOATS), np.float32)
        """(handles, 12); written through `GpuHandle`."""
        self._templates: list[NDArray[np.float32]] = []
        self._is_changed = True
        self._step_s = _CALL_S
        """Seconds of a step of the last call."""
        self._unit = 1.0
        """What gradients are divided by while they are fp16."""
        self._graph: Graph | None = None
        self._pictures: dict[int, tuple[int, Graph | None]] = {}
        """Side -> address of the picture there, and what computes it."""
        with gpu.work(self, begins=True) as driver:
            self._driver = driver
            self._arrays = DeviceArrays(driver)
            self._begin()

    def motion(self, source: Tensor, target: Tensor) -> GpuHandle:
        """Return a new handle; all are made before the first step."""
        state = np.zeros((1, _HANDLE_FLOATS), np.float32)
        state[0, _POSITION] = state[0, _TRAIL] = source.numpy()
        state[0, _TARGET] = target.numpy()
        self.states = np.concatenate([self.states, state])
        self._templates.append(sample(self.first, source + patch_offsets(self._radius, source)).numpy())
        return GpuHandle(self, len(self.states) - 1)

    def choose(self, motions: Sequence[GpuHandle]) -> None:
        """Say which handles pull."""
        self.states[:, _PULLS] = 0.0
        for motion in motions:
            self.states[motion._index, _PULLS] = 1.0
        self.mark_changed()

    def hold(self, places: Sequence[tuple[GpuHandle, Tensor]]) -> None:
        """Let handles take hold of what is at other places now, after a step."""
        side, across = self._terms.block, 2 * self._radius + 1
        features = np.empty((side, side, self._channels), np.float16)
        template = np.zeros((across * across, self._channels), np.float32)
        with self._gpu.work(self) as driver:
            driver.download(features, self._features)
            for handle, place in places:
                found = windows(features, place.double().numpy()[None], self._radius)
                template[:, : self._used] = found.reshape(len(template), -1)[:, : self._used]
                driver.upload(self._templates_at + handle._index * template.nbytes, template)
                state = handle._state
                state[_POSITION] = state[_TRAIL] = place.numpy()
                state[_STEPS] = state[_RESTED] = 0.0
        self.mark_changed()

    def mark(self) -> None:
        """Remember the present latent; before the first step it is the start."""
        if self._graph is not None:
            with self._gpu.work(self) as driver:
                driver.copy(self._marked, self._shift, self._shift_nbytes)
                driver.copy(self._marked_ws, self._gpu.network.ws, self._ws_nbytes)

    def go_back(self) -> bool:
        """Return to the latent that was remembered; steps are half as long from there on. False before the first one.

        The step is captured again.
        """
        if self._graph is None:
            return False
        network = self._gpu.network
        with self._gpu.work(self) as driver:
            driver.copy(self._shift, self._marked, self._shift_nbytes)
            driver.copy(network.ws, self._marked_ws, self._ws_nbytes)
            for address, nbytes in self._moments:
                driver.zero(address, nbytes)
            network.forward(self._terms.block)
            self._rate *= 0.5
            self._graph = self._arrays.capture(self._enqueue)
        return True

    def mark_changed(self) -> None:
        """The states differ from the device's."""
        self._is_changed = True

    def step(self, most: int = 1) -> Progress:
        """Do steps of Adam, after each of which the handles move, and wait for them once.

        One at first, then as many of `most` as take `_CALL_S` by what steps took before.
        """
        with self._gpu.work(self) as driver:
            if self._graph is None:
                self._bind()
            assert self._graph is not None
            count = max(1, min(most, int(_CALL_S / self._step_s)))
            began_s = time.perf_counter()
            if self._is_changed:
                driver.upload(self._states_at, self.states)
                self._is_changed = False
            for _ in range(count):
                driver.replay(self._graph)
            driver.copy_out(self._read.ctypes.data, self._states_at, self._read.nbytes)
            driver.record(self._gpu.done)
            driver.wait(self._gpu.done)
            self._step_s = max(time.perf_counter() - began_s, _LEAST_S) / count
        self.states[:] = self._read[: self.states.size].reshape(self.states.shape)
        pulling = self.states[:, _PULLS] > 0
        loss = self.states[pulling, _DIFFERENCE].sum() + self._read[self.states.size :].sum(dtype=np.float64)
        return Progress(count, float(loss))

    @property
    def rows(self) -> NDArray[np.float32]:
        """The present rows of w, (num_ws, w_dim)."""
        spec = self._gpu.network.spec
        found = np.empty((spec.num_ws, spec.w_dim), np.float32)
        with self._gpu.work(self) as driver:
            driver.download(found, self._gpu.network.ws)
        return found

    def picture(self, side: int) -> Tensor:
        """Return the present picture, (1, 3, side, side). The second one of a side is captured, and later replayed."""
        found = np.empty((1, 3, side, side), np.float32)

        def enqueue() -> None:
            self._enqueue_picture(side)

        with self._gpu.work(self) as driver:
            address, graph = self._pictures.get(side, (0, None))
            if not address:
                address = self._enqueue_picture(side)  # loads the kernels, which a capture cannot
            else:
                graph = graph or self._arrays.capture(enqueue)
                driver.replay(graph)
            self._pictures[side] = address, graph
            driver.download(found, address)
        return torch.from_numpy(found)

    def _enqueue_picture(self, side: int) -> int:
        """Enqueue the present picture; return its address."""
        self._gpu.network.forward(side)
        return self._gpu.network.picture(side)

    def _begin(self) -> None:
        """Compute the features of the start."""
        network, driver, block = self._gpu.network, self._driver, self._terms.block
        driver.upload(network.ws, np.ascontiguousarray(self._terms.start, np.float32))
        network.forward(block)
        self._features, self._used, self._channels = network.features(block)
        self._pixels = block * block
        nbytes = 2 * self._pixels * self._channels
        self._first = self._arrays.empty(nbytes)
        driver.copy(self._first, self._features, nbytes)
        found = np.empty((block, block, self._channels), np.float16)
        driver.download(found, self._first)
        self.first = torch.from_numpy(found[..., : self._used].astype(np.float32)).permute(2, 0, 1)[None].contiguous()
        self.scale = feature_scale(self.first)

    def _bind(self) -> None:
        """Capture a step."""
        arrays, terms, w_dim = self._arrays, self._terms, self._gpu.network.spec.w_dim
        points = (2 * self._radius + 1) ** 2
        handles = len(self.states)
        templates = np.zeros((handles, points, self._channels), np.float32)
        if handles:
            templates[..., : self._used] = np.stack(self._templates)
        self._templates_at = arrays.upload(templates)
        self._gradient = arrays.empty(2 * self._pixels * self._channels)
        self._mask = 0 if terms.mask is None else arrays.upload(np.ascontiguousarray(terms.mask, np.float32))
        self._blocks = -(-self._pixels * self._channels // 8 // _LOSS_GROUPS)
        # Side by side, so that one copy reads both back.
        self._states_at = arrays.empty(self.states.nbytes + 4 * self._blocks)
        self._parts = self._states_at + self.states.nbytes
        self._start = arrays.upload(np.ascontiguousarray(terms.start, np.float32))
        self._deviation = arrays.upload(np.ascontiguousarray(terms.deviation, np.float32))
        rows = terms.rows.stop - terms.rows.start
        self._shift_nbytes, self._ws_nbytes = 4 * rows * w_dim, 4 * terms.start.size
        self._mean, self._shift, self._marked = (arrays.empty(self._shift_nbytes) for _ in range(3))
        self._square, self._count = (arrays.empty(4 * rows) for _ in range(2))
        self._moments = (self._mean, self._shift_nbytes), (self._square, 4 * rows), (self._count, 4 * rows)
        self._marked_ws = arrays.upload(np.ascontiguousarray(terms.start, np.float32))
        numbers = self.states.size + self._blocks
        self._read = arrays.pinned(numbers)
        self._graph = arrays.capture(self._enqueue)

    def _enqueue(self) -> None:
        network, terms = self._gpu.network, self._terms
        handles, points = len(self.states), (2 * self._radius + 1) ** 2
        features = np.uint64(self._features)
        network.forward(terms.block)
        everywhere = 1.0 / (self._pixels * self._used * self.scale)
        at_handles = 1.0 / (points * self._used * self.scale)
        faint, keep = terms.faint * everywhere, (terms.keep if self._mask else 0.0) * everywhere
        self._unit = (at_handles if handles else max(faint, keep, 1e-6 * everywhere)) / _LEVEL
        network.launch(
            GradientKernel("gradient_loss"),
            (self._blocks, 1, 1),
            (256, 1, 1),
            {
                "features": features,
                "first": np.uint64(self._first),
                "mask": np.uint64(self._mask) if self._mask else None,
                "gradient": np.uint64(self._gradient),
                "parts": np.uint64(self._parts),
                "pixels": self._pixels,
                "channels": self._channels,
                "faint": faint,
                "keep": keep,
                "unit": self._unit,
            },
        )
        if handles:
            network.launch(
                GradientKernel("gradient_handles"),
                (handles, 1, 1),
                (1024, 1, 1),
                {
                    "features": features,
                    "states": np.uint64(self._states_at),
                    "templates": np.uint64(self._templates_at),
                    "gradient": np.uint64(self._gradient),
                    "side": terms.block,
                    "channels": self._channels,
                    "used": self._used,
                    "radius": self._radius,
                    "unit": at_handles,
                    "level": _LEVEL,
                    "slack": _SLACK * self.scale,
                },
            )
        moments: dict[str, Value] = {
            "start": np.uint64(self._start),
            "deviation": np.uint64(self._deviation),
            "mean": np.uint64(self._mean),
            "square": np.uint64(self._square),
            "count": np.uint64(self._count),
            "shift": np.uint64(self._shift),
            "rate": self._rate,
        }
        network.backward(terms.block, self._gradient, unit=self._unit, update=RowUpdate(terms.rows, moments))
