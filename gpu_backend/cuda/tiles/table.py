"""Which tile a convolution runs with: measured on this GPU, shipped for its family, near one of those, or by rule.

Tables are small JSON files, an entry a line. A tuned one is in the user's cache folder under the GPU's name and the
digest of the kernels that it was measured with, so that a table of other kernels is never looked at. Shipped tables are
in ``gpu_backend/cuda/tiles/shipped``, one for each family: ``sm_90.json`` serves sm_90 and sm_90a, and
``sm_90-moments.json`` StyleGAN1's convolutions there. Everything read is checked field by field: what is broken is left
out, and no file can stop a start.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, asdict, field, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from gpu_backend.cuda.compiling.kernel_cache import cache_folder
from gpu_backend.limits import LimitError, check_file_size, read_regular_file
from gpu_backend.ops.kernels import kernel_source
from gpu_backend.ops.kernels.conv_rules import (
    conv1x1_tile,
    default_tile,
    filling,
    for_operands,
    fp8_tile,
    with_fewer_slices,
    with_fitting_channels,
    with_fitting_row_tiles,
)
from gpu_backend.ops.kernels.conv_tile import BLOCK_CHANNELS, ConvGeometry, ConvShape, ConvTile
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.whole_file import write_whole

FORMAT = 1
KERNELS = ("modulated_conv", "modulated_up_conv")
"""Stems whose speed the tables are about."""

Origin = Literal["tuned", "shipped", "near", "rule"]
"""Where a choice comes from."""

SMALLEST_SHARED_NBYTES = 65536
"""What a block has on every architecture that is compiled for."""

_REACH = 2.5
"""How far, in doublings of side, channels and batch together, an entry speaks for another shape."""

_MOST_PICTURES = 8
"""Pictures of the largest batch that tables are measured for: a larger one takes the tiles of this one."""

_OTHER_OPERANDS = 1.5
"""How far, in doublings, tiles for different operands are apart at the same shape."""

_OVERHANG = 2.0
"""How far a doubling by tiles that reach over the border counts."""

_MAX_NBYTES = 1 << 20
_MAX_NUMBER = 1 << 20
_PACKAGE = "gpu_backend.cuda.tiles.shipped"
_T = TypeVar("_T", ConvShape, ConvTile)


@dataclass(frozen=True, slots=True)
class Tuned:
    """A tile, and the microseconds that its kernel took."""

    tile: ConvTile
    time_us: float


@dataclass(frozen=True, slots=True, eq=False)
class TileTable:
    """Chooses a tile for every shape.

    Attributes
    ----------
    architecture, multiprocessors, shared_nbytes_per_block
        What the rule of thumb goes by, and what a tile has to fit.
    tuned, shipped
        Measured on this GPU, and shipped for its family.
    shipped_with_moments
        The same for a StyleGAN1's convolutions, which sum moments; they were timed with the normalisation after them.
    """

    architecture: str
    multiprocessors: int
    tuned: Mapping[ConvShape, Tuned] = field(default_factory=dict)
    shipped: Mapping[ConvShape, Tuned] = field(default_factory=dict)
    shared_nbytes_per_block: int = SMALLEST_SHARED_NBYTES
    shipped_with_moments: Mapping[ConvShape, Tuned] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        architecture: str,
        multiprocessors: int,
        shared_nbytes_per_block: int,
        gpu_name: str = "",
        folder: Path | None = None,
    ) -> TileTable:
        """Return the table of a GPU; without a folder only with what is shipped."""
        tuned = {} if folder is None else read_entries(tuned_path(folder, gpu_name, architecture))
        family = family_of(architecture)
        shipped, with_moments = shipped_entries(family), shipped_entries(f"{family}-moments")
        return cls(architecture, multiprocessors, tuned, shipped, shared_nbytes_per_block, with_moments)

    def choose(
        self, shape: ConvShape, *, taps: int = 4, picture_channels: int = 0, has_moments: bool = False
    ) -> ConvTile:
        """Return the tile for a shape; what else the kernel has to do is as in ConvGeometry.

        Raises
        ------
        NoTileError
            If no tile fits.
        """
        return self.explain(shape, taps=taps, picture_channels=picture_channels, has_moments=has_moments)[0]

    def explain(
        self, shape: ConvShape, *, taps: int = 4, picture_channels: int = 0, has_moments: bool = False
    ) -> tuple[ConvTile, Origin]:
        """Return the tile for a shape and where the choice comes from."""

        def fits(tile: ConvTile) -> bool:
            geometry = ConvGeometry(shape, tile, taps, picture_channels, has_moments)
            return geometry.fits(self.architecture, self.shared_nbytes_per_block)

        def overhang(tile: ConvTile) -> float:
            return math.log2(ConvGeometry(shape, tile).overhang) if shape.may_have_partial_tiles else 0.0

        def idle(tile: ConvTile) -> float:
            """log2 of the multiprocessors over the blocks, if there are fewer blocks."""
            blocks = ConvGeometry(shape, tile).blocks
            return 0.0 if shape.may_have_partial_tiles else max(0.0, math.log2(self.multiprocessors / blocks))

        origins: tuple[tuple[Origin, Mapping[ConvShape, Tuned]], ...]
        origins = (("tuned", self.tuned), ("shipped", self.shipped))
        exact: tuple[tuple[Origin, Mapping[ConvShape, Tuned]], ...] = origins
        if has_moments:
            exact = (("tuned", self.tuned), ("shipped", self.shipped_with_moments), ("shipped", self.shipped))
        for origin, entries in exact:
            entry = entries.get(shape)
            if entry is not None and fits(entry.tile):
                return entry.tile, origin
        near = []
        measured = replace(shape, batch=min(shape.batch, _MOST_PICTURES))
        for place, (_, entries) in enumerate(origins):
            for other, entry in entries.items():
                if other.kind != shape.kind:
                    continue
                if entry.tile.channels > BLOCK_CHANNELS[-1] and other.cout != shape.cout:
                    continue  # as wide as that number of channels asks for
                tiles = for_operands(shape, other, entry.tile)
                if not shape.may_have_partial_tiles:
                    tiles = (filling(shape, tile, self.multiprocessors) for tile in tiles)
                tile = next((tile for tile in tiles if fits(tile)), None)
                if tile is not None and (doublings := distance(measured, other) + _OVERHANG * overhang(tile)) <= _REACH:
                    near.append((doublings + idle(tile), place, tile))
        if near:
            tile = min(near, key=lambda item: item[:2])[2]
            if shape.batch > _MOST_PICTURES:
                tile = with_fewer_slices(shape, tile, self.multiprocessors)
            if shape.may_have_partial_tiles:
                wide = with_fitting_channels(shape, tile)
                tile = with_fitting_row_tiles(shape, wide if fits(wide) else tile, self.multiprocessors)
            return tile, "near"
        if shape.kind == "conv1x1" and shape.may_have_partial_tiles:
            return conv1x1_tile(shape, self.architecture, self.multiprocessors, self.shared_nbytes_per_block), "rule"
        if shape.operands == "fp8":
            return fp8_tile(shape, self.architecture, self.multiprocessors, self.shared_nbytes_per_block), "rule"
        rule = default_tile(
            shape,
            self.architecture,
            self.multiprocessors,
            taps=taps,
            shared_nbytes=self.shared_nbytes_per_block,
        )
        return rule, "rule"


def distance(one: ConvShape, other: ConvShape) -> float:
    """Return the distance between two shapes in doublings, summed over side, channels and batch; of operands too."""
    pairs = ((one.side, other.side), (one.cin, other.cin), (one.cout, other.cout), (one.batch, other.batch))
    return sum(abs(math.log2(a / b)) for a, b in pairs) + (_OTHER_OPERANDS if one.operands != other.operands else 0.0)


def family_of(architecture: str) -> str:
    """Return the family of an architecture: ``sm_90`` for ``sm_90a``."""
    return architecture.rstrip("abcdefghijklmnopqrstuvwxyz")


@functools.cache
def kernels_digest() -> str:
    """Return a digest of the kernels that tables are about: a tuned table is good for these alone."""
    text = "\0".join(kernel_source(stem).whole for stem in KERNELS)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tuned_folder() -> Path:
    """Return where this system keeps tuned tables; nothing is made there before the first is written."""
    return cache_folder() / "tiles"


def tuned_path(folder: Path, gpu_name: str, architecture: str) -> Path:
    """Return the path of a GPU's tuned table for the current kernels."""
    name = re.sub(r"[^a-z0-9]+", "-", gpu_name.lower()).strip("-")[:60] or "gpu"
    return folder / f"{name}-{architecture}-{kernels_digest()}.json"


