"""Mapping from a tool's tensor names and memory layouts to the official ones of StyleGAN2.

A `Layout` is a table: for each part of the network the official suffix, the tool's suffix, and the conversion of the
values. `place_tensors` applies it to the tensors of a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR, MAX_RESOLUTION, Shapes
from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.quick_dataclass import dataclass

Part = Literal["conv0", "conv1", "torgb", "skip"]

_MAX_MAPPING_LAYERS = 64
_MAX_FILTERS = 64


@dataclass(frozen=True, slots=True)
class Change:
    """Conversion of a stored tensor to the official one, in the order of the fields.

    Attributes
    ----------
    drop
        Axes of size 1 to remove.
    mean
        Average over the first axis, if there are two.
    order
        Permutation of the remaining axes; None keeps their order.
    flips
        Flip the last two axes.
    times
        Factor of all values.
    plus, plus_first
        Added to all values; to the values in the first half of the first axis.
    """

    drop: tuple[int, ...] = ()
    mean: bool = False
    order: tuple[int, ...] | None = None
    flips: bool = False
    times: float = 1.0
    plus: float = 0.0
    plus_first: float = 0.0

    def shape(self, shape: tuple[int, ...], name: str) -> tuple[int, ...]:
        """Return the shape of a converted tensor.

        Raises
        ------
        Refusal
            If an axis to remove is not of size 1, or the number of axes is wrong.
        """
        for axis in self.drop:
            if axis >= len(shape) or shape[axis] != 1:
                raise Refusal(f"{name} to be of size 1 along axis {axis}", f"its shape is {shape}")
        kept = tuple(size for axis, size in enumerate(shape) if axis not in self.drop)
        if self.mean and len(kept) == 2:
            kept = kept[1:]
        if self.order is None:
            return kept
        if len(kept) != len(self.order):
            raise Refusal(f"{name} of {len(self.order) + len(self.drop)} dimensions", f"its shape is {shape}")
        return tuple(kept[axis] for axis in self.order)

    def array(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the converted tensor, contiguous."""
        made: NDArray[Any] = array.reshape([size for axis, size in enumerate(array.shape) if axis not in self.drop])
        if self.mean and made.ndim == 2:
            made = made.mean(axis=0, dtype=np.float64)
        if self.order is not None:
            made = made.transpose(self.order)
        if self.flips:
            made = made[..., ::-1, ::-1]
        if self.times != 1.0:
            made = made * np.float32(self.times)
        if self.plus:
            made = made + np.float32(self.plus)
        if self.plus_first:
            half = made.shape[0] // 2
            made = np.concatenate([made[:half] + np.float32(self.plus_first), made[half:]])
        return np.ascontiguousarray(made, np.float32).reshape(made.shape)


SAME = Change()

Parts = tuple[tuple[str, str, Change], ...]
"""(official suffix, the tool's suffix, conversion), the weight first."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The names and conversions of a tool.

    Attributes
    ----------
    flavour
        Display name of the tool.
    marker
        Name of the learned constant, which is unique to the tool.
    const, noise, fully_connected
        Conversions of the constant, the noise pictures and the weights of the mapping network.
    prefix
        (resolution, part) -> prefix of the names of a layer.
    noise_name
        (resolution, part) -> name of a noise picture.
    up_conv, conv, to_rgb, skip
        Suffixes of the layers' tensors.
    mapping_name
        Index of a fully connected layer -> prefix of its names.
    w_avg
        Name of the mean of w, and its conversion.
    labels
        Tensors of the label embedding: official suffix, full name, conversion.
    filters
        Names of resample filters.
    filter_sums
        Allowed sums of a resample filter; 4 includes the upsampling gain.
    unused
        Names of tensors that the picture does not depend on.
    architecture
        The tool's only architecture; None if the names determine it.
    """

    flavour: str
    marker: str
    const: Change
    prefix: Callable[[int, Part], str]
    conv: Parts
    up_conv: Parts
    to_rgb: Parts
    skip: Parts
    noise_name: Callable[[int, Part], str]
    noise: Change
    mapping_name: Callable[[int], str]
    fully_connected: Change
    w_avg: tuple[str, Change]
    labels: Parts = ()
    filters: re.Pattern[str] = re.compile(r"(?!)")
    filter_sums: tuple[float, ...] = (1.0, 4.0)
    unused: re.Pattern[str] = re.compile(r"(?!)")
    architecture: Literal["skip", "orig"] | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """Source of an official tensor: its name in the file, and its conversion."""

    name: str
    change: Change


