"""A model that answers requests with frames.

The story of `Renderer.render`::

    request -> checks                  a RequestError says what does not fit, before anything is computed
            -> anchors -> w rows       latent/; what was mapped lately is kept
            -> plan of the key, run    network.py: built once, run many times; noise copied in only when it changed
            -> Frame                   owns a copy of the bytes
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpu_backend.device import DeviceFacts, check_device, facts_of, make_executor
from gpu_backend.errors import DeviceError, RequestError
from gpu_backend.frame import Frame, FrameTimings
from gpu_backend.latent.directions import Directions
from gpu_backend.latent.mapped import MappedAnchors
from gpu_backend.latent.rows import Blend, LatentSpace, anchors_of, blend_rows
from gpu_backend.latent.sefa import sefa_directions
from gpu_backend.latent.truncation import truncate
from gpu_backend.layer_statistics import LayerStatistics, gather_statistics
from gpu_backend.model import Model, ModelFacts, read_model
from gpu_backend.network import Network
from gpu_backend.plan.executor import Executor
from gpu_backend.plan.noise_inputs import check_noise
from gpu_backend.recipe import Noise, NoiseMode
from gpu_backend.request import RenderRequest

PLAN_BUDGET_NBYTES = 1 << 30
"""Memory for the working buffers of all plans; above it, drafts that were not used lately are let go."""

_MAP_BATCH = 32
_SYNTHESIS_BATCHES = (8, 4, 2, 1)
_BATCH_PIXELS = 1 << 20
"""Pictures of one run together have at most this many pixels."""


def open_renderer(path: str | os.PathLike[str], device: str = "auto") -> Renderer:
    """Read a model file and return a renderer for it.

    Parameters
    ----------
    path
        A model file.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.

    Raises
    ------
    ModelFileError, UnsupportedModelError
        If the file cannot be trusted, understood or run.
    DeviceError
        If the device is not there.
    """
    check_device(device)
    return Renderer(read_model(path), device)


class Renderer:
    """Renders what requests ask for with one model on one device. Not thread-safe: one thread owns it.

    Pictures of requests are rendered one at a time and each seed is mapped alone, so that equal requests give equal
    bytes, whatever was rendered before.

    Parameters
    ----------
    model
        From `read_model`.
    device
        ``"auto"``, ``"cpu"`` or ``"cuda"``.
    executor
        Takes the place of the device's own; the renderer closes it.
    plan_budget_nbytes
        Memory for the working buffers of all plans.

    Raises
    ------
    DeviceError
        If the device is not there.
    """

    def __init__(
        self,
        model: Model,
        device: str = "auto",
        *,
        executor: Executor | None = None,
        plan_budget_nbytes: int = PLAN_BUDGET_NBYTES,
    ) -> None:
        check_device(device)
        if executor is None:
            executor = make_executor(model)
        self._model = model
        self._device = facts_of(executor)
        spec = model.spec
        styled = [f"synthesis.{layer.name}.affine" for layer in spec.layers if layer.w_index >= 0]
        directions = sefa_directions(
            [model.weights[f"{name}.weight"] for name in styled],
            [model.weights[f"{name}.bias"] for name in styled],
            model.weights["mapping.w_avg"],
        )
        self._space = LatentSpace(spec.num_ws, model.weights["mapping.w_avg"], directions)
        self._network = Network(model, executor, plan_budget_nbytes)
        self._mapped = MappedAnchors(self._map_one, spec.mapping.z_dim, spec.mapping.c_dim)
        self._is_closed = False

    @property
    def model(self) -> Model:
        """The model that it renders."""
        return self._model

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model."""
        return self._model.facts

    @property
    def device(self) -> DeviceFacts:
        """The device, and why this one."""
        return self._device

    @property
    def directions(self) -> Directions:
        """Directions that the model's own weights single out."""
        return self._space.directions

    @property
    def w_avg(self) -> NDArray[np.float32]:
        """Average of w, (w_dim,) float32: the place that truncation goes towards."""
        return self._space.w_avg.copy()

    @property
    def nbytes(self) -> int:
        """Memory that plans and mapped seeds hold, besides the model's weights."""
        return self._network.nbytes + self._mapped.nbytes

    def render(self, request: RenderRequest, *, abandoned: Callable[[], bool] | None = None) -> Frame:
        """Return the picture that a request asks for.

        Parameters
        ----------
        request
            What to render.
        abandoned
            Asked between the steps of the network: whether nobody waits for the picture any more.

        Raises
        ------
        CancelledError
            If `abandoned` said yes; the renderer is as good as before.
        RequestError
            If the request is for another model or asks for what this one does not have.
        DeviceError
            If the renderer was closed.
        """
        start = time.perf_counter()
        self._check_open()
        resolution = self._checked_resolution(request)
        ws = self._rows(request.blend)
        rows_done = time.perf_counter()
        key = self._network.synthesis_key(1, resolution)
        run = self._network.submit(key, ws[None], request.noise, measure=request.measure_steps, abandoned=abandoned)
        outputs = run.wait()
        synthesis_done = time.perf_counter()
        pixels = outputs["pixels"][0]
        pixels.setflags(write=False)
        return Frame(
            request=request,
            pixels=pixels,
            timings=FrameTimings(
                total_ms=(time.perf_counter() - start) * 1e3,
                latent_ms=(rows_done - start) * 1e3,
                synthesis_ms=(synthesis_done - rows_done) * 1e3,
                steps=run.steps,
            ),
            is_draft=resolution < self._model.spec.resolution,
            has_alpha=self._model.spec.img_channels == 4,
            warnings=_picture_warnings(outputs["flags"]),
        )

    def prepare(self, resolution: int | None = None) -> None:
        """Have the plan for pictures of a resolution ready, None for full, so that a gesture need not wait for it.

        Raises
        ------
        RequestError
            If the network has no picture of that resolution.
        """
        self._check_open()
        self._network.prepare(self._network.synthesis_key(1, self._resolution_of(resolution)))

    def map(
        self, z: ArrayLike, c: ArrayLike | None = None, psi: float = 1.0, cutoff: int | None = None
    ) -> NDArray[np.float32]:
        """Map z to w rows.

        Parameters
        ----------
        z
            (n, z_dim).
        c
            (n, c_dim) labels of a conditional network; None for all zeros.
        psi, cutoff
            Truncation: rows [0, cutoff) become w_avg + psi * (w - w_avg); cutoff None means all rows.

        Returns
        -------
        (n, num_ws, w_dim) float32

        Raises
        ------
        RequestError
            If a shape or the truncation does not fit the network, or a number is not finite.
        """
        self._check_open()
        mapping = self._model.spec.mapping
        latents = _finite_array(z, "z", ("n", mapping.z_dim))
        labels = np.zeros((latents.shape[0], mapping.c_dim), dtype=np.float32)
        if c is not None and mapping.c_dim == 0:
            if np.size(c) > 0:
                raise RequestError("This network has no classes, but labels came; leave c out.")
        elif c is not None:
            labels = _finite_array(c, "c", (latents.shape[0], mapping.c_dim))
        w = np.empty((latents.shape[0], mapping.w_dim), dtype=np.float32)
        for first, count in _chunks(latents.shape[0], (_MAP_BATCH, 1)):
            w[first : first + count] = self._network.map(latents[first : first + count], labels[first : first + count])
        rows = np.repeat(w[:, None], self._space.num_ws, axis=1)
        return truncate(rows, self._space.w_avg, psi, cutoff).astype(np.float32)

    def synthesize(
        self, ws: ArrayLike, noise: NoiseMode | Noise = "const", transform: ArrayLike | None = None
    ) -> NDArray[np.float32]:
        """Turn w rows into pictures in the network's own range, nominally -1..1 and not clamped.

        Parameters
        ----------
        ws
            (n, num_ws, w_dim).
        noise
            A mode or full settings; every picture gets the same noise.
        transform
            For networks with a transform input.

        Returns
        -------
        (n, channels, height, width) float32

        Raises
        ------
        RequestError
            If a shape does not fit the network, a number is not finite, or the network takes no transform.
        """
        self._check_open()
        rows = self._checked_rows(ws)
        settings = noise if isinstance(noise, Noise) else Noise(mode=noise)
        check_noise(settings, self._network.noise_layer_count)
        if transform is not None:
            self._refuse_transform()
        spec = self._model.spec
        side = spec.resolution
        images = np.empty((rows.shape[0], spec.img_channels, side, side), dtype=np.float32)
        batches = [batch for batch in _SYNTHESIS_BATCHES if batch == 1 or batch * side * side <= _BATCH_PIXELS]
        for first, count in _chunks(rows.shape[0], batches):
            key = self._network.synthesis_key(count)
            run = self._network.submit(key, rows[first : first + count], settings, outputs=("image",))
            images[first : first + count] = run.wait()["image"].transpose(0, 3, 1, 2)
        return images

    def layer_statistics(self, ws: ArrayLike, noise: NoiseMode | Noise = "const") -> Mapping[str, LayerStatistics]:
        """Return what every layer gives for w rows (n, num_ws, w_dim), by official layer name, in execution order.

        Raises
        ------
        RequestError
            If the shape does not fit the network, or a number is not finite.
        """
        self._check_open()
        rows = self._checked_rows(ws)
        settings = noise if isinstance(noise, Noise) else Noise(mode=noise)
        check_noise(settings, self._network.noise_layer_count)
        return gather_statistics(self._network.observe(row[None], settings) for row in rows)

    def close(self) -> None:
        """Free the device's memory. May be called twice."""
        self._is_closed = True
        self._mapped.clear()
        self._network.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise DeviceError("The renderer must be open, but it was closed; open the model again.")

    def _checked_resolution(self, request: RenderRequest) -> int:
        """Check all of a request but its blend, and return the resolution of its picture."""
        if request.model_id != self.facts.model_id:
            raise RequestError(
                f"The request is for the model {request.model_id[:12]!r}, but {self.facts.model_id[:12]!r} is open."
            )
        if request.transform is not None:
            self._refuse_transform()
        check_noise(request.noise, self._network.noise_layer_count)
        return self._resolution_of(request.resolution)

    def _resolution_of(self, resolution: int | None) -> int:
        full = self._model.spec.resolution
        if resolution is None:
            return full
        there_are = (*self._model.spec.draft_resolutions, full)
        if resolution not in there_are:
            names = ", ".join(str(side) for side in there_are)
            raise RequestError(f"The resolution must be one of {names} for this network, but {resolution} came.")
        return resolution

    def _refuse_transform(self) -> None:
        raise RequestError(f"A {self.facts.family} network takes no transform, but one came; leave it out.")

    def _rows(self, blend: Blend) -> NDArray[np.float32]:
        """Return the rows of a blend, (num_ws, w_dim)."""
        return blend_rows(blend, self._space, self._mapped.fetch(anchors_of(blend)))

    def _map_one(self, z: NDArray[np.float32], label: NDArray[np.float32]) -> NDArray[np.float32]:
        w: NDArray[np.float32] = self._network.map(z[None], label[None])[0]
        if not np.isfinite(w).all():
            raise RequestError("Mapping must give finite numbers, but this model's gives others for these seeds.")
        return w

    def _checked_rows(self, ws: ArrayLike) -> NDArray[np.float32]:
        return _finite_array(ws, "ws", ("n", self._space.num_ws, self._model.spec.w_dim))