@functools.cache
def shipped_entries(family: str) -> Mapping[ConvShape, Tuned]:
    """Return the entries that come with the program for a family, or its file of another name; empty for none."""
    file = resources.files(_PACKAGE).joinpath(f"{family}.json")
    return entries_of(file.read_bytes()) if file.is_file() else {}


def read_entries(path: Path) -> dict[ConvShape, Tuned]:
    """Return the entries of a file; empty if there is none that can be read."""
    try:
        return entries_of(read_regular_file(path, _MAX_NBYTES, "a table of tiles"))
    except (OSError, LimitError):
        return {}


def entries_of(data: bytes) -> dict[ConvShape, Tuned]:
    """Return the entries of a table's text; broken entries are skipped."""
    try:
        table = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(table, dict) or table.get("format") != FORMAT or not isinstance(table.get("tiles"), list):
        return {}
    entries = {}
    for item in table["tiles"]:
        try:
            time_us = item["time_us"]
            if isinstance(time_us, bool) or not isinstance(time_us, int | float) or not 0 < time_us < math.inf:
                continue
            entries[checked_value(ConvShape, item["shape"])] = Tuned(
                checked_value(ConvTile, item["tile"]), float(time_us)
            )
        except (TypeError, ValueError, KeyError, OverflowError):
            continue
    return entries


