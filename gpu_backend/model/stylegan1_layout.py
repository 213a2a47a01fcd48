"""A tool's names and layouts of the tensors of a StyleGAN1 generator, mapped to ours; as `layout` for StyleGAN2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from gpu_backend.model.layout import Change, Placed, Stored
from gpu_backend.model.refusal import Refusal, Unsupported, shown
from gpu_backend.model.shapes import GENERATOR, MAX_RESOLUTION, Shapes
from gpu_backend.model.stylegan1 import INPUT
from gpu_backend.model.stylegan1_assembly import StyleGAN1Settings
from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.quick_dataclass import dataclass

_MAX_MAPPING_LAYERS = 64
_MAX_FILTERS = 64

Roles = Mapping[str, tuple[str, Change]]
"""Official suffix -> the tool's full name, and the conversion of the values."""


@dataclass(frozen=True, slots=True)
class StyleGAN1Layout:
    """One tool's way.

    Attributes
    ----------
    flavour
        The tool, as people write it.
    marker
        Name of a tensor that no other tool's networks have.
    styled
        (resolution, 0 or 1 for the first or second layer of the block, the file's tensors) -> the tensors of a layer.
    to_rgb
        (resolution, full resolution) -> the tensors of a toRGB; empty where there is none.
    mapping
        Index of a fully connected layer -> its tensors.
    others
        Official name -> the tool's name of a tensor that may be there, and what to do to it.
    filters
        Names of blurs.
    unused
        Names of tensors that the picture does not depend on.
    lods
        Names of the numbers that say how far a network is from its full resolution.
    settings
        Settings that the tensors do not determine.
    """

    flavour: str
    marker: str
    styled: Callable[[int, int, Shapes], Roles]
    to_rgb: Callable[[int, int], Roles]
    mapping: Callable[[int], Roles]
    others: Roles
    filters: re.Pattern[str] = re.compile(r"(?!)")
    unused: re.Pattern[str] = re.compile(r"(?!)")
    lods: tuple[str, ...] = ()
    settings: StyleGAN1Settings = StyleGAN1Settings()


def place_stylegan1(layout: StyleGAN1Layout, shapes: Shapes, resolution: int | None = None) -> Placed:
    """Find the official place of every tensor of a file.

    Parameters
    ----------
    resolution
        Blocks above it are left alone; None for all that there are.

    Raises
    ------
    Refusal
        If a tensor is missing or has the wrong dimensions.
    Unsupported
        If there is one that a StyleGAN1 generator does not have.
    """
    full = full_resolution(layout, shapes)
    stored = dict(_entries(layout, shapes, min(full, resolution or full)))
    above = dict(_entries(layout, shapes, full)) if resolution else {}
    used = {item.name for item in (*stored.values(), *above.values())}
    left = [name for name in shapes if name not in used]
    filters = tuple(name for name in left if layout.filters.fullmatch(name))
    if len(filters) > _MAX_FILTERS:
        raise Refusal(f"at most {_MAX_FILTERS} blurs", f"there are {len(filters)}")
    unused = tuple(name for name in left if name in layout.lods or layout.unused.fullmatch(name))
    extra = sorted(set(left) - set(filters) - set(unused))
    if extra:
        raise Unsupported(GENERATOR, f"it also has {shown(extra[0])}, which such a network does not have")
    placed = {official: item.change.shape(shapes[item.name], item.name) for official, item in stored.items()}
    return Placed(stored, placed, filters, unused)


def full_resolution(layout: StyleGAN1Layout, shapes: Shapes) -> int:
    """Return the side of the largest block that a file holds."""
    sizes = block_resolutions(MAX_RESOLUTION)
    return max((size for size in sizes if layout.styled(size, 1, shapes)["weight"][0] in shapes), default=4)


def _entries(layout: StyleGAN1Layout, shapes: Shapes, resolution: int) -> Iterator[tuple[str, Stored]]:
    for size in block_resolutions(resolution):
        for index, layer in enumerate((INPUT if size == 4 else f"b{size}.conv0", f"b{size}.conv1")):
            roles = layout.styled(size, index, shapes)
            yield from _there(f"synthesis.{layer}", roles, shapes, may_lack=("noise_strength", "noise_const"))
        roles = layout.to_rgb(size, resolution)
        if size == resolution or any(name in shapes for name, _ in roles.values()):
            yield from _there(f"synthesis.b{size}.torgb", roles, shapes)
    for index in range(_MAX_MAPPING_LAYERS):
        roles = layout.mapping(index)
        if roles["weight"][0] not in shapes:
            break
        yield from _there(f"mapping.fc{index}", roles, shapes)
    yield from _there("mapping", layout.others, shapes, may_lack=tuple(layout.others))


def _there(
    layer: str, roles: Roles, names: Mapping[str, object], may_lack: tuple[str, ...] = ()
) -> Iterator[tuple[str, Stored]]:
    for role, (name, change) in roles.items():
        if name in names:
            yield f"{layer}.{role}", Stored(name, change)
        elif role not in may_lack:
            raise Refusal(GENERATOR, f"its tensor {name} is missing")
