"""Mapping network of all families: spec from shapes, and shapes from the spec."""

from __future__ import annotations

import math
import re

from gpu_backend.model.refusal import Refusal
from gpu_backend.model.shapes import Shapes, shape_of
from gpu_backend.model.spec import Activation, ClassTable, MappingSpec

_MAX_LAYERS = 64
_FULLY_CONNECTED = re.compile(r"mapping\.fc(0|[1-9][0-9]?)\.weight", re.ASCII)


def find_mapping(
    shapes: Shapes, activation: Activation, lr_multiplier: float, *, joins_label: bool = False
) -> MappingSpec:
    """Derive the spec of the mapping network from its tensors.

    Raises
    ------
    Refusal
        If a tensor is missing, or the layers do not fit together.
    """
    depth = sum(1 for name in shapes if _FULLY_CONNECTED.fullmatch(name))
    if not 1 <= depth <= _MAX_LAYERS:
        raise Refusal(f"a mapping network of 1 to {_MAX_LAYERS} layers", f"found one of {depth}")
    widths = tuple(shape_of(shapes, f"mapping.fc{index}.weight", 2)[0] for index in range(depth))
    embed_dim = c_dim = 0
    table: ClassTable | None = None
    if "mapping.embed_proj.weight" in shapes:
        embed_dim = shape_of(shapes, "mapping.embed_proj.weight", 2)[0]
        c_dim = shape_of(shapes, "mapping.w_avg", 2)[0]
        table = ClassTable(*shape_of(shapes, "mapping.embed.weight", 2))
        if table.rows < c_dim:
            raise Refusal(f"a row of mapping.embed.weight for each of {c_dim} classes", f"there are {table.rows}")
    elif "mapping.embed.weight" in shapes:
        embed_dim, c_dim = shape_of(shapes, "mapping.embed.weight", 2)
    z_dim = shape_of(shapes, "mapping.fc0.weight", 2)[1] - embed_dim
    if z_dim < 1:
        raise Refusal("a mapping network that takes z", f"its first layer has room for {z_dim} numbers of z")
    return MappingSpec(z_dim, c_dim, embed_dim, widths, activation, lr_multiplier, joins_label and c_dim > 0, table)


def mapping_shapes(mapping: MappingSpec) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a mapping network, w_avg among them."""
    shapes: dict[str, tuple[int, ...]] = {"mapping.w_avg": (mapping.w_dim,)}
    features, table = mapping.z_dim, mapping.class_table
    if table is not None:
        shapes["mapping.w_avg"] = (mapping.c_dim, mapping.w_dim)
        shapes["mapping.embed.weight"] = (table.rows, table.width)
        shapes["mapping.embed_proj.weight"] = (mapping.embed_dim, table.width)
        shapes["mapping.embed_proj.bias"] = (mapping.embed_dim,)
        features += mapping.embed_dim
    elif mapping.c_dim > 0:
        shapes["mapping.embed.weight"] = (mapping.embed_dim, mapping.c_dim)
        shapes["mapping.embed.bias"] = (mapping.embed_dim,)
        features += mapping.embed_dim
    for index, width in enumerate(mapping.widths):
        shapes[f"mapping.fc{index}.weight"] = (width, features)
        shapes[f"mapping.fc{index}.bias"] = (width,)
        features = width
    return shapes


def label_multiplier(mapping: MappingSpec) -> float:
    """Return the learning-rate multiplier of the label embedding; without gain, one that leaves weights unscaled.

    A fully connected layer of n inputs scales its weights by the multiplier over sqrt(n).
    """
    return math.sqrt(mapping.c_dim) if mapping.joins_label else 1.0
