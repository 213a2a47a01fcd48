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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.errors import RequestError
from gpu_backend.gradients.layers import ModulatedLayer, ToRgbLayer
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
from gpu_backend.recipe import Noise
from gpu_backend.reference.add import add
from gpu_backend.reference.constant import constant
from gpu_backend.reference.mapping import run_mapping
from gpu_backend.reference.noise import noise as random_noise
from gpu_backend.reference.skip_conv import skip_conv
from gpu_backend.reference.stylegan1 import run_stylegan1
from gpu_backend.reference.stylegan3 import run_stylegan3
from gpu_backend.reference.to_rgb import add_doubled

NoisePictures = Mapping[str, Tensor]
"""Layer name -> (batch or 1, side, side); a layer left out gets no noise."""


@dataclass(frozen=True, slots=True)
class FeatureGrid:
    """Positions of a block's feature samples in the picture.

    Attributes
    ----------
    side
        Samples along an axis, margins included.
    rate
        Samples across the picture.
    picture
        Pixels across the picture.
    """

    side: int
    rate: int
    picture: int

    def to_samples(self, pixels: Tensor) -> Tensor:
        """Return positions in samples of positions in pixels; whole numbers are centres in both."""
        return (pixels + 0.5) * (self.rate / self.picture) + (self.side - self.rate) / 2 - 0.5

    @property
    def pixel_pitch(self) -> float:
        """Samples a pixel."""
        return self.rate / self.picture


_TRACKED_SIDE = 128


class DragKernels(Protocol):
    """What drags a network on a GPU without torch: `gpu_backend.gradients.own_kernels`."""

    @property
    def problem(self) -> str:
        """One sentence: why torch does it after all; empty if it does not."""
        ...

    def prepare(self, network: DifferentiableNetwork) -> None:
        """Do before the first drag what takes seconds."""
        ...

    def drag(self, network: DifferentiableNetwork, terms: Any, *, radius: int, rate: float) -> Any:
        """Return a `DragEngine` of `DragTerms`; None if torch has to do it."""
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
        What drags this network on a GPU without torch; set by `open_gradients`.
    readouts
        The model's readouts of drafts.
    style_offsets
        Layer name -> (style length,), added to the layer's style; may require a gradient. `StyleSearch` sets it.
    """

    own_kernels: DragKernels | None = None

    def __init__(self, model: Model, noise: Noise, dtype: torch.dtype, device: torch.device) -> None:
        self.spec: NetworkSpec = model.spec
        self.readouts = model.readouts
        self.dtype, self.device = dtype, device
        self._weights = {
            name: torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=dtype)
            for name, array in model.weights.items()
        }
        self.noise: NoisePictures = noise_pictures(self.spec, self._weights, noise)
        self.style_offsets: Mapping[str, Tensor] = {}
        self.mean_w = torch.from_numpy(np.array(model.mean_w)).to(device=device, dtype=dtype)

    @property
    def weights(self) -> Mapping[str, Tensor]:
        """Official state-dict names to tensors."""
        return self._weights

    @property
    @abstractmethod
    def blocks(self) -> tuple[int, ...]:
        """Samples across the picture of each block whose features can be had, ascending."""

    @property
    def picture_resolutions(self) -> tuple[int, ...]:
        """Resolutions at which `picture` can leave the network, ascending; the last one is the full one."""
        return (*self.spec.draft_resolutions, self.spec.resolution)

    @property
    def tracked_resolution(self) -> int:
        """Resolution of the pictures in which handles are tracked: the least of at least 128, or the full one."""
        return next((side for side in self.picture_resolutions if side >= _TRACKED_SIDE), self.spec.resolution)

    @abstractmethod
    def grid(self, block: int) -> FeatureGrid:
        """Return the positions of a block's feature samples. Raises RequestError if there is no such block."""

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

    def map(self, z: Tensor, labels: Tensor | None = None) -> Tensor:
        """Return w (batch, w_dim) of z (batch, z_dim), before truncation."""
        return run_mapping(self.spec, self._weights, z.to(device=self.device, dtype=self.dtype), labels)

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
    def blocks(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(layer.resolution for layer in self.spec.layers))

    def grid(self, block: int) -> FeatureGrid:
        self._check_block(block)
        return FeatureGrid(block, block, self.spec.resolution)

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
        offsets = self.style_offsets
        x = constant(self._weights["synthesis.b4.const"], ws.shape[0])
        image: Tensor | None = None
        skipped: Tensor | None = None
        for layer in self.spec.layers:
            if layer.resolution > side:
                break
            if layer.kind == "skip":
                weight = self._weights[f"synthesis.{layer.name}.weight"]
                skipped = skip_conv(x, weight, math.sqrt(0.5), self.spec.resample_filter)
            elif layer.kind == "to_rgb":
                if wants_picture:
                    y = self._to_rgbs[layer.name](x, ws[:, layer.w_index], offsets.get(layer.name))
                    image = y if image is None else add_doubled(image, y, self.spec.resample_filter)
            else:
                picture, offset = pictures.get(layer.name), offsets.get(layer.name)
                x = self._convs[layer.name](x, ws[:, layer.w_index], picture, offset)
                if layer.kind == "conv" and skipped is not None:
                    x, skipped = add(x, skipped), None
        return x, image


class _ReferenceNetwork(DifferentiableNetwork):
    """StyleGAN1, StyleGAN3 and StyleGAN-XL, by their reference functions on the layers that are wanted."""

    spec: StyleGAN1Spec | StyleGAN3Spec

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
        last = self._last_of(block)
        observed: dict[str, Tensor] = {}
        self._run(ws, noise, last + 1, observed)
        return observed[f"synthesis.{self._layers[last].name}"]

    def picture(self, ws: Tensor, resolution: int | None = None, noise: NoisePictures | None = None) -> Tensor:
        side = self._check_resolution(resolution)
        layers = self._layers
        end = next(
            index + 1
            for index, layer in enumerate(layers)
            if layer.kind == "to_rgb" and (index + 1 == len(layers) or _rate(layer) == side)
        )
        return self._run(ws, noise, end, None)

    @property
    def _layers(self) -> Sequence[AdainLayerSpec | FilteredLayerSpec]:
        return self.spec.layers

    def _last_of(self, block: int) -> int:
        """Return the place of a block's last layer."""
        places = [i for i, layer in enumerate(self._layers) if layer.kind != "to_rgb" and _rate(layer) == block]
        return places[-1]

    def _run(self, ws: Tensor, noise: NoisePictures | None, end: int, observed: dict[str, Tensor] | None) -> Tensor:
        if isinstance(self.spec, StyleGAN1Spec):
            part = replace(self.spec, layers=self.spec.layers[:end])
            pictures = self.noise if noise is None else noise
            return run_stylegan1(part, self._weights, ws, pictures, observed=observed, offsets=self.style_offsets)
        network = replace(self.spec, layers=self.spec.layers[:end])
        return run_stylegan3(network, self._weights, ws, observed=observed, offsets=self.style_offsets)


def _rate(layer: AdainLayerSpec | FilteredLayerSpec) -> int:
    """Return the samples across the picture of a layer's output."""
    return layer.out_rate if isinstance(layer, FilteredLayerSpec) else layer.resolution
