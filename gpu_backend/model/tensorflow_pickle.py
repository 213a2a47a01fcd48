"""StyleGANs as NVIDIA's TensorFlow tools store them: networks of components, arrays and settings.

A file holds three networks, the generator in training, the discriminator and the generator's average, the last of which
is used. The source text that each carries is what those tools run to build it; here it stays a text.
"""

from __future__ import annotations

from gpu_backend.model.found import Found
from gpu_backend.model.layout import Layout, place_tensors
from gpu_backend.model.layouts import TENSORFLOW, tensorflow_grown
from gpu_backend.model.pickled import Pickled
from gpu_backend.model.placed_network import find_placed
from gpu_backend.model.recognised import not_run
from gpu_backend.model.records import TensorFlowNetwork
from gpu_backend.model.refusal import Refusal
from gpu_backend.model.shapes import MAX_RESOLUTION
from gpu_backend.model.source import Source
from gpu_backend.model.stylegan1_arguments import read_stylegan1_arguments
from gpu_backend.model.stylegan1_files import check_grown, find_stylegan1
from gpu_backend.model.stylegan2 import block_resolutions
from gpu_backend.model.tensor_table import RecordTable, TensorTable
from gpu_backend.model.tensorflow_network import TensorFlowParts, take_apart
from gpu_backend.model.tensorflow_settings import check_arguments, read_settings

_CONTAINER = "TensorFlow pickle"
_SOURCE = "program source inside the file: never run"
_IGNORED = ("G: the generator as it was in training", "D: the discriminator", _SOURCE)
_GROWN = "synthesis/ToRGB_lod0/weight"


def holds_tensorflow(value: object) -> bool:
    """Whether a value read from a pickle is a TensorFlow network, or a tuple with one."""
    items = value if isinstance(value, tuple) else (value,)
    return any(isinstance(item, TensorFlowNetwork) for item in items)


def find_tensorflow(source: Source, pickled: Pickled) -> Found:
    """Find the generator's average in a TensorFlow file.

    Raises
    ------
    Unsupported
        If it is a network that is recognised but not supported.
    Refusal
        If there is no generator, or it contradicts itself.
    """
    generator, ignored = _choose(pickled.value)
    parts = take_apart(generator)
    table = RecordTable(source, parts.tensors)
    resolution = _resolution(parts)
    if _is_stylegan1(parts):
        layout, settings1, warnings = read_stylegan1_arguments(parts, table.shapes, resolution)
        return find_stylegan1(
            table,
            layout,
            settings=settings1,
            container=_CONTAINER,
            requested=frozenset(pickled.requested),
            ignored=ignored,
            warnings=warnings,
        )
    if parts.functions[""] == "G_paper" or "4x4/Dense/weight" in parts.tensors:
        raise not_run("a progressive GAN (TensorFlow)")
    placed = place_tensors(_layout(table, resolution), table.shapes)
    check_arguments(parts, placed, resolution)
    settings, warnings = read_settings(parts, placed, resolution)
    return find_placed(
        table,
        placed,
        settings,
        container=_CONTAINER,
        flavour=_flavour(parts),
        requested=frozenset(pickled.requested),
        ignored=ignored,
        warnings=warnings,
    )


def _choose(value: object) -> tuple[TensorFlowNetwork, tuple[str, ...]]:
    if isinstance(value, TensorFlowNetwork):
        return value, (_SOURCE,)
    networks = value if isinstance(value, tuple) else ()
    if len(networks) != 3 or not all(isinstance(item, TensorFlowNetwork) for item in networks):
        raise Refusal("three networks in a TensorFlow file", f"there are {len(networks)} values")
    return networks[2], _IGNORED


def _is_stylegan1(parts: TensorFlowParts) -> bool:
    return parts.functions[""] == "G_style" or any("/StyleMod/" in name for name in parts.tensors)


def _flavour(parts: TensorFlowParts) -> str:
    is_ada = parts.version >= 5 or parts.functions.get("synthesis") == "G_synthesis"
    return "StyleGAN2-ADA, TensorFlow" if is_ada else TENSORFLOW.flavour


def _resolution(parts: TensorFlowParts) -> int:
    sizes = block_resolutions(MAX_RESOLUTION)
    return max((size for size in sizes if f"synthesis/{size}x{size}/Conv1/weight" in parts.tensors), default=4)


def _layout(table: TensorTable, resolution: int) -> Layout:
    if _GROWN not in table.shapes:
        return TENSORFLOW
    for name in ("lod", "synthesis/lod"):
        check_grown(table, name)
    return tensorflow_grown(resolution)
