"""`Renderer`: renders requests with one model on one device."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.channel_maps import ChannelMaps, channel_maps
from gpu_backend.device import CPU_ID, DeviceFacts, check_device
from gpu_backend.errors import DeviceMemoryError, RequestError
from gpu_backend.frame import Frame
from gpu_backend.latent.directions import Directions
from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.recent_rows import RecentRows
from gpu_backend.latent.rows import Blend, LatentSpace
from gpu_backend.layer_statistics import LayerStatistics, gather_statistics
from gpu_backend.model import Model, ModelFacts, read_model
from gpu_backend.plain_text import type_with_article
from gpu_backend.plan.edit_inputs import plan_edits
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.plan import PlanEdits, PlanKey, Precision
from gpu_backend.recipe import NO_EDITS, LocalEdits, Noise, NoiseMode, Tap
from gpu_backend.renderer.arrays import chunks, finite_array
from gpu_backend.renderer.batches import BATCH_SIZES, FrameGroup, batch_size_for, group_frames
from gpu_backend.renderer.comparison import Comparison, compare_ways
from gpu_backend.renderer.mapping import Mapper
from gpu_backend.renderer.memory import MemoryFacts
from gpu_backend.renderer.opening import open_model
from gpu_backend.renderer.options import RenderOptions
from gpu_backend.renderer.pending_frame import FrameContext, PendingFrame, PendingOutputs, outputs_of
from gpu_backend.renderer.recipe_types import check_blend, check_recipes
from gpu_backend.renderer.request_check import RequestCheck
from gpu_backend.request import RenderRequest

PLAN_BUDGET_NBYTES = 1 << 30
"""Memory for the working buffers of plans of single pictures, and for those of batches; twice as much again each for
second latents that they keep. Above it, the least recently used plans are closed, but for those of one latent and of
one full picture without edits. The plan of eight pictures of 1024 x 1024 takes 1.2 (fp16) to 2.2 GB and stays alone."""

_CPU_BATCHES, _CPU_BATCH_PIXELS = (8, 4, 2, 1), 1 << 20
_GPU_BATCHES, _GPU_BATCH_PIXELS = (32, 16, 8, 4, 2, 1), 4 << 20
"""Sizes of batches, and how many pixels the pictures of one run may have together."""


def open_renderer(path: str | os.PathLike[str], device: str = "auto", *, precision: Precision = "fp16") -> Renderer:
    """Read a model file and return a renderer for it, to be closed or used as a context manager.

    Parameters
    ----------
    path
        A model file.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``: see `gpu_backend.device`.
    precision
        Of the activations on a GPU; the CPU always computes in single precision.

    Raises
    ------
    ModelFileError, UnsupportedModelError
        If the file cannot be trusted, understood or run.
    DeviceError
        If there is no such device or precision, or the device has too little memory.
    TypeError
        If the path is no path, or the device no name.
    """
    check_device(device, precision)
    return Renderer(read_model(path), device, precision=precision)


class Renderer:
    """Renders requests with one model on one device. Not thread-safe: one thread owns it.

    `render` and `submit` run the network for one picture and map each seed alone. Equal requests therefore give equal
    bytes, whatever was rendered before. `render_batch` documents the guarantee for batches.

    As a context manager, a renderer closes itself on exit.

    Parameters
    ----------
    model
        From `read_model`.
    device
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``: see `gpu_backend.device`. With ``"auto"``, a GPU that fails or
        has too little memory for the model is replaced by the CPU; `device` gives the reason.
    precision
        On a GPU: "fp16", "fp8" (products of e4m3 in large layers, on Ada, Hopper and RTX Blackwell), "tf32"
        (activations of fp32, products of 10 bits of fraction), "bf16x3" (of 16 bits) or "fp32"; the CPU always computes
        in single precision. Where fp8 is not possible, fp16 takes its place. A network whose numbers exceed fp16
        renders in tf32 instead. `device` says so.
    executor
        Replaces the executor of the device; the renderer closes it.
    plan_budget_nbytes
        Device memory for the working buffers of plans of single pictures, and for those of batches; twice as much again
        for second latents that they keep.

    Raises
    ------
    DeviceError
        If there is no such device or precision, or the device has too little memory or is lost.
    TypeError
        If `model` is not a Model, such as a path, or the device not a name.
    """

    def __init__(
        self,
        model: Model,
        device: str = "auto",
        *,
        precision: Precision = "fp16",
        executor: Executor | None = None,
        plan_budget_nbytes: int = PLAN_BUDGET_NBYTES,
    ) -> None:
        opened = open_model(model, device, precision, executor, plan_budget_nbytes)
        self._model = model
        spec = model.spec
        self._runner, self._executor, self._device = opened.runner, opened.executor, opened.device
        self._space = LatentSpace(spec.num_ws, model.weights["mapping.w_avg"], opened.directions)
        self._check = RequestCheck(model, self._runner.noise_layer_count)
        self._options = RenderOptions()
        self._largest_batch = max(BATCH_SIZES)
        self._prepared: tuple[int | None, str | None, PlanEdits] | None = None
        """Resolution, tap and edits that `prepare_step` found ready last; frames of a gesture need no look-up."""
        self._mapper = Mapper(model, self._runner)
        self._mapped = MappedAnchors(self._mapper.one, spec.mapping.z_dim, spec.mapping.c_dim)
        self._recent = RecentRows(self._space, self._mapped)

    @property
    def model(self) -> Model:
        """The model of this renderer."""
        return self._model

    @property
    def facts(self) -> ModelFacts:
        """Facts about the model."""
        return self._model.facts

    @property
    def device(self) -> DeviceFacts:
        """The device, and the reason for its choice."""
        return self._device

    @property
    def directions(self) -> Directions:
        """Named directions from the file beside the model, then SeFa directions of its weights."""
        return self._space.directions

    @property
    def w_avg(self) -> NDArray[np.float32]:
        """Average of w, the centre of truncation: (w_dim,) float32, or (c_dim, w_dim) with one for each class."""
        return self._space.w_avg.copy()

    @property
    def nbytes(self) -> int:
        """Memory of plans and mapped seeds in bytes, without the model's weights."""
        return self._runner.nbytes + self._mapped.nbytes + self._recent.nbytes

    @property
    def memory(self) -> MemoryFacts:
        """Device memory and page-locked host memory of this renderer."""
        return MemoryFacts(self._executor.nbytes, self._runner.nbytes, self._executor.pinned_nbytes)

    @property
    def options(self) -> RenderOptions:
        """Execution options for the next frames; may be set."""
        return self._options

    @options.setter
    def options(self, options: RenderOptions) -> None:
        given: object = options
        if not isinstance(given, RenderOptions):
            raise TypeError(f"The options of a renderer are RenderOptions, not {type_with_article(given)}.")
        self._options = options
        if options.use_fused:
            self._runner.drop_plain()

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        """Render a request: `submit` and wait.

        Raises
        ------
        CancelledError
            If `should_cancel` returned true. The renderer stays usable.
        RequestError
            If the request is for another model, or needs something that this one lacks.
        TypeError
            If `request` is not a RenderRequest, or a field of it has another type.
        DeviceError
            If the renderer was closed, or the device failed. Once the device is lost, every call raises
            DeviceLostError.
        """
        return self.submit(request, should_cancel=should_cancel).wait()

    def submit(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> PendingFrame:
        """Start to render a request.

        On a GPU this returns before the picture is finished. If two frames are in flight already, it first waits for
        the older one. On the CPU it returns when the picture is finished.

        Parameters
        ----------
        request
            The picture to render.
        should_cancel
            Called now and then, on the CPU between the steps of the network. If it returns true, the frame is
            cancelled.

        Raises
        ------
        CancelledError, RequestError, DeviceError
            As `render`; the first and the last may come from `PendingFrame.wait` instead.
        """
        self._runner.check_usable()
        return self._submit_run((request,), self._key_of(request), should_cancel)[0]

    def render_batch(
        self, requests: Sequence[RenderRequest], *, should_cancel: Callable[[], bool] | None = None
    ) -> tuple[Frame, ...]:
        """Render requests and return their frames in the same order: `submit_batch` and wait for all.

        On a GPU this is faster than single calls: pictures that share a resolution, noise and transform are rendered
        eight at a time by one graph replay. On the CPU batches gain nothing, so each picture is rendered alone.

        On the CPU the bytes equal `render`'s. On a GPU equal requests give equal bytes at every position of
        batches of one size. Kernels of another batch size may sum in another order, so a byte of an fp16 picture may
        differ from `render` by one or two steps. Use `render` if its exact bytes matter.

        Raises
        ------
        CancelledError, RequestError, DeviceError, TypeError
            As `render`. Every request is checked before anything is rendered, except its blend.
        """
        return tuple(pending.wait() for pending in self.submit_batch(requests, should_cancel=should_cancel))

    def submit_batch(
        self, requests: Sequence[RenderRequest], *, should_cancel: Callable[[], bool] | None = None
    ) -> tuple[PendingFrame, ...]:
        """Start to render requests in batches; see `render_batch`. At most two runs are in flight.

        If device memory is too small for a batch, this and later batches are smaller.
        Frames of one run share memory, which is freed with the last of them. On a GPU each batch held beyond 256 MB of
        frames costs a copy.

        Raises
        ------
        CancelledError, RequestError, DeviceError
            As `submit`.
        """
        self._runner.check_usable()
        given: object = requests
        if isinstance(given, RenderRequest):
            raise TypeError("A batch is a sequence of requests, not one; `render` and `submit` take one.")
        requests = tuple(requests)  # also of a generator
        keys = [self._key_of(request) for request in requests]
        pending: dict[int, PendingFrame] = {}
        for group in self._grouped(requests, keys):
            for place, frame in self._submit_group(requests, keys, group, should_cancel):
                pending[place] = frame
        return tuple(pending[place] for place in range(len(requests)))

    def compare(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Comparison:
        """Render a request with and without a CUDA graph, and with fused and plain kernels.

        Each variant runs a few times, which may take seconds on the CPU. `should_cancel` works as in `render`.

        Raises
        ------
        RequestError, DeviceError, CancelledError
            As `render`.
        """
        self._runner.check_usable()
        key = self._key_of(request)
        try:
            return compare_ways(
                self._runner,
                key,
                self._ws_of((request,)),
                request,
                has_graphs=self._device.id != CPU_ID,
                has_alpha=request.tap is None and self._model.spec.img_channels == 4,
                should_cancel=should_cancel,
            )
        finally:
            if self._options.use_fused:
                self._runner.drop_plain()

    def counter_steps(self, request: RenderRequest) -> Generator[None, None, None]:
        """Measure the hardware counters of the kernels of a request's picture, in bounded steps.

        Frames of that plan that measure their steps report them from then on. Pictures may be rendered between two
        steps.

        Raises
        ------
        RequestError, DeviceError
            As `render`; DeviceError also if there are no counters here, or this process may not read them.
        CancelledError
            If the plan was freed meanwhile.
        """
        key = self._key_of(request)
        self.render(request)
        yield from self._runner.counter_steps(key, use_fused=self._options.use_fused)

    def prepare(self, resolution: int | None = None) -> None:
        """Build the plan for a resolution (None for full) ahead of its first frame.

        Raises
        ------
        RequestError
            If the network has no picture of that resolution.
        """
        self._runner.check_usable()
        self._runner.prepare(self._runner.synthesis_key(1, self._check.resolution(resolution)))

    def prepare_step(self, request: RenderRequest) -> bool:
        """Do one bounded step of what precedes the first frame of a request's resolution and tap.

        On a GPU whose kernels are new, a step checks one of them; the last one binds the plan. A thread that calls this
        until it returns False can do other work between the steps, `render` for other plans included.

        Returns
        -------
        Whether there is another step.

        Raises
        ------
        RequestError, DeviceError
            As `render`.
        """
        tap = None if request.tap is None else request.tap.layer
        shape = (request.resolution, tap, plan_edits(_applied_edits(request)))
        if shape == self._prepared or not self._options.use_fused:
            return False
        is_unfinished = self._runner.prepare_step(self._key_of(request))
        if not is_unfinished:
            self._prepared = shape
        return is_unfinished

    def map(
        self, z: ArrayLike, c: ArrayLike | None = None, psi: float = 1.0, cutoff: int | None = None
    ) -> NDArray[np.float32]:
        """Map z to w rows.

        Parameters
        ----------
        z
            (n, z_dim).
        c
            (n, c_dim) labels of a conditional network. None means all zeros, or class 0 if the network has a table of
            classes.
        psi, cutoff
            Truncation: rows [0, cutoff) become w_avg + psi * (w - w_avg), with the w_avg of the label's class if there
            is one for each class. `cutoff` None means all rows.

        Returns
        -------
        (n, num_ws, w_dim) float32

        Raises
        ------
        RequestError
            If a shape or the truncation does not fit the network, or a number of an argument or of the result is not
            finite.
        TypeError
            If `psi` is no number.
        """
        self._runner.check_usable()
        return self._mapper.rows(z, c, psi, cutoff)

    def rows_of(self, blend: Blend) -> NDArray[np.float32]:
        """Return the w rows (num_ws, w_dim) of a blend of recipes, as `render` makes them.

        Raises
        ------
        RequestError
            If a recipe does not fit the network.
        TypeError
            If the blend is not made of (recipe, weight) pairs.
        """
        self._runner.check_usable()
        check_blend(blend)
        return self._rows(blend)

    def synthesize(
        self, ws: ArrayLike, noise: NoiseMode | Noise = "const", transform: ArrayLike | None = None
    ) -> NDArray[np.float32]:
        """Synthesize pictures from w rows, in the network's output range: nominally -1..1, not clamped.

        Parameters
        ----------
        ws
            (n, num_ws, w_dim).
        noise
            A mode or a `Noise`; every picture gets the same noise.
        transform
            (3, 3), for networks with a transform input: maps a position in the output to a position in the
            untransformed picture. None selects the model's stored transform.

        Returns
        -------
        (n, channels, height, width) float32

        Raises
        ------
        RequestError
            If a shape does not fit the network, a number is not finite, or the network takes no transform.
        """
        self._runner.check_usable()
        rows, settings, matrix = self._checked_inputs(ws, noise, transform)
        spec = self._model.spec
        side = spec.resolution
        images = np.empty((rows.shape[0], spec.img_channels, side, side), dtype=np.float32)
        sizes, pixels = (
            (_CPU_BATCHES, _CPU_BATCH_PIXELS) if self._device.id == CPU_ID else (_GPU_BATCHES, _GPU_BATCH_PIXELS)
        )
        batches = [batch for batch in sizes if batch == 1 or batch * side * side <= pixels]
        for first, count in chunks(rows.shape[0], batches):
            key = self._runner.synthesis_key(count)
            run = self._runner.submit(key, rows[first : first + count], settings, matrix, outputs=("image",))
            images[first : first + count] = self._runner.finish(run)["image"].transpose(0, 3, 1, 2)
        return images

    def layer_statistics(
        self, ws: ArrayLike, noise: NoiseMode | Noise = "const", transform: ArrayLike | None = None
    ) -> Mapping[str, LayerStatistics]:
        """Return every layer's output for w rows (n, num_ws, w_dim), by official layer name, in execution order.

        Noise and transform are as for `synthesize`.

        Raises
        ------
        RequestError
            If the shape does not fit the network, or a number is not finite.
        """
        self._runner.check_usable()
        rows, settings, matrix = self._checked_inputs(ws, noise, transform)
        return gather_statistics(self._runner.observe(row[None], settings, matrix) for row in rows)

    def channel_maps(self, request: RenderRequest, layer: str) -> ChannelMaps:
        """Return the channels of a layer as small pictures, and their clusters, for a request without its edits.

        Only the layers before it run.

        Raises
        ------
        RequestError, DeviceError
            As `render`; also if the network has no such layer.
        """
        self._runner.check_usable()
        plain = replace(request, tap=Tap(layer), resolution=None, edits=NO_EDITS)
        key = self._key_of(plain)
        rows = self._rows(plain.blend)[None]
        values = self._runner.observe(rows, plain.noise, plain.transform, key)[f"synthesis.{layer}"][0]
        return channel_maps(self.facts.model_id, layer, values)

    def close(self) -> None:
        """Free device memory. May be called twice, and after the device was lost."""
        self._recent.clear()
        self._mapped.clear()
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _key_of(self, request: RenderRequest) -> PlanKey:
        """Check a request and return the key of its single-frame plan."""
        side, tap = self._check.check(request), request.tap
        edits = plan_edits(_applied_edits(request))
        return self._runner.synthesis_key(1, side, "" if tap is None else tap.layer, edits)

    def _grouped(self, requests: Sequence[RenderRequest], keys: Sequence[PlanKey]) -> list[FrameGroup]:
        largest = 1 if self._device.id == CPU_ID else self._largest_batch
        side = max((key.resolution for key in keys), default=0)
        return group_frames(requests, keys, batch_size_for(side, largest=largest))

    def _submit_group(
        self,
        requests: Sequence[RenderRequest],
        keys: Sequence[PlanKey],
        group: FrameGroup,
        should_cancel: Callable[[], bool] | None,
    ) -> list[tuple[int, PendingFrame]]:
        """Start a run; if device memory is too small for the batch, start several smaller ones."""
        members = [requests[place] for place in group.places]
        try:
            return list(zip(group.places, self._submit_run(members, group.key, should_cancel), strict=True))
        except DeviceMemoryError:
            if len(members) == 1:
                raise
        self._largest_batch = min(self._largest_batch, len(members) // 2)
        smaller = self._grouped(members, [keys[place] for place in group.places])
        started = []
        for part in smaller:
            places = tuple(group.places[place] for place in part.places)
            started += self._submit_group(requests, keys, FrameGroup(part.key, places), should_cancel)
        return started

    def _submit_run(
        self, requests: Sequence[RenderRequest], key: PlanKey, should_cancel: Callable[[], bool] | None
    ) -> list[PendingFrame]:
        """Start one run of checked requests that share a plan, noise, transform and edits."""
        start_s, runner, first = time.perf_counter(), self._runner, requests[0]
        waited_ms = runner.waited_ms
        ws = self._ws_of(requests)
        rows_s = time.perf_counter()
        mapping_waited_ms = runner.waited_ms - waited_ms
        if len(requests) != key.batch:
            key = runner.synthesis_key(len(requests), key.resolution, key.tap, key.edits)
        run = runner.submit(
            key,
            ws,
            first.noise,
            first.transform,
            first.tap,
            _applied_edits(first),
            outputs=outputs_of(first),
            measure=first.measure_steps,
            use_fused=self._options.use_fused,
            use_graph=self._options.use_graph,
            should_cancel=should_cancel,
        )
        submitted_s = time.perf_counter()
        spec, is_picture = self._model.spec, first.tap is None
        pending = PendingOutputs(runner, run, len(requests))
        return [
            PendingFrame(
                pending,
                FrameContext(
                    request=request,
                    start_s=start_s,
                    rows_s=rows_s,
                    submitted_s=submitted_s,
                    mapping_waited_ms=mapping_waited_ms,
                    is_draft=is_picture and key.resolution < spec.resolution,
                    has_alpha=is_picture and spec.img_channels == 4,
                    tap_channels=0 if first.tap is None else self._check.channels_of(first.tap.layer),
                    ws=ws[place],
                ),
                place,
            )
            for place, request in enumerate(requests)
        ]

    def _ws_of(self, requests: Sequence[RenderRequest]) -> NDArray[np.float32]:
        """Return the rows of requests with equal edits, then those of the second latents of their masked blends."""
        rows = [self._rows(request.blend) for request in requests]
        rows += [self._rows(((blend.recipe, 1.0),)) for blend in _applied_edits(requests[0]).blends]
        return rows[0][None] if len(rows) == 1 else np.stack(rows)

    def _rows(self, blend: Blend) -> NDArray[np.float32]:
        """Return the rows of a blend, (num_ws, w_dim). A TypeError names a part of it that has another type."""
        try:
            return self._recent.rows_of(blend)
        except (AttributeError, TypeError, ValueError):
            check_recipes(blend)
            raise

    def _checked_inputs(
        self, ws: ArrayLike, noise: NoiseMode | Noise, transform: ArrayLike | None
    ) -> tuple[NDArray[np.float32], Noise, tuple[float, ...] | None]:
        """Return the arguments of `synthesize` as a run takes them. Raises RequestError if one does not fit."""
        rows = finite_array(ws, "ws", ("n", self._space.num_ws, self._model.spec.w_dim))
        settings = noise if isinstance(noise, Noise) else Noise(mode=noise)
        self._check.check_noise(settings)
        return rows, settings, None if transform is None else self._checked_transform(transform)

    def _checked_transform(self, transform: ArrayLike) -> tuple[float, ...]:
        try:
            numbers = tuple(float(number) for number in np.asarray(transform, dtype=np.float64).ravel())
        except (TypeError, ValueError) as error:
            raise RequestError("A transform must be an array of nine numbers, but is not.", str(error)) from None
        self._check.check_transform(numbers)
        return numbers


def _applied_edits(request: RenderRequest) -> LocalEdits:
    """Return the edits that the run of a request has: a layer is shown without blends."""
    if request.tap is None or not request.edits.blends:
        return request.edits
    return replace(request.edits, blends=())
