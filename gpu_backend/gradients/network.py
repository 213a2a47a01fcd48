"""Synthesis networks that torch differentiates with respect to the rows of w and the noise.

Styles scale activations and demodulation scales outputs (Karras et al. 2020b, section 2.2), so weights never need a
gradient and the convolutions are the same for every sample of a batch::

    y = act(d * conv(s * x, W) + noise, b),   s = A w + a,   d_o = rsqrt(sum_i s_i^2 sum_k W_oik^2 + 1e-8)

sum_k W_oik^2 is computed once. Only layers up to the requested features or picture run. `gpu_backend.reference` defines
the numbers; this file computes the same ones for StyleGAN2 with fewer passes, and runs the reference functions for the
other families.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.errors import CancelledError, RequestError
from gpu_backend.gradients.edits import LayerEdit, NetworkEdits
from gpu_backend.gradients.feature_grid import FeatureGrid
from gpu_backend.gradients.forward_plans import ForwardPlans
from gpu_backend.gradients.layers import Doubling, ModulatedLayer, ToRgbLayer
from gpu_backend.gradients.picture_terms import PictureTerms
from gpu_backend.gradients.quasi_newton import Minimiser, QuasiNewton
from gpu_backend.gradients.recipe_rows import rows_of_recipes
from gpu_backend.model.model import Model
from gpu_backend.model.spec import (
    AdainLayerSpec,
    FilteredLayerSpec,
    NetworkSpec,
    StyleGAN1Spec,
    StyleGAN2Spec,
    StyleGAN3Spec,
)
from gpu_backend.ops.noise import turned
from gpu_backend.recipe import NO_EDITS, LocalEdits, Noise
from gpu_backend.reference.add import add
from gpu_backend.reference.constant import constant
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.noise import noise as random_noise
from gpu_backend.reference.skip_conv import skip_conv
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.stylegan3 import run_stylegan3

NoisePictures = Mapping[str, Tensor]
"""Layer name -> (batch or 1, side, side); a layer left out gets no noise."""


_TRACKED_SIDE = 128

_should_cancel: ContextVar[Callable[[], bool] | None] = ContextVar("should_cancel", default=None)
"""What `cancelled_by` watches in this thread."""


@contextmanager
def cancelled_by(should_cancel: Callable[[], bool]) -> Iterator[None]:
    """Let passes of this thread raise CancelledError once `should_cancel` returns true, forward and backward.

    Those of a StyleGAN1, 3 or XL end after the layer under way, since one of them can take half a minute; those of a
    StyleGAN2 are short and finish. `should_cancel` is callable from any thread.
    """
    token = _should_cancel.set(should_cancel)
    try:
        yield
    finally:
        _should_cancel.reset(token)


_Output = TypeVar("_Output")

NetworkRun = Callable[[Tensor, Mapping[str, Tensor], LayerEdit | None], _Output]
"""A run of layers: rows of w (batch, num_ws, w_dim), offsets of styles, and what is called after each layer."""


class NetworkPasses(Protocol):
    """A network's passes forward, which torch differentiates: the network's own, or those of kernels on a GPU."""

    @property
    def terms(self) -> PictureTerms | None:
        """What compares the pictures on their device instead of torch."""
        ...

    def minimiser(self, start: Tensor) -> Minimiser:
        """Return a search for minima from `start`, (samples, ...)."""
        ...

    def features(self, ws: Tensor, block: int) -> Tensor:
        """Return the output of a block, (batch, channels, side, side), of rows (batch, num_ws, w_dim)."""
        ...

    def picture(self, ws: Tensor, resolution: int | None = None) -> Tensor:
        """Return the picture, (batch, img_channels, resolution, resolution)."""
        ...


class GradientKernels(Protocol):
    """What differentiates a network on a GPU without torch: `gpu_backend.gradients.own_kernels`."""

    @property
    def problem(self) -> str:
        """One sentence: why torch does it after all; empty if it does not."""
        ...

    def prepare(self, network: DifferentiableNetwork) -> None:
        """Compile and check the kernels, which takes seconds, so that the first drag does not wait for them."""
        ...

    def drag(self, network: DifferentiableNetwork, terms: Any, *, radius: int, rate: float) -> Any:
        """Return a `DragEngine` of `DragTerms`; None if torch has to do it."""
        ...

    def passes(
        self, network: DifferentiableNetwork, samples: int, *, draft_side: int, draft_samples: int
    ) -> NetworkPasses | None:
        """Return passes of up to `samples`, to blocks of at most `draft_side` of `draft_samples`; None as above."""
        ...

    def features(self, network: DifferentiableNetwork, features: Any, samples: int) -> Any:
        """Return `PictureFeatures` that compute others faster, for up to `samples`; the same if torch has to do it."""
        ...


class DifferentiableNetwork(ABC):
    """A model's synthesis and mapping networks in torch.

    Parameters
    ----------
    model
        Its arrays are shared where the precision is float32.
    noise
        Settings of the noise; random noise is that of the renderer for the same seed.
    dtype, device
        Precision and torch device of all computations.

    Attributes
    ----------
    own_kernels
        What differentiates this network on a GPU without torch; set by `open_gradients`.
    kernels_refusal
        Why a GPU's own kernels do not differentiate this network, in a phrase; empty if they do or there is no GPU.
    readouts
        The model's readouts of drafts; an edited network has none, since they read pictures without edits.
    style_offsets
        Layer name -> (style length,), added to the layer's style; may require a gradient. `StyleSearch` sets it.
    edits
        The local edits of its features and pictures, without those at rest; see `edited`.
    """

    own_kernels: GradientKernels | None = None
    kernels_refusal = ""
    terms: PictureTerms | None = None
    edits = NO_EDITS
    _network_edits: NetworkEdits | None = None
    _free_blend: tuple[int, Tensor] | None = None
    """A blend whose second latent is the one that is given, and the rows of the picture itself, (1, num_ws, w_dim)."""

    def __init__(self, model: Model, noise: Noise, dtype: torch.dtype, device: torch.device) -> None:
        self._model = model
        self.spec: NetworkSpec = model.spec
        self.readouts = model.readouts
        self.dtype, self.device = dtype, device
        self._weights = {
            name: torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=dtype)
            for name, array in model.weights.items()
        }
        self.noise: NoisePictures = noise_pictures(self.spec, self._weights, noise)
        self.style_offsets: Mapping[str, Tensor] = {}
        self._second_activations: dict[str, Tensor] = {}
        """Activations of the blends' second latents, by layer."""
        self._cached_runs: set[Hashable] = set()
        """Runs whose layers `_second_activations` holds."""
        self.mean_w = torch.from_numpy(np.array(model.mean_w)).to(device=device, dtype=dtype)

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Official state-dict names to tensors."""
        return self._weights

    def edited(self, edits: LocalEdits) -> DifferentiableNetwork:
        """Return this network with local edits in place of those that it has; both share their weights.

        Own kernels have no edits, so a network whose picture edits change has none. Raises RequestError if the edits do
        not fit the model.
        """
        made = copy(self)
        made.edits = acting = edits.acting
        made._second_activations, made._cached_runs = {}, set()
        made._network_edits, made._free_blend = None, None
        made.readouts = self._model.readouts
        if acting != NO_EDITS:
            recipes = tuple(blend.recipe for blend in acting.blends)
            rows = self.tensor(rows_of_recipes(self._model, self.map, recipes)) if recipes else None
            made._network_edits = NetworkEdits(self.spec, acting, rows, self.mean_w)
            made.own_kernels, made.readouts = None, {}
        return made

    def of_blend(self, place: int, rows: NDArray[np.float32]) -> tuple[DifferentiableNetwork, NDArray[np.float32]]:
        """Return this network as a function of a blend's second latent, and the rows of that, (num_ws, w_dim).

        Parameters
        ----------
        place
            Of the blend in `edits.blends`.
        rows
            Of the picture itself, (num_ws, w_dim), which stay.

        Raises
        ------
        RequestError
            If there is no such blend.
        """
        edits = self._network_edits
        if edits is None or edits.second_rows is None or not 0 <= place < len(edits.second_rows):
            raise RequestError(f"The picture has {len(self.edits.blends)} blends, so there is none at place {place}.")
        made = copy(self)
        made._second_activations, made._cached_runs = {}, set()
        made._free_blend = place, self.tensor(rows)[None]
        return made, edits.second_rows[place].float().cpu().numpy()

    @property
    def moved_side(self) -> int:
        """Resolution below which edits leave the content of features and drafts elsewhere than the picture's; or 0."""
        return 0 if self._network_edits is None else self._network_edits.moved_side

    def covered(self, block: int) -> Tensor | None:
        """Return the share of a block's features that other latents of blends have, (side, side); None for nothing."""
        edits, free = self._network_edits, None if self._free_blend is None else self._free_blend[0]
        return None if edits is None else edits.covered(self._last_layer(block), self.grid(block).side, free)

    def run_edited(self, run: NetworkRun[_Output], ws: Tensor, cache_key: Hashable = None) -> _Output:
        """Run layers with the edits of this network.

        Parameters
        ----------
        run
            Runs the layers.
        ws
            Rows of w, (batch, num_ws, w_dim).
        cache_key
            Of the layers that run: the second latents' activations are computed once for each key. None computes them
            each time, differentiable.
        """
        edits = self._network_edits
        if edits is None:
            return run(ws, self.style_offsets, None)
        offsets = dict(edits.style_offsets)
        for layer, offset in self.style_offsets.items():
            offsets[layer] = offset + offsets[layer] if layer in offsets else offset
        if edits.second_rows is None:
            return run(ws, offsets, edits.applying({}))
        if cache_key is None or self.style_offsets:
            activations: dict[str, Tensor] = {}
            run(edits.second_rows, offsets, edits.recording(activations))
        else:
            activations = self._second_activations
            if cache_key not in self._cached_runs:
                with torch.no_grad():
                    run(edits.second_rows, offsets, edits.recording(activations))
                self._cached_runs.add(cache_key)
        if self._free_blend is None:
            return run(ws, offsets, edits.applying(activations))
        place, rows = self._free_blend
        free_activations: dict[str, Tensor] = {}
        run(ws, offsets, edits.recording(free_activations))
        return run(rows.expand_as(ws), offsets, edits.applying(activations, (place, free_activations)))

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """Samples across the picture of each block whose features can be had, ascending."""

    @property
    def can_be_captured(self) -> bool:
        """Whether a CUDA graph can hold its computations: they read no number back and copy nothing from the host."""
        return False

    @property
    def picture_resolutions(self) -> tuple[int, ...]:
        """Resolutions at which `picture` can leave the network, ascending; the last one is the full one."""
        drafts = (side for side in self.spec.draft_resolutions if side >= self.moved_side)
        return (*drafts, self.spec.resolution)

    @property
    def tracked_resolution(self) -> int:
        """Resolution of the pictures in which handles are tracked: the least of at least 128, or the full one."""
        return next((side for side in self.picture_resolutions if side >= _TRACKED_SIDE), self.spec.resolution)

    @abstractmethod
    def grid(self, block: int) -> FeatureGrid:
        """Return the positions of a block's feature samples. Raises RequestError if there is no such block."""

    @abstractmethod
    def _last_layer(self, block: int) -> str:
        """Return the name of the layer whose output is a block's features."""

    @abstractmethod
    def features(self, ws: Tensor, block: int, noise: NoisePictures | None = None) -> Tensor:
        """Return the output of a block, (batch, channels, side, side).

        Parameters
        ----------
        ws
            (batch, num_ws, w_dim).
        block
            One of `blocks`; later layers do not run.
        noise
            Instead of `self.noise`; may require a gradient.
        """

    @abstractmethod
    def picture(self, ws: Tensor, resolution: int | None = None, noise: NoisePictures | None = None) -> Tensor:
        """Return the picture, (batch, img_channels, resolution, resolution), about -1..1; parameters as above."""

    def minimiser(self, start: Tensor) -> Minimiser:
        """Return a search for minima from `start`, (samples, ...)."""
        return QuasiNewton(start)

    def map(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Return w (batch, w_dim) of z (batch, z_dim), before truncation."""
        like = self.mean_w
        return run_mapping(self.spec, self._weights, z.to(like), None if labels is None else labels.to(like))

    def tensor(self, array: NDArray[np.float32]) -> Tensor:
        """Return an array as a tensor of this network's precision and device."""
        return torch.from_numpy(np.array(array)).to(device=self.device, dtype=self.dtype)

    def _check_block(self, block: int) -> None:
        if block not in self.blocks:
            raise RequestError(
                f"Features are those of a block of {', '.join(map(str, self.blocks))}, but {block} is none."
            )

    def _check_resolution(self, resolution: int | None) -> int:
        side = self.spec.resolution if resolution is None else resolution
        if side not in self.picture_resolutions:
            sides = ", ".join(map(str, self.picture_resolutions))
            raise RequestError(f"Pictures of this network have a side of {sides}, but not {side}.")
        return side


def differentiable_network(
    model: Model,
    noise: Noise | None = None,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> DifferentiableNetwork:
    """Return the network of a model's family; parameters as for `DifferentiableNetwork`."""
    made = _StyleGAN2Network if isinstance(model.spec, StyleGAN2Spec) else _ReferenceNetwork
    return made(model, noise or Noise(), dtype, torch.device(device))


def noise_pictures(spec: NetworkSpec, weights: Mapping[str, Tensor], noise: Noise) -> dict[str, Tensor]:
    """Return each layer's noise as the network of the family takes it: a StyleGAN2's with its strength."""
    if noise.mode == "none":
        return {}
    pictures: dict[str, Tensor] = {}
    for index, name in enumerate(spec.noise_layers):
        stored = weights[f"synthesis.{name}.noise_const"]
        picture = stored[None]
        if noise.mode == "random":
            picture = random_noise(noise.seed, index, stored.shape[-1]).to(stored)
        if noise.phase:
            half_turns = math.remainder(noise.phase, 360.0) / 180.0
            picture = torch.from_numpy(turned(picture[0].float().cpu().numpy(), half_turns))[None].to(stored)
        gain = noise.gain * (noise.layer_gains[index] if index < len(noise.layer_gains) else 1.0)
        strength = weights[f"synthesis.{name}.noise_strength"] if isinstance(spec, StyleGAN2Spec) else 1.0
        pictures[name] = picture * strength * gain
    return pictures


class _StyleGAN2Network(DifferentiableNetwork):
    """StyleGAN2: skip, resnet and orig."""

    spec: StyleGAN2Spec

    def __init__(self, model: Model, noise: Noise, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(model, noise, dtype, device)
        taps = self.spec.resample_filter
        self._double = Doubling(taps, self.mean_w)
        self._convs: dict[str, ModulatedLayer] = {}
        self._to_rgbs: dict[str, ToRgbLayer] = {}
        for layer in self.spec.layers:
            own = {
                role: self._weights[f"synthesis.{layer.name}.{role}"]
                for role in ("weight", "bias", "affine.weight", "affine.bias")
                if layer.kind != "skip"
            }
            if layer.kind == "to_rgb":
                self._to_rgbs[layer.name] = ToRgbLayer(layer, own)
            elif layer.kind != "skip":
                self._convs[layer.name] = ModulatedLayer(layer, own, taps)

    @property
    def can_be_captured(self) -> bool:
        is_plain = self._network_edits is None and all(layer.kind != "skip" for layer in self.spec.layers)
        return self.device.type == "cuda" and is_plain

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer.resolution for layer in self.spec.layers))

    def grid(self, block: int) -> FeatureGrid:
        self._check_block(block)
        return FeatureGrid(block, block, self.spec.resolution)

    def _last_layer(self, block: int) -> str:
        convs = (layer.name for layer in self.spec.layers if layer.resolution == block and layer.name in self._convs)
        return list(convs)[-1]

    def features(self, ws: Tensor, block: int, noise: NoisePictures | None = None) -> Tensor:
        self._check_block(block)
        return self._run(ws, noise, block, wants_picture=False)[0]

    def picture(self, ws: Tensor, resolution: int | None = None, noise: NoisePictures | None = None) -> Tensor:
        image = self._run(ws, noise, self._check_resolution(resolution), wants_picture=True)[1]
        assert image is not None
        return image

    def _run(
        self, ws: Tensor, noise: NoisePictures | None, side: int, *, wants_picture: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Run the layers up to `side`; return the features there, and the picture if requested."""
        pictures = self.noise if noise is None else noise

        def run(ws: Tensor, offsets: Mapping[str, Tensor], edit: LayerEdit | None) -> tuple[Tensor, Tensor | None]:
            return self._layers_up_to(side, ws, pictures, offsets, edit, wants_picture=wants_picture)

        return self.run_edited(run, ws, (side, wants_picture) if noise is None else None)

    def _layers_up_to(
        self,
        side: int,
        ws: Tensor,
        noise: NoisePictures,
        offsets: Mapping[str, Tensor],
        edit: LayerEdit | None,
        *,
        wants_picture: bool,
    ) -> tuple[Tensor, Tensor | None]:
        x = constant(self._weights["synthesis.b4.const"], ws.shape[0])
        image: Tensor | None = None
        skipped: Tensor | None = None
        for layer in self.spec.layers:
            name = layer.name
            if layer.resolution > side:
                break
            if layer.kind == "skip":
                skipped = skip_conv(
                    x, self._weights[f"synthesis.{name}.weight"], math.sqrt(0.5), self.spec.resample_filter
                )
            elif layer.kind == "to_rgb":
                if wants_picture:
                    y = self._to_rgbs[name](x, ws[:, layer.w_index], offsets.get(name))
                    image = y if image is None else self._double(image) + y
                    image = image if edit is None else edit(name, image)
            else:
                x = self._convs[name](x, ws[:, layer.w_index], noise.get(name), offsets.get(name))
                if layer.kind == "conv" and skipped is not None:
                    x, skipped = add(x, skipped), None
                x = x if edit is None else edit(name, x)
        return x, image


class _ReferenceNetwork(DifferentiableNetwork):
    """StyleGAN1, StyleGAN3 and StyleGAN-XL, by their reference functions on the layers that are wanted.

    On a processor, plans run what has no edits and needs no gradient.
    """

    spec: StyleGAN1Spec | StyleGAN3Spec

    def __init__(self, model: Model, noise: Noise, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(model, noise, dtype, device)
        is_plain = device.type == "cpu" and dtype == torch.float32
        self._plans = ForwardPlans(model, noise) if is_plain else None

    @property
    def blocks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(sorted(_rate(layer) for layer in self._layers if layer.kind != "to_rgb")))

    def grid(self, block: int) -> FeatureGrid:
        self._check_block(block)
        layer = self._layers[self._last_of(block)]
        side = layer.out_size if isinstance(layer, FilteredLayerSpec) else layer.resolution
        return FeatureGrid(side, block, self.spec.resolution)

    def features(self, ws: Tensor, block: int, noise: NoisePictures | None = None) -> Tensor:
        self._check_block(block)
        if (plans := self._plans_for(ws, noise)) is not None:
            return plans.features(ws, self._last_layer(block), _should_cancel.get())
        observed: dict[str, Tensor] = {}
        self._run(ws, noise, self._last_of(block) + 1, observed)
        return observed[f"synthesis.{self._last_layer(block)}"]

    def _last_layer(self, block: int) -> str:
        return self._layers[self._last_of(block)].name

    def picture(self, ws: Tensor, resolution: int | None = None, noise: NoisePictures | None = None) -> Tensor:
        side = self._check_resolution(resolution)
        if (plans := self._plans_for(ws, noise)) is not None:
            return plans.picture(ws, side, _should_cancel.get())
        layers = self._layers
        end = next(
            index + 1
            for index, layer in enumerate(layers)
            if layer.kind == "to_rgb" and (index + 1 == len(layers) or _rate(layer) == side)
        )
        return self._run(ws, noise, end, None)

    def _plans_for(self, ws: Tensor, noise: NoisePictures | None) -> ForwardPlans | None:
        """Return the plans if they compute the same of these rows and nothing is differentiated."""
        needs_gradient = torch.is_grad_enabled() and ws.requires_grad
        is_plain = noise is None and self._network_edits is None and not self.style_offsets
        return self._plans if is_plain and not needs_gradient else None

    @property
    def _layers(self) -> Sequence[AdainLayerSpec | FilteredLayerSpec]:
        return self.spec.layers

    def _last_of(self, block: int) -> int:
        """Return the place of a block's last layer."""
        places = [i for i, layer in enumerate(self._layers) if layer.kind != "to_rgb" and _rate(layer) == block]
        return places[-1]

    def _run(self, ws: Tensor, noise: NoisePictures | None, end: int, observed: dict[str, Tensor] | None) -> Tensor:
        spec = self.spec
        part: StyleGAN1Spec | StyleGAN3Spec
        if isinstance(spec, StyleGAN1Spec):
            part = replace(spec, layers=spec.layers[:end])
        else:
            part = replace(spec, layers=spec.layers[:end])

        def run(ws: Tensor, offsets: Mapping[str, Tensor], edit: LayerEdit | None) -> Tensor:
            should_cancel = _should_cancel.get()
            edit = edit if should_cancel is None else _cancellable(edit, should_cancel)
            if isinstance(part, StyleGAN3Spec):
                return run_stylegan3(part, self._weights, ws, observed=observed, offsets=offsets, edit=edit)
            pictures = self.noise if noise is None else noise
            return run_stylegan1(part, self._weights, ws, pictures, observed=observed, offsets=offsets, edit=edit)

        return self.run_edited(run, ws, end if noise is None else None)


def _cancellable(edit: LayerEdit | None, should_cancel: Callable[[], bool]) -> LayerEdit:
    """Return an edit that raises CancelledError if `should_cancel` says so, also when its gradient is computed."""

    def check(_: Tensor) -> None:
        if should_cancel():
            raise CancelledError("The search was stopped.")

    def watched(layer: str, x: Tensor) -> Tensor:
        check(x)
        if x.requires_grad:
            x.register_hook(check)
        return x if edit is None else edit(layer, x)

    return watched


def _rate(layer: AdainLayerSpec | FilteredLayerSpec) -> int:
    """Return the samples across the picture of a layer's output."""
    return layer.out_rate if isinstance(layer, FilteredLayerSpec) else layer.resolution
