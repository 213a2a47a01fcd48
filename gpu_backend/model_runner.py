"""Runs the mapping and synthesis networks of a model on a device, with one plan for each batch and resolution.

Noise and local edits stay in the buffers of a bound plan between runs. They are copied only when they differ from the
previous run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpu_backend.errors import CancelledError, DeviceError, DeviceLostError, DeviceMemoryError
from gpu_backend.model.model import Model
from gpu_backend.plan.edit_inputs import edit_inputs, mask_inputs
from gpu_backend.plan.executor import FRAME_OUTPUTS, CountsKernels, Executor, PendingRun
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.kept_second import key_that_keeps
from gpu_backend.plan.noise_inputs import noise_gains, noise_source
from gpu_backend.plan.plan import NOT_EDITED, SECOND_ROWS, Plan, PlanEdits, PlanKey
from gpu_backend.plan.plan_cache import CachedPlan, PlanCache
from gpu_backend.plan.tap_input import tap_input
from gpu_backend.recipe import NO_EDITS, LocalEdits, Noise, Tap

Outputs = Mapping[str, NDArray[Any]]

Matrix = tuple[float, ...]
"""Nine numbers, row-major 3 x 3."""

_END = object()


class _Loss:
    """A context that remembers that the device was lost inside it. It is entered a few times per frame."""

    def __init__(self) -> None:
        self.error: DeviceLostError | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, DeviceLostError):
            # A copy, because the traceback of the original would keep its stack frames alive.
            self.error = DeviceLostError(error.sentence, error.details)


class ModelRunner:
    """Mapping and synthesis of one model.

    The plans for one latent and one full picture stay bound. Plans for drafts and batches may be evicted. Once the
    device is lost, every method except `close` raises DeviceLostError.

    Parameters
    ----------
    model
        The model that the executor was made for.
    executor
        Owned by the runner, which closes it.
    budget_nbytes
        Device memory for the working buffers of the bound plans of single pictures, and for those of batches; twice as
        much again for what they keep between frames.
    readouts
        Side -> channels that its readout reads, for drafts that end in one. The executor must have the weights of
        these drafts (`gpu_backend.model.draft_file.draft_weights`).

    Raises
    ------
    DeviceMemoryError, DeviceLostError
        If device memory is too small for the plans that stay bound, or the device is lost.
    """

    def __init__(
        self, model: Model, executor: Executor, budget_nbytes: int, readouts: Mapping[int, int] | None = None
    ) -> None:
        self._model = model
        self._spec = model.spec
        self._executor = executor
        self._build: Callable[[PlanKey], Plan] = partial(build_plan, model.spec, readouts=readouts)
        self._plan_cache = PlanCache(executor, self._build, budget_nbytes)
        self._keys: dict[tuple[int, int, str, PlanEdits], PlanKey] = {}
        self._without_room: dict[PlanKey, PlanKey] = {}
        """Keys of plans that keep second latents and did not find memory for it, and what takes their place."""
        self._own_transform = model.weights.get("synthesis.input.transform") if model.spec.has_transform else None
        self._loss = _Loss()
        self._waited_ms = 0.0
        self._checking: tuple[PlanKey, Generator[object, None, None]] | None = None
        self._is_closed = False
        try:
            for key in (self._mapping_key(1), self.synthesis_key(1)):
                self._bound(key, keep=True)
        except BaseException:
            self.close()
            raise

    @property
    def nbytes(self) -> int:
        """Device memory of the bound plans, in bytes."""
        return self._plan_cache.nbytes

    @property
    def noise_layer_count(self) -> int:
        """Number of layers with noise."""
        return len(self._spec.noise_layers)

    @property
    def waited_ms(self) -> float:
        """Milliseconds spent waiting for the device, summed over finished runs."""
        return self._waited_ms

    def synthesis_key(
        self, batch: int, resolution: int | None = None, tap: str = "", edits: PlanEdits = NOT_EDITED
    ) -> PlanKey:
        """Return the key of a synthesis plan. `resolution` None means full; with a tap it is the side of the layer.

        Its plan keeps the second latents of masked blends, unless they take too much memory; one that does not find
        that much on the device runs them in every frame.
        """
        side = resolution or self._spec.resolution
        key = self._keys.get((batch, side, tap, edits))
        if key is None:
            key = PlanKey(self._model.facts.model_id, "synthesis", batch, side, self._executor.precision, tap, edits)
            key = key_that_keeps(key, self._build)
            self._keys[batch, side, tap, edits] = key
        return key

    def check_usable(self) -> None:
        """Raise DeviceError if the runner was closed, DeviceLostError if its device was lost."""
        if self._is_closed:
            raise DeviceError("The renderer must be open, but it was closed; open the model again.")
        if self._loss.error is not None:
            raise DeviceLostError(self._loss.error.sentence, self._loss.error.details)

    def prepare(self, key: PlanKey) -> None:
        """Build and bind the plan of a key ahead of its first run."""
        self._fetch(key)

    def prepare_step(self, key: PlanKey) -> bool:
        """Do one bounded step towards the plan of a key: check a kernel, or bind the plan.

        Returns
        -------
        Whether there is another step. Runs with other plans may come between; a step for another key starts over.
        """
        if key in self._plan_cache:
            return False
        self.check_usable()
        with self._loss:
            try:
                if self._checking is None or self._checking[0] != key:
                    self._stop_checking()
                    self._checking = key, self._plan_cache.check_steps(key)
                if next(self._checking[1], _END) is not _END:
                    return True
            except DeviceMemoryError:
                pass  # `_fetch` makes room, and checks what is left
            except BaseException:
                self._stop_checking()
                raise
        self._stop_checking()
        self._fetch(key)
        return False

    def drop_plain(self) -> None:
        """Close the plans that are bound to plain kernels."""
        self._plan_cache.drop_plain()

    def map(self, z: NDArray[np.float32], labels: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map a batch: z (batch, z_dim) and labels (batch, c_dim) to w (batch, w_dim), a new array."""
        inputs = {"z": z, "c": labels} if self._spec.mapping.c_dim else {"z": z}
        key = self._mapping_key(z.shape[0])
        run = self._start(key, lambda: self._fetch(key).bound.submit(inputs, outputs=("w",)))
        return np.array(self.finish(run)["w"])

    def submit(
        self,
        key: PlanKey,
        ws: NDArray[np.float32],
        noise: Noise,
        transform: Matrix | None = None,
        tap: Tap | None = None,
        edits: LocalEdits = NO_EDITS,
        *,
        outputs: tuple[str, ...] = FRAME_OUTPUTS,
        measure: bool = False,
        use_fused: bool = True,
        use_graph: bool = True,
        should_cancel: Callable[[], bool] | None = None,
    ) -> PendingRun:
        """Start a synthesis plan on ws (batch, num_ws, w_dim); pass the result to `finish`.

        After the pictures' rows of w come those of the second latents of masked blends, in order.
        `transform` is for networks with a transform input; None selects the model's stored transform. `tap` and
        `edits` are for keys that have them. Raises CancelledError, here or in `finish`, once `should_cancel` returns
        true.
        """

        def start() -> PendingRun:
            cached = self._fetch(key, use_fused=use_fused)
            inputs = self._inputs(cached, ws, noise, transform)
            if tap is not None:
                inputs["tap"] = tap_input(tap)
            inputs |= self._edit_inputs(cached, edits)
            uses_kept = cached.has_kept(inputs)
            if not uses_kept:
                cached.kept = None  # undefined if the run fails
            run = cached.bound.submit(
                inputs,
                outputs=outputs,
                measure=measure,
                use_graph=use_graph,
                uses_kept=uses_kept,
                should_cancel=should_cancel,
            )
            cached.noise, cached.edits = noise, edits
            if not uses_kept:
                cached.note_kept(inputs)
            return run

        return self._start(key, start)

    def finish(self, run: PendingRun) -> Outputs:
        """Wait for a run and return its outputs."""
        with self._loss:
            try:
                outputs = run.wait()
            except (CancelledError, DeviceError):
                self._plan_cache.forget_kept()
                raise
        self._waited_ms += run.waited_ms
        return outputs

    def observe(
        self,
        ws: NDArray[np.float32],
        noise: Noise,
        transform: Matrix | None = None,
        key: PlanKey | None = None,
    ) -> Mapping[str, NDArray[np.float32]]:
        """Run once on ws (1, num_ws, w_dim) and return each layer's output, (1, channels, height, width).

        `key` names the plan that runs; None for that of the full picture.
        """
        key = key or self.synthesis_key(1)
        cached = self._fetch(key)
        inputs = self._inputs(cached, ws, noise, transform)
        cached.kept = None
        with self._loss:
            try:
                observed = cached.bound.observe(inputs)
            except DeviceMemoryError as error:
                raise self._too_small(key, error) from error
        cached.noise = noise
        return observed

    def counter_steps(self, key: PlanKey, *, use_fused: bool = True) -> Generator[None, None, None]:
        """Measure the hardware counters of a plan's kernels for its last inputs, in bounded steps.

        Raises
        ------
        DeviceError
            If there are none, or this process may not read them.
        CancelledError
            If the plan was closed meanwhile.
        """
        self.check_usable()
        bound = self._fetch(key, use_fused=use_fused).bound
        if not isinstance(bound, CountsKernels):
            raise DeviceError("Hardware counters are those of an NVIDIA GPU; choose one to measure them.")
        with self._loss:
            yield from bound.counter_steps()

    def close(self) -> None:
        """Close the plans and the executor. May be called twice, and after the device was lost."""
        self._is_closed = True
        self._stop_checking()
        self._plan_cache.close()
        self._executor.close()

    def _inputs(
        self, cached: CachedPlan, ws: NDArray[np.float32], noise: Noise, transform: Matrix | None
    ) -> dict[str, NDArray[Any]]:
        """Return the rows of w, the transform, and the noise inputs that differ from the previous run."""
        plan = cached.bound.plan
        inputs: dict[str, NDArray[Any]] = {"ws": ws}
        if ws.shape[0] > plan.key.batch:
            # A plan without a layer of its blends' rows runs the pictures alone, and so does one that keeps the others.
            inputs["ws"] = ws[: next(buffer.shape[0] for buffer in plan.buffers if buffer.name == "ws")]
        if plan.kept_steps:
            inputs[SECOND_ROWS] = ws[plan.key.batch :]
        if self._own_transform is not None:
            own = self._own_transform
            inputs["transform"] = own if transform is None else np.reshape(np.array(transform, np.float32), (3, 3))
        before = cached.noise
        if before is noise or before == noise or not self._spec.noise_layers:
            return inputs
        cached.noise = None  # undefined if the run fails
        layer_count = next((buffer.shape[0] for buffer in plan.buffers if buffer.name == "noise_gain"), 0)
        if not layer_count:
            return inputs
        inputs["noise_gain"] = noise_gains(noise, layer_count)
        source = noise_source(noise)
        if before is None or not np.array_equal(source, noise_source(before)):
            inputs["noise_source"] = source
        return inputs

    def _edit_inputs(self, cached: CachedPlan, edits: LocalEdits) -> dict[str, NDArray[np.float32]]:
        """Return the inputs of local edits that differ from the previous run."""
        before, plan = cached.edits, cached.bound.plan
        if before is edits or before == edits:
            return {}
        cached.edits = None  # undefined if the run fails
        inputs: dict[str, NDArray[np.float32]] = {}
        if before is None or (before.bends, before.style_offsets) != (edits.bends, edits.style_offsets):
            inputs |= edit_inputs(plan, edits)
        if before is None or before.blends != edits.blends:
            inputs |= mask_inputs(plan, edits.blends)
        return inputs

    def _fetch(self, key: PlanKey, *, use_fused: bool = True) -> CachedPlan:
        self.check_usable()
        with self._loss:
            return self._bound(key, use_fused=use_fused)

    def _bound(self, key: PlanKey, *, use_fused: bool = True, keep: bool = False) -> CachedPlan:
        wanted = self._without_room.get(key, key)
        try:
            return self._plan_cache.fetch(wanted, use_fused=use_fused, keep=keep)
        except DeviceMemoryError as error:
            if not wanted.edits.keeps_second:
                raise self._too_small(key, error) from error
        # The second latents run beside the pictures in every frame, from now on: trying again would evict other plans.
        self._without_room[key] = replace(key, edits=replace(key.edits, keeps_second=False))
        return self._bound(key, use_fused=use_fused, keep=keep)

    def _stop_checking(self) -> None:
        """End the steps of `prepare_step`, which frees what they hold on the device."""
        checking, self._checking = self._checking, None
        if checking is not None:
            checking[1].close()

    def _start(self, key: PlanKey, start: Callable[[], PendingRun]) -> PendingRun:
        """Start a run; if device memory runs out, evict other plans and try again."""
        with self._loss:
            while True:
                try:
                    return start()
                except DeviceMemoryError as error:
                    if not self._plan_cache.make_room_for(key):
                        raise self._too_small(key, error) from error

    def _too_small(self, key: PlanKey, error: DeviceMemoryError) -> DeviceMemoryError:
        name = self._executor.device_name
        what = "this model"
        if key.part == "synthesis" and (key.batch, key.resolution, key.tap) != (1, self._spec.resolution, ""):
            each = "a picture" if key.batch == 1 else f"{key.batch} pictures"
            what = f"{each} of {key.resolution} x {key.resolution} pixels"
        return DeviceMemoryError(
            f"{name} has not enough free memory for {what}; close other programs that use it, or render on the CPU.",
            error.details or error.sentence,
        )

    def _mapping_key(self, batch: int) -> PlanKey:
        return PlanKey(self._model.facts.model_id, "mapping", batch, precision=self._executor.precision)
