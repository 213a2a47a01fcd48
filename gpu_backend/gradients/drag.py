"""Dragging points of a picture: an optimiser of w rows that moves what is at a handle to the handle's target.

Motion supervision (Pan et al. 2023, section 3.2) on the features F of one block, with the templates T of `motion`::

    loss = sum_i |F(h_i + q) - T_i(q)| + keep * mean(mask |F - F_0|) + faint * mean |F - F_0|

in units of the features' scale. A pin is a handle whose target is where it is. The features are sampled at their own
resolution. StyleGAN2 steps by Adam on gradients, the other families by Gauss-Newton on finite differences (`solvers`).

Every few steps the points are followed through the pictures since the last such step (`tracking`). The loss does not
see those pictures, so a handle whose content did not come along is noticed, and no longer pulls. If that is half of the
handles, the steps were too long for the picture: the drag goes back to the last check, up to three times, and goes on
with steps half as long. Features at a target may be close to the template before the content is there: then the handle
takes hold of its content where tracking found it, with a template of the present features, and goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Event
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from gpu_backend.errors import CancelledError, RequestError
from gpu_backend.gradients.drag_engine import DragEngine, Motion, TorchEngine
from gpu_backend.gradients.drag_settings import (
    MAX_HANDLES,
    DragReport,
    DragSettings,
    Handle,
    HandleState,
    Pixels,
    Solver,
    default_drag_rows,
)
from gpu_backend.gradients.latents import LatentStatistics
from gpu_backend.gradients.network import DifferentiableNetwork, cancelled_by
from gpu_backend.gradients.objective import DragTerms, mask_at_features
from gpu_backend.gradients.sampling import mean_texture, patch_offsets, sample, structure_tensor
from gpu_backend.gradients.tracking import track
from gpu_backend.model.latent_file import stored_latent
from gpu_backend.number_array import number_array
from gpu_backend.plain_text import type_with_article
from gpu_backend.recipe import StoredLatent

_WEAK = 0.02
"""Texture along the drag, as a share of the features' mean, below which a handle has nothing to hold on to."""
_FLAT = 0.01
"""The same of the picture. Noise leaves texture in the features of a clear sky, where the picture has at most 0.01 of
its mean in the bundled model; clouds, haze and water have 0.02 and more."""
_FLAT_RADIUS = 5
"""Of the patch around a handle in the tracked picture, in its pixels."""
_LOST_PX = 3.0
"""Error of tracking back, in pixels of the tracked picture, from which a handle counts as lost."""
_LOST_LIKENESS = 0.3
_OFF_PX = 0.75
"""Distance of a handle's content from its target, in pixels of the tracked picture, from which it is held again."""
_NEARER = 0.9
"""Share of the shortest distance at a hold before, from which content has come no nearer."""
_MOST_FAILURES = 2
"""Holds without coming nearer, after which a handle stays as it is."""
_MOST_RETURNS = 3
"""Returns to the latent of a check, each of which halves the steps, before handles count as lost."""
_SOONEST = 2
"""Steps of Adam between checks while a handle is on its way: tracking loses what moves far from check to check."""
_MOST_STEPS = 8
"""Steps of one call, if no check comes before."""
_COVERED = 0.9
"""Share of other latents of blends from which a handle is on another picture than the one that changes."""