@dataclass(frozen=True, slots=True)
class Placed:
    """The tensors of a file by official name.

    Attributes
    ----------
    stored
        Official name -> source.
    shapes
        Official name -> shape.
    filters
        Names of the resample filters in the file.
    unused
        Names in the file that the picture does not depend on.
    """

    stored: Mapping[str, Stored]
    shapes: Shapes
    filters: tuple[str, ...]
    unused: tuple[str, ...]


def place_tensors(layout: Layout, shapes: Shapes) -> Placed:
    """Map every tensor of a file to its official name; noise pictures and the mean of w may be missing.

    Raises
    ------
    Refusal
        If a tensor is missing or has the wrong dimensions.
    Unsupported
        If there is a tensor that a StyleGAN2 generator does not have.
    """
    stored = dict(_entries(layout, shapes))
    used = {item.name for item in stored.values()}
    left = [name for name in shapes if name not in used]
    filters = tuple(name for name in left if layout.filters.fullmatch(name))
    if len(filters) > _MAX_FILTERS:
        raise Refusal(f"at most {_MAX_FILTERS} resample filters", f"there are {len(filters)}")
    unused = tuple(name for name in left if layout.unused.fullmatch(name))
    extra = sorted(set(left) - set(filters) - set(unused))
    if extra:
        raise Unsupported(GENERATOR, f"it also has {shown(extra[0])}, which such a network does not have")
    placed = {official: item.change.shape(shapes[item.name], item.name) for official, item in stored.items()}
    return Placed(stored, placed, filters, unused)


def _entries(layout: Layout, names: Mapping[str, object]) -> Iterator[tuple[str, Stored]]:
    if layout.marker not in names:
        raise Refusal(GENERATOR, f"its tensor {layout.marker} is missing")
    yield "synthesis.b4.const", Stored(layout.marker, layout.const)
    weight_of = layout.conv[0][1]
    sizes = block_resolutions(MAX_RESOLUTION)
    largest = max((size for size in sizes if f"{layout.prefix(size, 'conv1')}{weight_of}" in names), default=4)
    for size in block_resolutions(largest):
        if size > 4:
            yield from _layer(layout, names, size, "conv0", layout.up_conv)
        yield from _layer(layout, names, size, "conv1", layout.conv)
        if size == largest or layout.architecture == "skip" or _has(layout, names, size, "torgb", layout.to_rgb):
            yield from _layer(layout, names, size, "torgb", layout.to_rgb)
        if _has(layout, names, size, "skip", layout.skip):
            yield from _layer(layout, names, size, "skip", layout.skip)
    yield from _mapping(layout, names)


def _has(layout: Layout, names: Mapping[str, object], size: int, part: Part, endings: Parts) -> bool:
    """Return whether a layer that some architectures lack is present."""
    return bool(endings) and layout.architecture != "orig" and f"{layout.prefix(size, part)}{endings[0][1]}" in names


def _layer(
    layout: Layout, names: Mapping[str, object], size: int, part: Part, endings: Parts
) -> Iterator[tuple[str, Stored]]:
    official = f"synthesis.b{size}.{part}"
    prefix = layout.prefix(size, part)
    for ending, own, change in endings:
        name = f"{prefix}{own}"
        if name in names:
            yield f"{official}{ending}", Stored(name, change)
        elif ending != ".noise_strength":
            raise Refusal(GENERATOR, f"its tensor {name} is missing")
    if part in ("conv0", "conv1") and layout.noise_name(size, part) in names:
        yield f"{official}.noise_const", Stored(layout.noise_name(size, part), layout.noise)


def _mapping(layout: Layout, names: Mapping[str, object]) -> Iterator[tuple[str, Stored]]:
    for index in range(_MAX_MAPPING_LAYERS):
        prefix = layout.mapping_name(index)
        if f"{prefix}weight" not in names:
            break
        if f"{prefix}bias" not in names:
            raise Refusal(GENERATOR, f"its tensor {prefix}bias is missing")
        yield f"mapping.fc{index}.weight", Stored(f"{prefix}weight", layout.fully_connected)
        yield f"mapping.fc{index}.bias", Stored(f"{prefix}bias", SAME)
    for ending, own, change in layout.labels:
        if own in names:
            yield f"mapping.embed{ending}", Stored(own, change)
    name, change = layout.w_avg
    if name in names:
        yield "mapping.w_avg", Stored(name, change)