def save_entries(path: Path, entries: Mapping[ConvShape, Tuned], about: Mapping[str, str]) -> None:
    """Write a table in one piece, an entry a line, ordered by shape; `about` describes the measurement.

    Raises
    ------
    OSError
        If the system refuses, or the table is larger than `read_entries` allows.
    """
    lines = [
        json.dumps({"shape": asdict(shape), "tile": asdict(entry.tile), "time_us": round(entry.time_us, 2)})
        for shape, entry in sorted(entries.items(), key=lambda item: _order(item[0]))
    ]
    head = [f"  {json.dumps(key)}: {json.dumps(value)}," for key, value in about.items()]
    body = ",\n".join(f"    {line}" for line in lines)
    text = "\n".join(["{", f'  "format": {FORMAT},', *head, '  "tiles": [', *([body] if body else []), "  ]", "}", ""])
    data = text.encode()
    check_file_size(path, data, _MAX_NBYTES)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def _order(shape: ConvShape) -> tuple[str, int, int, str, int, int]:
    return shape.operands, shape.batch, shape.side, shape.kind, shape.cin, shape.cout


def checked_value(kind: type[_T], data: Any) -> _T:
    """Return a shape or a tile, every field checked against its declaration. Raises TypeError, ValueError, KeyError."""
    if not isinstance(data, dict):
        raise TypeError(data)
    hints = get_type_hints(kind)
    given = {}
    for declared in fields(kind):
        if declared.name not in data and declared.default is not MISSING:
            continue
        given[declared.name] = _checked(hints[declared.name], data[declared.name])
    return kind(**given)


def _checked(hint: Any, value: Any) -> Any:
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(value)
    elif hint is bool:
        if not isinstance(value, bool):
            raise ValueError(value)
    elif isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_NUMBER:
        raise ValueError(value)
    return value