def default_block(network: DifferentiableNetwork) -> int:
    """Return the block at a quarter of the picture's resolution, at least 16 and at most 128 where there is one.

    Where edits move what the picture shows, it is one after them.
    """
    wanted = max(min(128, max(16, network.spec.resolution // 4)), network.moved_side)
    return max((block for block in network.blocks if block <= wanted), default=network.blocks[0])


class DragOptimizer:
    """A drag under way: an object without threads, stepped by its owner, who ends it by stepping no more.

    Parameters
    ----------
    network
        Of the model; drags may share it.
    statistics
        Of its w.
    rows
        (num_ws, w_dim): where the drag starts; with `settings.blend` the rows of the picture itself, which stay.
    row_resolutions
        `ModelFacts.row_resolutions`.
    handles
        At least one, at most `MAX_HANDLES` with the pins.
    settings
        What may change.

    Raises
    ------
    RequestError
        If rows, points, mask or settings do not fit the network, or a number is not finite.
    TypeError
        If a handle is no Handle.
    """

    def __init__(
        self,
        network: DifferentiableNetwork,
        statistics: LatentStatistics,
        rows: ArrayLike,
        row_resolutions: Sequence[int],
        handles: Sequence[Handle],
        settings: DragSettings | None = None,
    ) -> None:
        settings = settings or DragSettings()
        start = number_array(rows, "Rows of w")
        _check(network, start, handles, settings)
        if settings.blend is not None:
            network, start = network.of_blend(settings.blend, start)
        self._network, self._settings = network, settings
        self._cancelled = Event()
        chosen = default_drag_rows(row_resolutions) if settings.rows is None else settings.rows
        end = network.spec.num_ws if chosen.last is None else min(chosen.last + 1, network.spec.num_ws)
        block = default_block(network) if settings.block is None else settings.block
        grid = network.grid(block)
        terms = DragTerms(
            block=block,
            grid=grid,
            start=start,
            rows=slice(chosen.first, end),
            deviation=statistics.deviation.float().cpu().numpy(),
            mask=None if settings.mask is None else mask_at_features(settings.mask, grid),
            keep=settings.keep,
            faint=settings.faint,
        )
        solver = settings.solver or ("adam" if network.spec.family == "stylegan2" else "gauss-newton")
        self._engine = _engine_of(network, terms, statistics, settings, solver)
        self._handles = [self._motion(handle.source, handle.target) for handle in handles]
        self._pins = [self._motion(pin, pin) for pin in settings.pins]
        self._sources = [handle.source for handle in handles]
        self._targets = [handle.target for handle in handles]
        self._first_picture: Tensor | None = None
        """The picture of the start, in which handles are tracked; known from the first check on."""
        self._is_lost = [False] * len(handles)
        self._is_covered = self._covered_handles(network.covered(block))
        self._is_weak = [self._is_featureless(index) for index in range(len(handles))]
        self._count = self._since_check = 0
        self._loss = math.nan
        self._side = network.tracked_resolution
        self._tracked: list[tuple[float, float]] = list(self._sources)
        self._soonest = min(_SOONEST, settings.check_every) if solver == "adam" else settings.check_every
        self._interval = self._soonest
        """Steps to the next check."""
        self._held_px = [math.inf] * len(handles)
        """The shortest distance of a handle's content from its target when it was held again."""
        self._failures = [0] * len(handles)
        """Holds that brought a handle's content no nearer."""
        self._returns = 0
        """Returns to the latent of a check."""
        self._seen: Tensor | None = None
        """The picture of the last check."""
        self._choose_motions()

    @property
    def count(self) -> int:
        """Finished iterations, as in `report`, which takes longer to make."""
        return self._count

    @property
    def report(self) -> DragReport:
        """The state after the last step."""
        states = tuple(self._state(index) for index in range(len(self._handles)))
        is_judged = not self._settings.check_every or not self._since_check
        return DragReport(self._count, self._loss, states, self._has_arrived and is_judged)

    @property
    def rows(self) -> NDArray[np.float32]:
        """The present rows of w of the latent that changes, (num_ws, w_dim)."""
        return self._engine.rows

    @property
    def latent(self) -> StoredLatent:
        """The present rows as a stored latent. Raises RequestError if they are not finite."""
        return stored_latent(self.rows)

    def set_target(self, index: int, target: Pixels) -> None:
        """Move a handle's target while the drag goes on. Raises RequestError."""
        _check_points([target])
        self._targets[index] = target
        self._held_px[index], self._failures[index] = math.inf, 0
        self._handles[index].aim(self._samples(target))
        if self._count == 0 or self._is_weak[index]:  # a handle that has pulled goes on
            self._is_weak[index] = self._is_featureless(index)
        self._choose_motions()

    def step(self, should_yield: Callable[[], bool] | None = None) -> DragReport:
        """Do one bounded piece of work: a pass forward and backward, or a few quick ones, or a check of the handles.

        A check is a picture, and one more pass forward where the drag goes back. Nothing is done as long as no handle
        pulls, or after `cancel`.

        Parameters
        ----------
        should_yield
            Puts off a check of the handles if it returns true, since that needs a picture, which can take seconds.
            Callable from any thread.

        Raises
        ------
        CancelledError
            If a check was put off: the next step repeats it.
        """
        is_cancelled = self._cancelled.is_set
        if is_cancelled():
            return self.report
        is_check = self._is_check_due
        waits = should_yield if is_check and should_yield is not None else is_cancelled
        try:
            with cancelled_by(lambda: is_cancelled() or waits()):
                return self._step(is_check=is_check)
        except CancelledError:
            if is_cancelled():
                return self.report
            raise

    def cancel(self) -> None:
        """End the drag, from any thread: a step under way returns early where it can, and later ones do nothing."""
        self._cancelled.set()

    def _step(self, *, is_check: bool) -> DragReport:
        if is_check:
            self._check_handles()
            return self.report
        if all(self._is_abandoned(index) for index in range(len(self._handles))):
            return self.report
        done = self._engine.step(self._interval - self._since_check if self._settings.check_every else _MOST_STEPS)
        if done.iterations:
            self._loss = done.loss
            self._count += done.iterations
            self._since_check += done.iterations
        return self.report

    @property
    def _has_arrived(self) -> bool:
        """Whether every handle that pulls is at its target."""
        return all(motion.has_arrived or self._is_abandoned(index) for index, motion in enumerate(self._handles))

    @property
    def _is_check_due(self) -> bool:
        """Whether it is time to track: at the start, every few iterations, and where all have arrived."""
        if not self._settings.check_every:
            return False
        is_late = self._since_check >= self._interval
        return self._seen is None or is_late or (self._since_check > 0 and self._has_arrived)

    def _motion(self, source: Pixels, target: Pixels) -> Motion:
        motion: Motion = self._engine.motion(self._samples(source), self._samples(target))
        return motion

    def _samples(self, point: Pixels) -> Tensor:
        """Return the place of a point in samples of the features, (2,)."""
        return self._engine.grid.to_samples(self._engine.first.new_tensor(point))

    def _choose_motions(self) -> None:
        """Let the handles that hold on to something pull, and the pins."""
        pulling = [motion for index, motion in enumerate(self._handles) if not self._is_abandoned(index)]
        self._engine.choose(pulling + self._pins)

    def _is_abandoned(self, index: int) -> bool:
        return self._is_weak[index] or self._is_lost[index] or self._is_covered[index]

    def _covered_handles(self, covered: Tensor | None) -> list[bool]:
        """Return for each handle whether it is on another picture of a blend than the one that changes."""
        if covered is None:
            return [False] * len(self._handles)
        places = torch.stack([motion.position for motion in self._handles]).to(covered)
        return [float(share) > _COVERED for share in sample(covered[None, None], places)]

    def _is_featureless(self, index: int) -> bool:
        """Whether features or picture hardly change along the way of a handle."""
        motion, picture = self._handles[index], self._first_picture
        way = motion.target - motion.position
        if float(way.norm()) < 1e-6:
            return False
        way = way / way.norm()
        if _texture_along(way, self._engine.first, motion.position, self._settings.radius) < _WEAK:
            return True
        if picture is None:
            return False
        place = self._in_tracked(torch.tensor(self._sources[index], dtype=torch.float64)).to(picture)
        return _texture_along(way.to(picture), picture, place, _FLAT_RADIUS) < _FLAT

    def _in_tracked(self, points: Tensor) -> Tensor:
        """Return positions in the tracked picture of positions in the full one."""
        scale = self._side / self._network.spec.resolution
        return (points + 0.5) * scale - 0.5

    @torch.no_grad()
    def _check_handles(self) -> None:
        """Follow the handles from the picture of the last check to the present one."""
        picture = self._engine.picture(self._side)
        if self._seen is not None:
            scale = self._side / self._network.spec.resolution
            points = self._in_tracked(torch.tensor(self._tracked, dtype=torch.float64))
            found = track(self._seen, picture, points.to(picture))
            is_off = ((found.error > _LOST_PX) | (found.likeness < _LOST_LIKENESS)).tolist()
            if self._goes_back(is_off):
                return
            self._tracked = [(x, y) for x, y in ((found.points.double().cpu() + 0.5) / scale - 0.5).tolist()]
            self._is_lost = [was or off for was, off in zip(self._is_lost, is_off, strict=True)]
        else:
            self._first_picture = picture
            self._is_weak = [self._is_featureless(index) for index in range(len(self._handles))]
        self._interval = self._next_interval()
        self._hold_again()
        self._choose_motions()
        self._seen = picture
        self._since_check = 0
        self._engine.mark()

    def _goes_back(self, is_off: Sequence[bool]) -> bool:
        """Return to the latent of the last check, with shorter steps, if the picture changed too much to track.

        That is so if half of the handles that pull were not found again; fewer are on content that is gone. The
        handles hold on to their content there.
        """
        pulling = [index for index in range(len(self._handles)) if not self._is_abandoned(index)]
        off = sum(is_off[index] for index in pulling)
        if not off or 2 * off < len(pulling) or self._returns == _MOST_RETURNS or not self._engine.go_back():
            return False
        self._returns += 1
        self._engine.hold([(self._handles[index], self._samples(self._tracked[index])) for index in pulling])
        self._since_check = 0
        return True

    def _next_interval(self) -> int:
        """Return the steps to the next check: few while a handle that pulls is on its way, then ever more."""
        pulling = [motion for index, motion in enumerate(self._handles) if not self._is_abandoned(index)]
        is_resting = all(motion.is_resting for motion in pulling)
        return min(self._settings.check_every, 2 * self._interval) if is_resting else self._soonest

    def _hold_again(self) -> None:
        """Let handles that are at their targets without their content take hold of it where tracking found it."""
        places = []
        for index, motion in enumerate(self._handles):
            if self._is_abandoned(index) or not motion.is_resting:
                continue
            left = math.dist(self._tracked[index], self._targets[index])
            if left * self._side / self._network.spec.resolution <= _OFF_PX:
                continue
            self._failures[index] += left > _NEARER * self._held_px[index]
            if self._failures[index] > _MOST_FAILURES:
                continue
            self._held_px[index] = min(left, self._held_px[index])
            places.append((motion, self._samples(self._tracked[index])))
        if places:
            self._engine.hold(places)

    def _state(self, index: int) -> HandleState:
        motion, target = self._handles[index], self._targets[index]
        pitch = self._engine.grid.pixel_pitch
        x, y = motion.left
        return HandleState(
            position=(target[0] - x / pitch, target[1] - y / pitch),
            tracked=self._tracked[index],
            distance=math.hypot(x, y) / pitch,
            is_weak=self._is_weak[index],
            is_lost=self._is_lost[index],
            is_covered=self._is_covered[index],
        )


def _texture_along(way: Tensor, values: Tensor, place: Tensor, radius: int) -> float:
    """Return the texture along a unit vector around a place (2,) of a map (1, channels, side, side); 1 is its mean."""
    tensor = structure_tensor(values, place + patch_offsets(radius, way))
    return float(way @ tensor @ way) / max(mean_texture(values), 1e-12)


def _engine_of(
    network: DifferentiableNetwork,
    terms: DragTerms,
    statistics: LatentStatistics,
    settings: DragSettings,
    solver: Solver,
) -> DragEngine[Any]:
    """Return what computes the steps: own kernels where the network has them on a GPU, else torch."""
    if solver == "adam" and network.own_kernels is not None:
        own: DragEngine[Any] | None
        own = network.own_kernels.drag(network, terms, radius=settings.radius, rate=settings.rate)
        if own is not None:
            return own
    directions = None if solver == "adam" else statistics.directions
    return TorchEngine(network, terms, directions=directions, radius=settings.radius, rate=settings.rate)


def _check(
    network: DifferentiableNetwork, rows: NDArray[np.float32], handles: Sequence[Handle], settings: DragSettings
) -> None:
    """Raise RequestError for what does not fit."""
    shape = (network.spec.num_ws, network.spec.w_dim)
    if rows.shape != shape or not np.isfinite(rows).all():
        raise RequestError(f"A drag starts from {shape[0]} finite rows of {shape[1]} numbers, not {rows.shape}.")
    given: Sequence[object] = handles
    for handle in given:
        if not isinstance(handle, Handle):
            raise TypeError(f"The handles of a drag are a list of Handle, but one is {type_with_article(handle)}.")
    if not 1 <= len(handles) <= MAX_HANDLES - len(settings.pins):
        found = f"{len(handles)} and {len(settings.pins)}"
        raise RequestError(f"A drag has at least 1 handle, and up to {MAX_HANDLES} handles and pins, not {found}.")
    _check_points([point for handle in handles for point in (handle.source, handle.target)] + list(settings.pins))
    if settings.mask is not None:
        mask = settings.mask
        if mask.ndim != 2 or not mask.size or not (np.isfinite(mask).all() and mask.min() >= 0 and mask.max() <= 1):
            raise RequestError(f"A mask must be (height, width) numbers in 0..1, but one is {mask.shape}.")
    if settings.rows is not None:
        first, last = settings.rows.first, settings.rows.last
        if not 0 <= first < shape[0] or (last is not None and last < first):
            raise RequestError(f"The rows that a drag may change must be in 0..{shape[0] - 1}, not {first}..{last}.")
    numbers = (settings.rate, settings.keep, settings.faint)
    if not all(math.isfinite(number) and number >= 0 for number in numbers) or not 0 <= settings.radius <= 16:
        raise RequestError(
            "The rate, weights and radius of a drag must be numbers of at least 0, the radius at most 16."
        )


def _check_points(points: Sequence[Pixels]) -> None:
    if not all(math.isfinite(number) for point in points for number in point):
        raise RequestError("The points of a drag must be finite numbers, but one is not.")
