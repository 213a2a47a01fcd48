"""Makes the drags of a model, and keeps what they share: its network in torch, statistics of w, times of steps.

torch is imported when the first network is opened.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpu_backend.gradients.drag_settings import DragReport, DragSettings, Handle, Pixels
from gpu_backend.gradients.opening import open_gradients
from gpu_backend.model.model import Model
from gpu_backend.plan.edit_inputs import plan_edits
from gpu_backend.plan.plan import PlanEdits
from gpu_backend.recipe import NO_EDITS, LocalEdits, Noise, StoredLatent

if TYPE_CHECKING:
    from gpu_backend.gradients.drag import DragOptimizer
    from gpu_backend.gradients.latents import LatentStatistics
    from gpu_backend.gradients.network import DifferentiableNetwork

SLOWEST_STEP_S = 1 / 3
"""A drag whose step would take longer compares the features of a smaller block."""

_LEAST_BLOCK = 16

_FAR_TOO_SLOW = 4.0
"""Estimates are kept from this multiple of `SLOWEST_STEP_S` on: other work does not slow passes so much."""

_StepKey = tuple[int, PlanEdits, bool]
"""Block, edits, and whether the second latent of a blend changes, which takes two passes a step."""

SLOWER_WITH_EDITS = (
    "PyTorch drags a picture with bends, style channels or blends; without them the GPU's own kernels are faster."
)
SLOWER_NETWORK = "PyTorch drags points of this model, which takes longer than the GPU's own kernels: {}."


class TimedDrag:
    """A drag that reports the seconds of each iteration to `note`."""

    def __init__(self, drag: DragOptimizer, note: Callable[[float], None], clock: Callable[[], float]) -> None:
        self._drag = drag
        self._note = note
        self._clock = clock

    @property
    def report(self) -> DragReport:
        """The state after the last step."""
        return self._drag.report

    @property
    def latent(self) -> StoredLatent:
        """The present rows of w."""
        return self._drag.latent

    def set_target(self, index: int, target: Pixels) -> None:
        """Move a handle's target."""
        self._drag.set_target(index, target)

    def cancel(self) -> None:
        """End the drag, from any thread."""
        self._drag.cancel()

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        """Do a step; note its time if it was an iteration, and not a check of the handles."""
        before, began_s = self._drag.count, self._clock()
        report = self._drag.step(should_yield)
        if report.step > before:
            self._note(self._clock() - began_s)
        return report


class DragMaker:
    """Makes drags of one model at a time. Callable from any thread; calls wait for each other.

    A drag compares the features of the default block, or of the largest smaller one whose step takes at most
    `SLOWEST_STEP_S`. Before the first drag of a block, a step counts as three passes forward. A GPU's own kernels are
    always fast enough.

    Attributes
    ----------
    slower_because
        A sentence if the last drag takes a slower way than the GPU's own kernels, which know other networks, or this
        one without its edits; else empty.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._model: Model | None = None
        self._noise = Noise()
        self._network: DifferentiableNetwork | None = None
        self._statistics: LatentStatistics | None = None
        self._edits = NO_EDITS
        self._edited: DifferentiableNetwork | None = None
        """The network with the edits of the last drag, which knows the second latents of their blends."""
        self._step_s: dict[_StepKey, float] = {}
        self._too_slow_s: dict[_StepKey, float] = {}
        """Estimates of blocks that no drag compares."""
        self.slower_because = ""

    def prepare(self, model: Model, noise: Noise, edits: LocalEdits) -> None:
        """Open the network of a model, so that the first drag begins at once. Takes seconds. Raises LoomError."""
        with self._lock:
            network, _ = self._open(model, noise, edits)
            self._chosen_block(network)

    def make(
        self,
        model: Model,
        noise: Noise,
        edits: LocalEdits,
        latent: StoredLatent,
        handles: Sequence[Handle],
        settings: DragSettings,
    ) -> TimedDrag:
        """Make a drag that starts at a latent, of one row of w or of as many as the network has.

        With `settings.blend` the latent stays, and the drag starts at the second one of the blend. The points are those
        of the picture with its local edits, and so is the picture that is dragged.

        Raises
        ------
        LoomError
            If torch is missing, or latent, points and settings do not fit the model.
        """
        rows = latent.to_array()
        if latent.num_ws == 1:
            rows = np.repeat(rows, model.spec.num_ws, axis=0)
        with self._lock:
            network, statistics = self._open(model, noise, edits)
            is_second = settings.blend is not None
            moved = network if settings.blend is None else network.of_blend(settings.blend, rows)[0]
            block = self._chosen_block(moved, is_second=is_second) if settings.block is None else settings.block
        from gpu_backend.gradients.drag import DragOptimizer

        resolutions = model.facts.row_resolutions
        drag = DragOptimizer(network, statistics, rows, resolutions, handles, replace(settings, block=block))
        key = block, plan_edits(network.edits), is_second
        return TimedDrag(drag, lambda seconds: self._note(key, seconds), self._clock)

    def _open(self, model: Model, noise: Noise, edits: LocalEdits) -> tuple[DifferentiableNetwork, LatentStatistics]:
        if self._network is None or model is not self._model or noise != self._noise:
            network = open_gradients(model, noise)
            if self._statistics is None or model is not self._model:
                from gpu_backend.gradients.latents import latent_statistics

                self._statistics = latent_statistics(network)
                self._step_s.clear()
                self._too_slow_s.clear()
            self._model, self._noise, self._network = model, noise, network
            self._edited = None
        assert self._statistics is not None
        if self._edited is None or edits != self._edits:
            self._edited, self._edits = self._network.edited(edits), edits
        kernels = self._network.own_kernels
        is_slower = kernels is not None and not kernels.problem and self._edited.own_kernels is None
        self.slower_because = SLOWER_WITH_EDITS if is_slower else ""
        if self._network.kernels_refusal:
            self.slower_because = SLOWER_NETWORK.format(self._network.kernels_refusal)
        return self._edited, self._statistics

    def _chosen_block(self, network: DifferentiableNetwork, *, is_second: bool = False) -> int:
        from gpu_backend.gradients.drag import default_block

        block = default_block(network)
        if network.own_kernels is not None:
            network.own_kernels.prepare(network)
            if not network.own_kernels.problem:
                return block
        least = max(_LEAST_BLOCK, network.moved_side)
        smaller = sorted(side for side in network.blocks if least <= side < block)
        while smaller and self._seconds(network, block, is_second=is_second) > SLOWEST_STEP_S:
            block = smaller.pop()
        return block

    def _seconds(self, network: DifferentiableNetwork, block: int, *, is_second: bool) -> float:
        """Return the seconds of a step: measured, or those of three passes forward.

        The latter is not remembered unless it is far too slow, since other work may have slowed the passes.
        """
        key = block, plan_edits(network.edits), is_second
        if key in self._step_s:
            return self._step_s[key]
        if key in self._too_slow_s:
            return self._too_slow_s[key]
        import torch

        rows = network.mean_w.expand(1, network.spec.num_ws, -1)
        best_s = math.inf
        with torch.no_grad():
            for _ in range(2):  # the first pass also packs weights
                began_s = self._clock()
                network.features(rows, block)
                best_s = min(best_s, self._clock() - began_s)
        if 3 * best_s > _FAR_TOO_SLOW * SLOWEST_STEP_S:
            self._too_slow_s[key] = 3 * best_s
        return 3 * best_s

    def _note(self, key: _StepKey, seconds: float) -> None:
        """Record a step of a block with edits; the fastest counts, since other work slows some of them."""
        self._step_s[key] = min(seconds, self._step_s.get(key, seconds))
