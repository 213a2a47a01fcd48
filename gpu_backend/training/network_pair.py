"""Generator and discriminator, and how they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from gpu_backend.training.methods import StepMethods
from gpu_backend.training.networks.discriminator import Discriminator
from gpu_backend.training.networks.generator import Generator
from gpu_backend.training.networks.shape import NetworkShape
from gpu_backend.training.options import TrainOptions

Network = TypeVar("Network", bound=nn.Module)


Make = Callable[[NetworkShape], tuple[Generator, Discriminator]]
"""Creates both networks on the host."""


def network_shape(options: TrainOptions) -> NetworkShape:
    """Return the network sizes of the options."""
    return NetworkShape(
        options.resolution,
        options.channel_base,
        options.channel_max,
        options.z_dim,
        options.w_dim,
        options.mapping_layers,
    )


def make_networks(shape: NetworkShape) -> tuple[Generator, Discriminator]:
    """Create generator and discriminator."""
    return Generator(shape.spec()), Discriminator(shape)


class NetworkPair:
    """Both networks on their device, and how they are called."""

    def __init__(self, shape: NetworkShape, methods: StepMethods, device: torch.device, make: Make) -> None:
        generator, discriminator = make(shape)
        self.generator = _placed(generator, methods, device)
        self.discriminator = _placed(discriminator, methods, device)
        self._low = methods.low
        self._synthesise: Callable[..., Tensor] = self.generator.synthesis
        self._judge: Callable[..., Tensor] = self.discriminator
        if methods.compile:
            self._synthesise = torch.compile(self.generator.synthesis, dynamic=False)
            self._judge = torch.compile(self.discriminator, dynamic=False)

    def train_generator(self) -> None:
        """Enable gradients for the generator's weights only."""
        self.generator.requires_grad_(True)
        self.discriminator.requires_grad_(False)

    def train_discriminator(self) -> None:
        """Enable gradients for the discriminator's weights only."""
        self.generator.requires_grad_(False)
        self.discriminator.requires_grad_(True)

    def synthesise(self, rows: Tensor, *, twice: bool = False) -> Tensor:
        """Return the pictures of rows of w with new noise; `twice` if second derivatives are needed."""
        image: Tensor = (self.generator.synthesis if twice else self._synthesise)(rows, "random", self._low)
        return image

    def judge(self, pictures: Tensor, *, twice: bool = False) -> Tensor:
        """Return the logits of pictures; `twice` if second derivatives are needed."""
        logits: Tensor = (self.discriminator if twice else self._judge)(pictures, self._low)
        return logits


def _placed(network: Network, methods: StepMethods, device: torch.device) -> Network:
    """Move a network to its device, with convolution weights in the memory format of the features."""
    for parameter in network.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=methods.memory_format)
    return network.to(device)