def _finite_array(data: ArrayLike, what: str, shape: tuple[int | str, ...]) -> NDArray[np.float32]:
    """Return data as a float32 array of a shape, in which a name stands for any length from 1 up."""
    words = f"({', '.join(str(length) for length in shape)})"
    try:
        with np.errstate(over="ignore"):  # what does not fit float32 is refused below
            array = np.ascontiguousarray(data, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise RequestError(f"{what} must be an array of numbers of shape {words}, but is none.", str(error)) from None
    fits = array.ndim == len(shape) and all(
        length >= 1 if isinstance(wanted, str) else length == wanted
        for length, wanted in zip(array.shape, shape, strict=False)
    )
    if not fits:
        raise RequestError(f"{what} must have the shape {words} for this network, but has {array.shape}.")
    if not np.isfinite(array).all():
        raise RequestError(f"{what} must hold finite numbers, but some are not.")
    return array


def _chunks(count: int, batches: Sequence[int]) -> list[tuple[int, int]]:
    """Cut `count` items into runs of the given batch sizes, largest first: (first item, batch) pairs."""
    chunks: list[tuple[int, int]] = []
    first = 0
    for batch in batches:
        while count - first >= batch:
            chunks.append((first, batch))
            first += batch
    return chunks


def _picture_warnings(flags: NDArray[np.uint32]) -> tuple[str, ...]:
    if not flags.any():
        return ()
    return ("The network gave numbers that are not finite, so parts of this picture mean nothing.",)
