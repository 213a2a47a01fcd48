"""Every kernel that plans lower to compiles for every architecture and spills no register. Needs no GPU.

To take a minute and not ten, each architecture compiles every source, and each set of architectures with the same code
paths (`CODE_PATHS`) every value of each macro that is no tile's, the heaviest tiles first. Each other tile is compiled
in one kernel, for one of the architectures that use it. ``EVERY_KERNEL=1`` compiles all for all.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.compiling.compilation import compile_kernels
from gpu_backend.cuda.compiling.kernel_cache import KernelCache
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.cuda.tuning.isolated_conv import macros_of
from gpu_backend.model import stylegan1, stylegan2, stylegan3
from gpu_backend.model.model import Weights
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN3Spec
from gpu_backend.ops.kernels.conv_tile import ConvTile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import PlanKey, Precision
from tests.helpers.kernel_checks import ARCHITECTURES, EVERY
from tests.helpers.networks import NetworkOptions, make_spec
from tests.helpers.stylegan1 import make_spec1
from tests.helpers.stylegan3 import R, StyleGAN3Options, make_spec as make_stylegan3_spec

KERNELS = Path(__file__).parents[3] / "gpu_backend" / "ops" / "kernels"


@dataclass(frozen=True)
class Machine:
    """Multiprocessors and shared memory of a usual GPU of an architecture."""

    multiprocessors: int
    shared_nbytes: int


MACHINES = {
    "sm_75": Machine(40, 65536),
    "sm_80": Machine(108, 166912),
    "sm_86": Machine(82, 101376),
    "sm_89": Machine(128, 101376),
    "sm_90a": Machine(132, 232448),
    "sm_100": Machine(148, 232448),
    "sm_120": Machine(170, 101376),
}

CODE_PATHS = (("sm_75",), ("sm_80",), ("sm_86", "sm_89"), ("sm_90a",), ("sm_100", "sm_120"))
"""Architectures for which the preprocessor leaves the same text of every source; LEVEL is compared with numbers."""

_FLAVOURS = frozenset({"SPLIT_K", "WGMMA", "WEIGHTS_IN_SMEM"})
"""Choices of a tile that make another kernel of it."""

_COUNTS = frozenset({"SPLIT_K", "ROW_TILES"})
"""How many blocks share a sum, and how far one goes on: code differs between one and several."""

_PLAIN_TILE = "TILE TILE_PIXELS TILE_CHANNELS TILE_DEPTH PIXELS GROUPS LANES TILES"
TILE_MACROS = frozenset(_PLAIN_TILE.split()) | macros_of(ConvTile(8, 8, 16, 16, 2, 1, 1)).keys() - _FLAVOURS


def sources() -> set[str]:
    """Stems of all kernels."""
    return {path.stem for path in KERNELS.glob("*.cu")}


def specs() -> Iterator[NetworkSpec]:
    """The large public networks, and small ones of the other architectures; one is conditional."""
    large = shape_of("ffhq1024")
    options = NetworkOptions(resolution=large.resolution, channel_base=large.base, channel_max=large.maximum)
    yield make_spec(options)
    small = NetworkOptions(64, channel_base=2048, channel_max=64)
    yield make_spec(replace(small, architecture="resnet", c_dim=3))
    yield make_spec(replace(small, architecture="orig"))
    adain = shape_of("adain1024")
    yield make_spec1(resolution=adain.resolution, channel_base=adain.base, channel_max=adain.maximum, w_dim=512)
    yield make_spec1(resolution=128, channel_base=8192, channel_max=64, blurs_bias=True)
    for name, changes in (("t1024", {}), ("r1024", R)):
        shape = shape_of(name)
        yield make_stylegan3_spec(
            StyleGAN3Options(shape.resolution, channel_base=shape.base, channel_max=shape.maximum, w_dim=512, **changes)
        )


def weights_of(spec: NetworkSpec) -> Weights:
    """Ones in every place, in next to no memory."""
    if isinstance(spec, StyleGAN1Spec):
        shapes = stylegan1.tensor_shapes(spec)
    elif isinstance(spec, StyleGAN3Spec):
        shapes = stylegan3.tensor_shapes(spec)
    else:
        shapes = stylegan2.tensor_shapes(spec)
    return {name: np.broadcast_to(np.float32(1), shape) for name, shape in shapes.items()}


@functools.cache
def recipes_of(architecture: str) -> tuple[KernelRecipe, ...]:
    """All kernels that a GPU of an architecture runs."""
    machine = MACHINES[architecture]
    tiles = TileTable.load(architecture, machine.multiprocessors, machine.shared_nbytes)
    target = Target(architecture, machine.multiprocessors, machine.shared_nbytes, tiles)
    found: dict[KernelRecipe, None] = {}
    keys: tuple[tuple[int, Precision], ...] = ((1, "fp16"), (8, "fp16"), (1, "fp32"))
    for spec in specs():
        weights = weights_of(spec)
        for batch, precision in keys:
            plan = build_plan(spec, PlanKey("model", "synthesis", batch, spec.resolution, precision))
            found.update(dict.fromkeys(lower(plan, weights, target).recipes))
        plain = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16"))
        found.update(dict.fromkeys(lower(plain, weights, target, everything_plain=True).recipes))
        for layer in (spec.layers[-1], next((one for one in spec.layers if one.kind == "skip"), spec.layers[1])):
            for precision in ("fp16", "fp32"):
                shown = build_plan(spec, PlanKey("model", "synthesis", 1, 0, precision, layer.name))
                found.update(dict.fromkeys(lower(shown, weights, target).recipes))
        mapping = build_plan(spec, PlanKey("model", "mapping", 1))
        found.update(dict.fromkeys(lower(mapping, weights, target).recipes))
    # What no plan asks for: the kernel that timing is calibrated with.
    for stem in sorted(sources() - {recipe.stem for recipe in found}):
        found[KernelRecipe(stem)] = None
    return tuple(found)


def traits(recipe: KernelRecipe) -> set[tuple[str, str, str]]:
    """What a kernel is besides its tile, macro by macro."""
    macros = ((name, str(min(int(value), 2)) if name in _COUNTS else value) for name, value in recipe.defines)
    return {(recipe.stem, "", "")} | {(recipe.stem, *macro) for macro in macros if macro[0] not in TILE_MACROS}


def tile_of(recipe: KernelRecipe) -> tuple[str, frozenset[tuple[str, str]]]:
    """What a kernel is but for what it does with its sums; how often it goes on or shares does not count."""
    macros = ((name, str(min(int(value), 2)) if name in _COUNTS else value) for name, value in recipe.defines)
    return recipe.stem, frozenset(macro for macro in macros if macro[0] in TILE_MACROS | _FLAVOURS)


def sums_of(recipe: KernelRecipe) -> int:
    """How many sums a thread keeps, or about: a kernel with more of them spills sooner."""
    defines = {name: int(value) for name, value in recipe.defines}
    if "PIXELS" in defines:
        return defines["PIXELS"] * defines.get("CHANNELS", 1)
    if "ROWS" in defines:
        threads = defines["WARPS_M"] * defines["WARPS_N"]
        return defines["ROWS"] * defines["COLUMNS"] * defines["CHANNELS"] * defines["MIN_BLOCKS"] // threads
    return 0


@functools.cache
def wanted() -> dict[str, tuple[KernelRecipe, ...]]:
    """Architecture -> what to compile for it."""
    everywhere = {architecture: recipes_of(architecture) for architecture in MACHINES}
    if EVERY:
        return everywhere
    chosen: dict[str, dict[KernelRecipe, None]] = {architecture: {} for architecture in MACHINES}
    for architectures in CODE_PATHS:
        seen: set[tuple[str, str, str]] = set()
        heaviest_first = [sorted(everywhere[name], key=sums_of, reverse=True) for name in architectures]
        for turn in zip_longest(*heaviest_first):
            for architecture, recipe in zip(architectures, turn, strict=True):
                if recipe is None:
                    continue
                stems = {one.stem for one in chosen[architecture]}
                if recipe.stem not in stems or not traits(recipe) <= seen:
                    seen |= traits(recipe)
                    chosen[architecture][recipe] = None
    taken = {tile_of(recipe) for recipes in chosen.values() for recipe in recipes}
    users: dict[tuple[str, frozenset[tuple[str, str]]], dict[str, KernelRecipe]] = {}
    for architecture, recipes in everywhere.items():
        for recipe in recipes:
            users.setdefault(tile_of(recipe), {}).setdefault(architecture, recipe)
    for number, (tile, kernels) in enumerate(users.items()):
        if tile not in taken:
            architecture = list(kernels)[number % len(kernels)]
            chosen[architecture][kernels[architecture]] = None
    return {architecture: tuple(recipes) for architecture, recipes in chosen.items()}


@pytest.mark.parametrize("architecture", MACHINES)
def test_every_kernel_compiles_and_spills_nothing(architecture: str, compiled_before: KernelCache) -> None:
    done = compile_kernels(wanted()[architecture], architecture, cache=compiled_before)
    assert not done.failures, "\n\n".join(f"{error.sentence}\n{error.details}" for error in done.failures.values())
    report = "\n".join(
        f"{kernel.registers:>4} registers {kernel.shared_nbytes:>6} bytes shared {kernel.spill_nbytes:>5} spilled  "
        f"{recipe.title}"
        for recipe, kernel in done.kernels.items()
    )
    print(report)  # noqa: T201 - kept with the test's result
    assert [recipe.title for recipe, kernel in done.kernels.items() if kernel.spill_nbytes] == [], f"\n{report}"
    assert all(0 < kernel.registers <= 255 for kernel in done.kernels.values())


def test_no_architecture_and_no_kernel_is_left_out() -> None:
    assert tuple(MACHINES) == ARCHITECTURES
    assert {name for architectures in CODE_PATHS for name in architectures} == set(ARCHITECTURES)
    for architecture, recipes in wanted().items():
        assert {recipe.stem for recipe in recipes} == sources(), architecture
    for architectures in CODE_PATHS:
        every = set().union(*(traits(recipe) for name in architectures for recipe in recipes_of(name)))
        assert {one for name in architectures for recipe in wanted()[name] for one in traits(recipe)} == every
    compiled = {tile_of(recipe) for recipes in wanted().values() for recipe in recipes}
    assert {tile_of(recipe) for architecture in MACHINES for recipe in recipes_of(architecture)} == compiled


def test_kernels_include_nothing() -> None:
    for path in (*KERNELS.glob("*.cu"), *KERNELS.glob("parts/*.cuh")):
        assert "#include" not in path.read_text("utf-8"), path.name


def test_architectures_share_a_code_path_only_where_no_source_tells_them_apart() -> None:
    texts = "".join(path.read_text("utf-8") for path in (*KERNELS.glob("*.cu"), *KERNELS.glob("parts/*.cuh")))
    levels = {int(level) for level in re.findall(r"LEVEL\s*[<>=]+\s*(\d+)", texts)}
    assert levels
    for architectures in CODE_PATHS:
        numbers = [10 * int(re.sub(r"\D", "", name)) for name in architectures]
        assert len({tuple(number >= level for level in sorted(levels)) for number in numbers}) == 1, architectures
