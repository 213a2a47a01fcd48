"""Keyframes of a sequence, and the interpolation between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from explorer_app.session.local_edits import mixed_edits
from explorer_app.session.mixing import is_same, mixed_number
from explorer_app.session.session import MAX_SCALE, MIN_SCALE
from gpu_backend import NO_EDITS, LatentPath, LocalEdits, Noise, PathKind, Recipe, RenderRequest, Transform, dataclass

Blend = tuple[tuple[Recipe, float], ...]
Matrix = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Keyframe:
    """All that makes a picture but the model: blend, noise, transform and edits, as in `gpu_backend.RenderRequest`."""

    blend: Blend
    noise: Noise = Noise()
    transform: Matrix | None = None
    edits: LocalEdits = NO_EDITS

    @classmethod
    def of(cls, request: RenderRequest) -> Keyframe:
        """Return the keyframe of a picture."""
        return cls(request.blend, request.noise, request.transform, request.edits)


class KeyframePath:
    """The keyframe of each frame of a path, in any order; parameters and errors as of `gpu_backend.LatentPath`.

    Noise gains, transforms and local edits follow the weights that the path gives to the latents. Kind and seed of the
    noise come from the previous keyframe. Turns go the shorter way round.
    """

    def __init__(
        self, keys: Sequence[Keyframe], kind: PathKind, frames_per_step: int, loop: bool, *, z_dim: int = 512
    ) -> None:
        self._keys = keys
        self._path = LatentPath([key.blend for key in keys], kind, frames_per_step, loop, z_dim=z_dim)
        self._turns = None if is_same(key.transform for key in keys) else _Turns.of(keys, loop)

    def __len__(self) -> int:
        return len(self._path)

    def frame(self, index: int) -> Keyframe:
        """Return what a frame shows; at a keyframe, that keyframe."""
        before, fraction = self._path.place(index)
        if fraction == 0.0:
            return self._keys[before]
        weights = self._path.weights(index)
        noise = self._noise(before, weights)
        edits = mixed_edits({key: self._keys[key].edits for key in weights}, weights, before)
        return Keyframe(self._path.blend(index), noise, self._transform(before + fraction, weights), edits)

    def _noise(self, before: int, weights: Mapping[int, float]) -> Noise:
        """Return the noise between two keyframes. No noise is noise of gain 0, so that it fades in and out."""
        noises = {key: self._keys[key].noise for key in weights}
        first, following = self._keys[before].noise, self._keys[(before + 1) % len(self._keys)].noise
        if is_same(noises.values()):
            return first
        if first.mode == "none":
            first = replace(first, mode=following.mode, seed=following.seed)
        gains = {key: 0.0 if noise.mode == "none" else noise.gain for key, noise in noises.items()}
        layers = max(len(noise.layer_gains) for noise in noises.values())
        layer_gains = tuple(
            _mixed_gain({key: dict(enumerate(noise.layer_gains)).get(i, 1.0) for key, noise in noises.items()}, weights)
            for i in range(layers)
        )
        phase = mixed_number({key: noise.phase for key, noise in noises.items()}, weights)
        return replace(first, gain=_mixed_gain(gains, weights), layer_gains=layer_gains, phase=phase)

    def _transform(self, place: float, weights: Mapping[int, float]) -> Matrix | None:
        matrices = {key: self._keys[key].transform for key in weights}
        if self._turns is None or is_same(matrices.values()):
            return matrices[next(iter(weights))]
        transforms = {key: _transform_of(matrix) for key, matrix in matrices.items()}
        scale = math.exp(mixed_number({key: math.log(item.scale) for key, item in transforms.items()}, weights))
        return Transform(
            x=mixed_number({key: item.x for key, item in transforms.items()}, weights),
            y=mixed_number({key: item.y for key, item in transforms.items()}, weights),
            degrees=self._turns.degrees(place, weights),
            scale=min(max(scale, MIN_SCALE), MAX_SCALE),
        ).matrix


@dataclass(frozen=True, slots=True)
class _Turns:
    """Angles of keyframes in degrees, without jumps: a steady turn, and what each key departs from it.

    A loop may return to its first key after whole turns; a spline goes around a loop without a jump if what it
    passes through ends where it began, which the departures do.
    """

    steady: float
    departures: tuple[float, ...]

    @classmethod
    def of(cls, keys: Sequence[Keyframe], loop: bool) -> _Turns:
        given = [_transform_of(key.transform).degrees for key in keys]
        angles = [given[0]]
        for degrees in given[1:]:
            angles.append(angles[-1] + _shorter_way(angles[-1], degrees))
        whole = angles[-1] + _shorter_way(angles[-1], given[0]) - angles[0] if loop else 0.0
        steady = whole / len(keys)
        return cls(steady, tuple(angle - steady * place for place, angle in enumerate(angles)))

    def degrees(self, place: float, weights: Mapping[int, float]) -> float:
        """Return the angle at a place, counted in keys, that holds so much of each key."""
        return self.steady * place + mixed_number({key: self.departures[key] for key in weights}, weights)


def _shorter_way(start: float, end: float) -> float:
    """Return the turn from one angle to another, in [-180, 180)."""
    return (end - start + 180.0) % 360.0 - 180.0


def _transform_of(matrix: Matrix | None) -> Transform:
    """Return the transform of a matrix; what is no similarity, which no part of the program makes, counts as rest."""
    return Transform() if matrix is None else Transform.of_matrix(matrix) or Transform()


def _mixed_gain(values: Mapping[int, float], weights: Mapping[int, float]) -> float:
    """Return a mixed gain; a spline that overshoots does not turn the noise around."""
    mixed = mixed_number(values, weights)
    return max(0.0, mixed) if min(values.values()) >= 0.0 else mixed
