"""Checks whether a request fits the open model."""

from __future__ import annotations

import math

from gpu_backend.errors import RequestError
from gpu_backend.model import Model
from gpu_backend.plain_text import type_with_article
from gpu_backend.plan.edit_inputs import SYNTHESIS, bendable_layers, check_edits, style_lengths
from gpu_backend.plan.noise_inputs import check_noise
from gpu_backend.recipe import NO_EDITS, LocalEdits, Noise, Tap
from gpu_backend.renderer.recipe_types import check_blend, check_edit_types
from gpu_backend.request import RenderRequest

MAX_GAIN_DB = 200.0
"""Far beyond useful values, on either side."""


class RequestCheck:
    """Checks a request except for its blend, which is checked when it is computed.

    Noise that passed the last time is not checked again: during a drag it is the same for every frame.
    """

    def __init__(self, model: Model, noise_layer_count: int) -> None:
        self._facts = model.facts
        self._spec = model.spec
        self._full = model.spec.resolution
        self._resolutions = (*model.spec.draft_resolutions, self._full)
        self._noise_layer_count = noise_layer_count
        self._layers = {layer.name: layer for layer in model.facts.layers}
        self._good_noise = Noise()
        self._good_edits = NO_EDITS

    def check(self, request: RenderRequest) -> int:
        """Return the side of the request's picture.

        Raises
        ------
        RequestError
            If the request is for another model, or needs something that this one lacks.
        TypeError
            If it or one of its fields is of another type.
        """
        _check_types(request)
        if request.model_id != self._facts.model_id:
            raise RequestError(
                f"The request is for the model {request.model_id[:12]!r}, but {self._facts.model_id[:12]!r} is open."
            )
        if request.transform is not None:
            self.check_transform(request.transform)
        if request.noise is not self._good_noise and request.noise != self._good_noise:
            self.check_noise(request.noise)
            self._good_noise = request.noise
        if request.edits is not self._good_edits and request.edits != self._good_edits:
            check_edit_types(request.edits)
            check_edits(request.edits, bendable_layers(self._spec), style_lengths(self._spec), self._spec.num_ws)
            self._good_edits = request.edits
        if request.tap is not None:
            if request.resolution is not None:
                raise RequestError("A layer comes at its own resolution, but one was requested as well; leave it out.")
            return self._side_of(request.tap)
        return self.resolution(request.resolution)

    def channels_of(self, layer: str) -> int:
        """Return the number of channels of a layer."""
        return self._layers[layer].channels

    def check_noise(self, noise: Noise) -> None:
        """Raise RequestError if the noise settings do not fit the network."""
        check_noise(noise, self._noise_layer_count)

    def check_transform(self, transform: tuple[float, ...]) -> None:
        """Raise RequestError if the network has no transform input, or the transform is not nine finite numbers."""
        if not self._facts.has_transform:
            raise RequestError(f"A {self._facts.family} network takes no transform; leave it out.")
        if len(transform) != 9 or not all(math.isfinite(number) for number in transform):
            raise RequestError("A transform must be nine finite numbers, row by row.")

    def resolution(self, resolution: int | None) -> int:
        """Return the side of a picture; None means full. Raise RequestError if the network has no picture of it."""
        if resolution is None:
            return self._full
        if resolution not in self._resolutions:
            names = ", ".join(str(side) for side in self._resolutions)
            raise RequestError(f"The resolution must be one of {names} for this network, not {resolution!r}.")
        return resolution

    def _side_of(self, tap: Tap) -> int:
        layer = self._layers.get(tap.layer)
        if layer is None and (plain := tap.layer.removeprefix(SYNTHESIS)) in self._layers:
            raise RequestError(f"A layer is named without {SYNTHESIS!r}: {plain!r}, not {tap.layer!r}.")
        if layer is None:
            first, last = next(iter(self._layers), ""), next(reversed(self._layers), "")
            raise RequestError(f"The layer must be one of this network's, {first} to {last}, not {tap.layer[:40]!r}.")
        if len(tap.channels) not in (1, 3):
            raise RequestError(f"A layer is shown by one channel or by three, not by {len(tap.channels)}.")
        for channel in tap.channels:
            if not hasattr(channel, "__index__"):
                raise TypeError(f"A channel is a whole number, not {channel!r:.40}.")
            if not 0 <= channel < layer.channels:
                raise RequestError(
                    f"{tap.layer} has the channels 0 to {layer.channels - 1}, but channel {channel} was requested."
                )
        if not abs(tap.gain_db) <= MAX_GAIN_DB:  # this form also refuses NaN
            raise RequestError(
                f"The gain of a layer must be in -{MAX_GAIN_DB:g}..{MAX_GAIN_DB:g} dB, not {tap.gain_db}."
            )
        return layer.side


def _check_types(request: object) -> None:
    """Raise TypeError with a sentence for the mistakes that a dataclass lets pass."""
    if not isinstance(request, RenderRequest):
        raise TypeError(f"A renderer renders a RenderRequest, not {type_with_article(request)}.")
    blend: object = request.blend
    if not isinstance(blend, tuple):
        raise TypeError(f"The blend of a request is a tuple of (recipe, weight) pairs, not {type_with_article(blend)}.")
    check_blend(blend)
    model_id: object = request.model_id
    if not isinstance(model_id, str):
        raise TypeError(f"The model_id of a request is a text, not {model_id!r:.40}.")
    noise: object = request.noise
    if not isinstance(noise, Noise):
        raise TypeError(f"The noise of a request is a Noise, not {type_with_article(noise)}.")
    tap: object = request.tap
    if tap is not None and not isinstance(tap, Tap):
        raise TypeError(f"The tap of a request is a Tap or None, not {type_with_article(tap)}.")
    edits: object = request.edits
    if not isinstance(edits, LocalEdits):
        raise TypeError(f"The edits of a request are LocalEdits, not {type_with_article(edits)}.")
    transform: object = request.transform
    if transform is not None and not hasattr(transform, "__len__"):
        found = type_with_article(transform)
        raise TypeError(f"The transform of a request is nine numbers, as `Transform.matrix` has them, not {found}.")
