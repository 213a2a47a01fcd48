"""A small network that reads a picture, parts of which may be missing, and says which w shows it.

Convolutions halve the picture down to 4 x 4, two dense layers give w. It reads four channels: the picture times the
mask, and the mask, which is 1 where the picture counts. So it also reads collages with holes and unfinished pictures.
Leaky ReLU has the gain sqrt(2); weights are scaled at the start (He et al. 2015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from gpu_backend.model.encoder_file import EncoderFile, encoder_shapes, encoder_side
from gpu_backend.model.search_scales import SearchScales


class PictureEncoder:
    """An encoder in torch.

    Parameters
    ----------
    side
        Of the picture that it reads.
    tensors
        As `gpu_backend.model.encoder_file.encoder_shapes` names them.
    scales
        Of searches for pictures of the same model, learnt with the encoder; None if they were not.
    """

    def __init__(self, side: int, tensors: Mapping[str, Tensor], scales: SearchScales | None = None) -> None:
        self.side = side
        self.tensors = dict(tensors)
        self.scales = scales

    @classmethod
    def fresh(cls, resolution: int, mean: Tensor, deviation: Tensor, seed: int = 0) -> PictureEncoder:
        """Return an untrained encoder for pictures of this side; `mean` and `deviation` (w_dim,) are those of w."""
        side = encoder_side(resolution)
        generator = np.random.default_rng(seed)
        tensors: dict[str, Tensor] = {}
        for name, shape in encoder_shapes(side, len(mean)).items():
            if name.endswith("weight"):
                scale = 1.0 / math.sqrt(math.prod(shape[1:]))
                array = generator.standard_normal(shape, np.float32) * np.float32(scale)
                tensors[name] = torch.from_numpy(array).to(mean)
            else:
                tensors[name] = torch.zeros(shape).to(mean)
        tensors["w.weight"] *= 0.1  # so that it begins near the mean of w
        tensors["mean"], tensors["deviation"] = mean.clone(), deviation.clone()
        return cls(side, tensors)

    @classmethod
    def from_file(cls, stored: EncoderFile, like: Tensor) -> PictureEncoder:
        """Return a stored encoder, of the precision and on the device of `like`."""
        tensors = {name: torch.from_numpy(array).to(like) for name, array in stored.tensors.items()}
        return cls(stored.side, tensors, stored.scales)

    def to_file(self, steps: int, error: float) -> EncoderFile:
        """Return it as it is stored."""
        arrays = {name: tensor.detach().float().cpu().numpy() for name, tensor in self.tensors.items()}
        return EncoderFile(self.side, arrays, steps, error, self.scales)

    @property
    def learnt(self) -> dict[str, Tensor]:
        """The tensors that training changes."""
        return {name: tensor for name, tensor in self.tensors.items() if name not in ("mean", "deviation")}

    def units(self, pictures: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return the distance of w from its mean in deviations, (batch, w_dim).

        Parameters
        ----------
        pictures
            (batch, 3, side, side) in -1..1.
        masks
            (batch, 1, side, side) in 0..1, 1 where the picture counts; None if all of it does.
        """
        x = self.layers(pictures, masks)[-1]
        x = _active(functional.linear(x.flatten(1), *self._layer("hidden")))
        return functional.linear(x, *self._layer("w"))

    def layers(self, pictures: Tensor, masks: Tensor | None = None) -> list[Tensor]:
        """Return the output of the convolutions at each side, (batch, channels, side / 2, ...) and so on.

        Parameters as for `units`; pictures of another side, a multiple of 16, give larger or smaller maps.
        """
        if masks is None:
            masks = torch.ones_like(pictures[:, :1])
        return convolved(torch.cat([pictures * masks, masks], 1), self.tensors, _active)

    @torch.no_grad()
    def encode(self, pictures: Tensor | ArrayLike, masks: Tensor | ArrayLike | None = None) -> Tensor:
        """Return w (batch, w_dim) of square pictures.

        Parameters
        ----------
        pictures
            (batch, 1, 3 or 4 channels, side, side) in -1..1, of any side.
        masks
            (batch, 1, side, side): 1 where a picture counts, 0 where it is missing. None for all of it.
        """
        mean = self.tensors["mean"]
        seen = pooled(colours(torch.as_tensor(pictures).to(mean)), self.side)
        covered = None if masks is None else pooled(torch.as_tensor(masks).to(mean), self.side)
        return mean + self.tensors["deviation"] * self.units(seen, covered)

    def _layer(self, name: str) -> tuple[Tensor, Tensor]:
        return self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]


def convolved(x: Tensor, tensors: Mapping[str, Tensor], activation: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Return the output of an encoder's convolutions at each side, from the largest to the smallest.

    Parameters
    ----------
    x
        (batch, 4, side, side): pictures times masks, then masks.
    tensors
        As `gpu_backend.model.encoder_file.encoder_shapes` names them.
    activation
        Of each convolution.
    """
    found: list[Tensor] = []
    while f"down.{len(found)}.weight" in tensors:
        down, same = (f"{kind}.{len(found)}" for kind in ("down", "same"))
        x = activation(functional.conv2d(x, tensors[f"{down}.weight"], tensors[f"{down}.bias"], stride=2, padding=1))
        if f"{same}.weight" in tensors:
            y = activation(functional.conv2d(x, tensors[f"{same}.weight"], tensors[f"{same}.bias"], padding=1))
            x = (x + y) * math.sqrt(0.5)
        found.append(x)
    return found


def colours(pictures: Tensor) -> Tensor:
    """Return pictures as red, green and blue, (batch, 3, side, side): grey ones thrice, without alpha."""
    return pictures.expand(-1, 3, -1, -1) if pictures.shape[1] == 1 else pictures[:, :3]


def pooled(pictures: Tensor, side: int) -> Tensor:
    """Return pictures at another side: means of the samples that each new one covers."""
    factor, rest = divmod(pictures.shape[-1], side)
    if rest or not factor:  # a StyleGAN3's sides need not be powers of two, and a side may be less than any encoder's
        return functional.adaptive_avg_pool2d(pictures, side)
    return pictures if factor == 1 else functional.avg_pool2d(pictures, factor)


def _active(x: Tensor) -> Tensor:
    return functional.leaky_relu(x, 0.2) * math.sqrt(2.0)
