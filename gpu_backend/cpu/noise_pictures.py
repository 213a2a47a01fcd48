"""Noise pictures of the layers, generated from the plan's ``noise_source`` and cached until it changes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpu_backend.ops.noise import noise_picture, turned
from gpu_backend.plan.plan import Plan, Step

_STORED = (0, 0, 0, 0)


class NoisePictures:
    """A picture for each layer with noise, the same for every sample; initially the model's stored noise."""

    def __init__(self, plan: Plan, weights: Mapping[str, Tensor]) -> None:
        self._stored: dict[str, Tensor] = {}
        self._pictures: dict[str, Tensor] = {}
        self._places: dict[str, int] = {}
        for step in plan.steps:
            if "noise_const" in step.weights:
                stored = weights[step.weights["noise_const"]]
                self._stored[step.layer] = stored
                self._pictures[step.layer] = stored.clone()
                self._places[step.layer] = step.attributes.noise_index
        self._unturned: dict[str, NDArray[np.float32]] = {}
        """Pictures of phase 0, while the phase is another one: a loop of the noise changes it with every frame."""
        self._unturned_of: tuple[int, ...] = ()
        self._source: tuple[int, ...] | None = _STORED

    @property
    def nbytes(self) -> int:
        """Memory of the pictures in bytes."""
        return sum(picture.nbytes for pictures in (self._pictures, self._unturned) for picture in pictures.values())

    def of(self, step: Step) -> Tensor:
        """Return the picture of a step's layer, (R, R), before any strength; the tensor stays the same object."""
        return self._pictures[step.layer]

    def follow(self, source: NDArray[np.uint32]) -> None:
        """Generate the pictures of a noise source, unless they are current."""
        wanted = tuple(source.tolist())
        if wanted == self._source:
            return
        self._source = None  # undefined while they are rewritten
        phase = float(source[3:].view(np.float32)[0])
        if wanted[:3] != self._unturned_of:
            self._unturned, self._unturned_of = {}, wanted[:3]
        for layer, picture in self._pictures.items():
            if not phase and wanted[0] == 0:
                picture.copy_(self._stored[layer])
            else:
                made = self._unturned.get(layer)
                if made is None:
                    made = self._picture(layer, wanted)
                if phase:
                    self._unturned[layer] = made
                    made = turned(made, phase)
                picture.copy_(torch.from_numpy(made))
        self._source = wanted

    def _picture(self, layer: str, source: tuple[int, ...]) -> NDArray[np.float32]:
        mode, low, high, _ = source
        side = self._pictures[layer].shape[0]
        made: NDArray[np.float32] = (
            self._stored[layer].numpy() if mode == 0 else noise_picture(low | high << 32, self._places[layer], side)[0]
        )
        return made

    def clear(self) -> None:
        """Free the memory."""
        self._pictures, self._stored, self._unturned = {}, {}, {}
