"""Distance of pictures by the features of a network that belongs to the model: its discriminator or its encoder.

Pixels alone prefer a blurred picture to one whose crest is sharp and two pixels off. At each place of a feature map the
channels are scaled to unit length before they are compared (Zhang et al. 2018, section 3), so that every layer counts
alike and no scale of activations matters. Nothing here was trained on pictures of others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from gpu_backend.gradients.discriminator_layers import DiscriminatorLayers
from gpu_backend.gradients.encoder import PictureEncoder, colours, convolved, pooled
from gpu_backend.gradients.picture_terms import PictureTerms
from gpu_backend.model.discriminator_file import DiscriminatorWeights

LEAST_SQUARE = 1e-3
"""Added to the square of a length: where nothing is active, noise does not become a feature."""


class PictureFeatures:
    """The features of a network.

    Parameters
    ----------
    layers
        Pictures (batch, img_channels, side, side) in -1..1 to feature maps (batch, channels, height, width).
    prepare
        Is called with pictures that others will be compared with.
    discriminator
        The network, if it is one.
    """

    def __init__(
        self,
        layers: Callable[[Tensor], Sequence[Tensor]],
        prepare: Callable[[Tensor], None] | None = None,
        discriminator: DiscriminatorWeights | None = None,
    ) -> None:
        self.layers, self.prepare, self.discriminator = layers, prepare, discriminator

    @classmethod
    def of_encoder(cls, encoder: PictureEncoder) -> PictureFeatures:
        """Return those of an encoder's convolutions, at the side that it reads and at the pictures' own."""
        layers_of = _layers_of(encoder)
        device = encoder.tensors["mean"].device
        beside = torch.cuda.Stream(device) if device.type == "cuda" else None

        def layers(pictures: Tensor) -> list[Tensor]:
            pictures = colours(pictures)
            small = pooled(pictures, min(encoder.side, pictures.shape[-1]))
            if small.shape == pictures.shape:
                return layers_of(small)
            if beside is None:
                return [*layers_of(small), *layers_of(pictures)]
            # Kernels on small maps leave most of a GPU idle, so both sizes run at the same time, also on the way back.
            present = torch.cuda.current_stream(pictures.device)
            beside.wait_stream(present)
            with torch.cuda.stream(beside):
                of_small = layers_of(small)
            of_pictures = layers_of(pictures)
            present.wait_stream(beside)
            return [*of_small, *of_pictures]

        return cls(layers)

    @classmethod
    def of_discriminator(cls, stored: DiscriminatorWeights, like: Tensor) -> PictureFeatures:
        """Return those of a discriminator's blocks, of the precision and on the device of `like`."""
        layers = DiscriminatorLayers(stored, like)
        return cls(layers, layers.prepare, stored)

    def maps(self, pictures: Tensor) -> list[Tensor]:
        """Return the feature maps of pictures (batch, img_channels, side, side), of unit length at each place."""
        return [x * (x.square().sum(1, keepdim=True) + LEAST_SQUARE).rsqrt() for x in self.layers(pictures)]

    def wanted(self, pictures: Tensor) -> Sequence[Tensor]:
        """Return what `distance` compares with, of pictures (batch, img_channels, side, side). May read numbers."""
        if self.prepare is not None:
            self.prepare(pictures)
        return self.maps(pictures)

    def distance(self, found: Tensor, wanted: Sequence[Tensor], terms: PictureTerms | None = None) -> Tensor:
        """Return the mean squared distance, 0..4, of pictures (batch, ...) from `wanted` of one or as many: (batch,).

        Parameters
        ----------
        terms
            Compares the maps instead of torch.
        """
        if terms is not None:
            layers = zip(self.layers(found), wanted, strict=True)
            return torch.stack([terms.map(x, y, LEAST_SQUARE) for x, y in layers]).mean(0)
        squares = [(x - y).square().sum(1).mean((1, 2)) for x, y in zip(self.maps(found), wanted, strict=True)]
        return torch.stack(squares).mean(0)

    def distance_with_gradient(
        self, found: Tensor, wanted: Sequence[Tensor], terms: PictureTerms | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the distances and the gradient of each by its picture, (batch, ...); parameters as above."""
        return gradient_of(lambda pictures: self.distance(pictures, wanted, terms), found)


def gradient_of(function: Callable[[Tensor], Tensor], pictures: Tensor) -> tuple[Tensor, Tensor]:
    """Return a number for each of the pictures (batch, ...), and the gradient of each by its picture."""
    with torch.enable_grad():
        free = pictures.detach().requires_grad_()
        numbers = function(free)
        (gradient,) = torch.autograd.grad(numbers.sum(), free)
    return numbers.detach(), gradient


def _layers_of(encoder: PictureEncoder) -> Callable[[Tensor], list[Tensor]]:
    """Return `PictureEncoder.layers` of whole pictures (batch, 3, side, side) with fewer passes.

    Leaky ReLU is positively homogeneous, so weights and biases have its gain. On a GPU channels come last in memory, as
    its tensor cores take them.
    """
    is_cuda = encoder.tensors["mean"].device.type == "cuda"
    order = torch.channels_last if is_cuda else torch.contiguous_format
    tensors = {
        name: (tensor * math.sqrt(2.0)).contiguous(memory_format=order) if tensor.ndim == 4 else tensor * math.sqrt(2.0)
        for name, tensor in encoder.tensors.items()
        if name.startswith(("down.", "same."))
    }

    def layers(pictures: Tensor) -> list[Tensor]:
        # The encoder's mask, which is not constant for a convolution: there is none beyond the border.
        x = torch.cat([pictures, torch.ones_like(pictures[:, :1])], 1).contiguous(memory_format=order)
        return convolved(x, tensors, lambda y: functional.leaky_relu(y, 0.2))

    return layers
