"""Every kernel that plans lower to compiles for every architecture and spills no register. Needs no GPU.

Compiling all of them takes ten minutes, so machine code is made of a selection: of each text that the preprocessor
leaves of a source (`levels_of`) one kernel, and of every flavour of tile the one whose threads keep most sums; of each
source every value of each macro that is no tile's; every width of wgmma; for each architecture every source that has
tiles, since those are short of registers. The compiler's frontend, which takes a fifteenth of the time, checks every
source for each architecture, every value of a macro in each text, and all other tiles. Of both, only what changed since
``tests/data/kernels.json`` was written is compiled (`tests.helpers.kept_kernels`), and three kernels anyway.
``EVERY_KERNEL=1`` makes machine code of all for all, as before a release.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from gpu_backend.bench.shapes import shape_of
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.launches.lowering import lower
from gpu_backend.cuda.tiles.table import TileTable
from gpu_backend.cuda.tiles.target import Target
from gpu_backend.cuda.tuning.isolated_conv import macros_of
from gpu_backend.model import stylegan1, stylegan2, stylegan3
from gpu_backend.model.model import Weights
from gpu_backend.model.spec import NetworkSpec, StyleGAN1Spec, StyleGAN3Spec
from gpu_backend.ops.kernels import kernel_source
from gpu_backend.ops.kernels.conv_tile import ConvTile
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.plan.edit_inputs import bendable_layers
from gpu_backend.plan.families import build_plan
from gpu_backend.plan.plan import Plan, PlanEdits, PlanKey, Precision
from gpu_backend.recipe import RowRange
from tests.helpers.kept_kernels import EVERY, KernelStatistics, compiled_now, frontend_log, kept, key_of, statistics_of
from tests.helpers.kernel_checks import ARCHITECTURES, SPILLS
from tests.helpers.networks import NetworkOptions, make_spec
from tests.helpers.stylegan1 import make_spec1
from tests.helpers.stylegan3 import R, StyleGAN3Options, make_spec as make_stylegan3_spec

pytestmark = pytest.mark.long
"""All of the file, so that one worker runs it: what to compile takes seconds to choose."""

KERNELS = Path(__file__).parents[3] / "gpu_backend" / "ops" / "kernels"


Claims = Mapping[tuple[str, KernelRecipe], frozenset[Hashable]]


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

_FLAVOURS = frozenset({"SPLIT_K", "USE_WGMMA", "WEIGHTS_IN_SMEM"})
"""Choices of a tile that make another kernel of it."""

_COUNTS = frozenset({"SPLIT_K", "ROW_TILES"})
"""How many blocks share a sum, and how far one goes on: code differs between one and several."""

_PLAIN_TILE = "TILE TILE_PIXELS TILE_CHANNELS TILE_DEPTH PIXELS GROUPS LANES TILES SHARED_NBYTES"
_STREAMING_TILE = "STRIPS STEPS WARPGROUPS"
_UNFUSED_TILE = "WARPS AHEAD WIDTH"
_FLAT_TILE = "STORES LAST_PRODUCTS"
ONLY_FOR = dict.fromkeys(
    ("first_layers", "flat_conv", "streaming_conv", "streaming_up_conv", "transposed_conv", "up_filter"), "sm_90a"
)
"""Kernels of one architecture."""

TILE_MACROS = (
    frozenset(f"{_PLAIN_TILE} {_STREAMING_TILE} {_UNFUSED_TILE} {_FLAT_TILE}".split())
    | macros_of(ConvTile(8, 8, 16, 16, 2, 1, 1)).keys() - _FLAVOURS
)


def sources(architecture: str) -> set[str]:
    """Stems of all kernels for an architecture."""
    return {path.stem for path in KERNELS.glob("*.cu") if ONLY_FOR.get(path.stem, architecture) == architecture}


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


def every_edit(spec: NetworkSpec) -> PlanEdits:
    """Return edits of every kind, in every layer that they can be in."""
    return PlanEdits(tuple(sorted(bendable_layers(spec))), shifts_styles=True)


@functools.cache
def plans() -> tuple[tuple[Plan, Weights, bool], ...]:
    """Plans, and whether they are lowered to plain kernels."""
    found: list[tuple[Plan, Weights, bool]] = []

    def add(plan: Plan, weights: Weights, *, everything_plain: bool = False) -> None:
        found.append((plan, weights, everything_plain))

    keys: tuple[tuple[int, Precision], ...] = (
        (1, "fp16"),
        (8, "fp16"),
        (8, "fp8"),
        (1, "fp32"),
        (1, "tf32"),
        (1, "bf16x3"),
    )
    for spec in specs():
        weights = weights_of(spec)
        for batch, precision in keys:
            add(build_plan(spec, PlanKey("model", "synthesis", batch, spec.resolution, precision)), weights)
            edited = PlanKey("model", "synthesis", batch, spec.resolution, precision, edits=every_edit(spec))
            add(build_plan(spec, edited), weights)
        add(build_plan(spec, replace(edited, precision="fp16")), weights, everything_plain=True)
        for precision in ("fp16", "fp32"):
            for keeps in (False, True):
                blended = PlanEdits(blends=(RowRange(), RowRange()), keeps_second=keeps)
                key = PlanKey("model", "synthesis", 1, spec.resolution, precision, edits=blended)
                add(build_plan(spec, key), weights)
        plain = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16"))
        add(plain, weights, everything_plain=True)
        for layer in (spec.layers[-1], next((one for one in spec.layers if one.kind == "skip"), spec.layers[1])):
            for precision in ("fp16", "fp32"):
                add(build_plan(spec, PlanKey("model", "synthesis", 1, 0, precision, layer.name)), weights)
        add(build_plan(spec, PlanKey("model", "mapping", 1)), weights)
    return tuple(found)


@functools.cache
def kernels_of(architecture: str) -> dict[KernelRecipe, int]:
    """All kernels that a GPU of an architecture runs, each with the threads of its largest block."""
    machine = MACHINES[architecture]
    tiles = TileTable.load(architecture, machine.multiprocessors, machine.shared_nbytes)
    target = Target(architecture, machine.multiprocessors, machine.shared_nbytes, tiles)
    found: dict[KernelRecipe, int] = {}
    for plan, weights, everything_plain in plans():
        for launch in lower(plan, weights, target, everything_plain=everything_plain).launches:
            found[launch.recipe] = max(found.get(launch.recipe, 0), math.prod(launch.block))
    for recipe in epilogue_passes():
        found[recipe] = 256
    # What no plan asks for: kernels that compare two arrays, and the one that timing is calibrated with.
    for stem in sorted(sources(architecture) - {recipe.stem for recipe in found}):
        found[KernelRecipe(stem)] = 256
    return found


@functools.cache
def epilogue_passes() -> frozenset[KernelRecipe]:
    """Kernels of the ladder's rung without fused epilogues; those of small networks are those of all."""
    found = set()
    tiles = TileTable("sm_80", 108, shared_nbytes_per_block=166912)
    target = Target("sm_80", 108, 166912, tiles, fuses_epilogues=False)
    for architecture in ("skip", "resnet"):
        spec = make_spec(NetworkOptions(16, channel_base=128, channel_max=8, architecture=architecture))
        plan = build_plan(spec, PlanKey("model", "synthesis", 1, spec.resolution, "fp16"))
        found |= {launch.recipe for launch in lower(plan, weights_of(spec), target).launches}
    return frozenset(recipe for recipe in found if recipe.stem == "epilogue_pass")


def traits(recipe: KernelRecipe) -> set[tuple[str, str, str]]:
    """What a kernel is besides its tile, macro by macro."""
    macros = ((name, str(min(int(value), 2)) if name in _COUNTS else value) for name, value in recipe.defines)
    return {(recipe.stem, *macro) for macro in macros if macro[0] not in TILE_MACROS}


def tile_of(recipe: KernelRecipe) -> tuple[str, frozenset[tuple[str, str]]]:
    """What a kernel is but for what it does with its sums; how often it goes on or shares does not count."""
    macros = ((name, str(min(int(value), 2)) if name in _COUNTS else value) for name, value in recipe.defines)
    return recipe.stem, frozenset(macro for macro in macros if macro[0] in TILE_MACROS | _FLAVOURS)


def flavour_of(recipe: KernelRecipe) -> frozenset[tuple[str, str]]:
    """What a tile is besides its numbers."""
    return frozenset(macro for macro in tile_of(recipe)[1] if macro[0] in _FLAVOURS)


def sums_of(recipe: KernelRecipe) -> int:
    """How many sums a thread keeps, or about: a kernel with more of them spills sooner."""
    defines = {name: int(value) for name, value in recipe.defines}
    if "PIXELS" in defines:
        return defines["PIXELS"] * defines.get("CHANNELS", 1)
    if "WARPGROUPS" in defines:
        return 4 * defines["CHANNELS"] // 2
    if "WIDTH" in defines:
        return 8 * defines["COLUMNS"]
    if "WARPS" in defines:
        return 4 * defines["CHANNELS"] // 2
    if "ROWS" in defines:
        threads = defines["WARPS_M"] * defines["WARPS_N"]
        return defines["ROWS"] * defines["COLUMNS"] * defines["CHANNELS"] * defines["MIN_BLOCKS"] // threads
    return 0


@functools.cache
def thresholds(stem: str) -> tuple[int, ...]:
    """Values that a source, with what it includes, compares LEVEL with."""
    return tuple(sorted({int(level) for level in re.findall(r"LEVEL\s*[<>=]+\s*(\d+)", kernel_source(stem).whole)}))


def levels_of(stem: str, architecture: str) -> tuple[bool, ...]:
    """Which thresholds an architecture reaches: architectures that reach the same ones compile the same text."""
    level = 10 * int(re.sub(r"\D", "", architecture))
    return tuple(level >= threshold for threshold in thresholds(stem))


def text_of(recipe: KernelRecipe, architecture: str) -> Hashable:
    """What the preprocessor leaves of a source for an architecture."""
    return recipe.stem, levels_of(recipe.stem, architecture)


@functools.cache
def claims() -> Claims:
    """(architecture, kernel) -> what is shown by compiling it: see the top of this file."""
    found: dict[tuple[str, KernelRecipe], set[Hashable]] = {}
    heaviest: dict[Hashable, tuple[str, KernelRecipe]] = {}
    for architecture in MACHINES:
        for recipe in kernels_of(architecture):
            text = text_of(recipe, architecture)
            shown = found[architecture, recipe] = {("text", text), *(("macro", trait) for trait in traits(recipe))}
            macros = dict(recipe.defines)
            if sums_of(recipe):
                shown.add(("source with tiles", architecture, recipe.stem))
            if macros.get("USE_WGMMA") == "1":
                shown.add(("width", recipe.stem, int(macros["CHANNELS"]) // int(macros.get("WARPS_N", "1"))))
            before = heaviest.setdefault((text, flavour_of(recipe)), (architecture, recipe))
            if sums_of(recipe) > sums_of(before[1]):
                heaviest[text, flavour_of(recipe)] = (architecture, recipe)
    for flavour, kernel in heaviest.items():
        found[kernel].add(("heaviest", flavour))
    return {kernel: frozenset(shown) for kernel, shown in found.items()}


@functools.cache
def wanted() -> dict[str, tuple[KernelRecipe, ...]]:
    """Architecture -> what to compile for it: few kernels of which each shows most of what is not shown yet."""
    if EVERY:
        return {architecture: tuple(kernels_of(architecture)) for architecture in MACHINES}
    chosen: dict[str, list[KernelRecipe]] = {architecture: [] for architecture in MACHINES}
    for architecture, recipe in covering(claims(), set().union(*claims().values())):
        chosen[architecture].append(recipe)
    return {architecture: tuple(recipes) for architecture, recipes in chosen.items()}


def covering(claims: Claims, left: set[Hashable]) -> Iterator[tuple[str, KernelRecipe]]:
    """Yield kernels until nothing is left to be shown: always the one that shows most of it."""
    while left:
        kernel, shown = max(claims.items(), key=lambda item: len(item[1] & left))
        yield kernel
        left = left - shown


@functools.cache
def frontend_claims() -> Claims:
    """(architecture, kernel) -> what is shown when the compiler's frontend accepts it."""
    return {
        (architecture, recipe): frozenset(
            {
                ("source", architecture, recipe.stem),
                ("tile", tile_of(recipe)),
                *(("macro", text_of(recipe, architecture), trait) for trait in traits(recipe)),
            }
        )
        for architecture in MACHINES
        for recipe in kernels_of(architecture)
    }


def compiled_for(architecture: str) -> set[str]:
    """Stems of the kernels that machine code is made of."""
    return {recipe.stem for recipe in wanted()[architecture]}


@pytest.mark.parametrize("architecture", MACHINES)
def test_every_kernel_compiles_and_spills_nothing(architecture: str) -> None:
    done: dict[KernelRecipe, KernelStatistics] = {}
    failures: list[str] = []
    for recipe in wanted()[architecture]:
        try:
            done[recipe] = statistics_of(recipe, architecture)
        except KernelError as error:
            failures.append(f"{error.sentence}\n{error.details}")
    assert not failures, "\n\n".join(failures)
    report = "\n".join(
        f"{kernel.registers:>4} registers {kernel.shared_nbytes:>6} bytes shared {kernel.spill_nbytes:>5} spilled  "
        f"{recipe.title}"
        for recipe, kernel in done.items()
    )
    print(report)  # noqa: T201 - kept with the test's result
    spilled = [recipe.title for recipe, kernel in done.items() if kernel.spill_nbytes > SPILLS.get(recipe.stem, 0)]
    assert spilled == [], f"\n{report}"
    assert all(0 < kernel.registers <= 255 for kernel in done.values())
    threads = kernels_of(architecture)
    too_many = [recipe.title for recipe, kernel in done.items() if kernel.registers * threads[recipe] > 65536]
    assert too_many == [], f"a multiprocessor has not as many registers as one block asks for\n{report}"


def test_what_is_kept_of_kernels_is_what_the_compiler_reports_now() -> None:
    """Of three kernels: which ones follows from all sources of the selection, so that it changes with them."""
    keys = {key_of(recipe, name): (recipe, name) for name, recipes in wanted().items() for recipe in recipes}
    entries = {key: entry for key, entry in kept().items() if entry and key in keys}
    for key in sorted(entries)[:3]:
        recipe, architecture = keys[key]
        assert compiled_now(recipe, architecture) == KernelStatistics(*entries[key]), (recipe.title, architecture)


def test_the_compilers_frontend_accepts_the_rest() -> None:
    done = (frontend_claims()[name, recipe] for name, recipes in wanted().items() for recipe in recipes)
    left = set().union(*frontend_claims().values()).difference(*done)
    refused = {
        (recipe.title, name): log
        for name, recipe in covering(frontend_claims(), left)
        if (log := frontend_log(recipe, name))
    }
    assert refused == {}


def test_no_architecture_and_no_kernel_is_left_out() -> None:
    assert tuple(MACHINES) == ARCHITECTURES
    with_tiles = {recipe.stem for name in MACHINES for recipe in kernels_of(name) if sums_of(recipe)}
    for architecture in MACHINES:
        assert {recipe.stem for recipe in kernels_of(architecture)} == sources(architecture), architecture
        assert compiled_for(architecture) >= with_tiles & sources(architecture)
    assert set().union(*map(compiled_for, MACHINES)) == {path.stem for path in KERNELS.glob("*.cu")}
    shown = {claim for name, recipes in wanted().items() for recipe in recipes for claim in claims()[name, recipe]}
    assert shown == set().union(*claims().values())


def test_kernels_include_parts_alone_each_of_them_once() -> None:
    used = set()
    for path in (*KERNELS.glob("*.cu"), *KERNELS.glob("parts/*.cuh")):
        lines = path.read_text("utf-8").splitlines()
        included = [line for line in lines if line.lstrip().startswith("#") and "include" in line.split()[0]]
        names = [line.removeprefix('#include "').removesuffix('"') for line in included]
        assert all((KERNELS / name).is_file() for name in names), path.name
        assert ("#pragma once" in lines) == (path.suffix == ".cuh"), path.name
        used |= set(names)
    assert used == {f"parts/{path.name}" for path in KERNELS.glob("parts/*.cuh")}


def test_kernels_that_may_start_early_wait_for_the_one_before() -> None:
    waiting = [path for path in KERNELS.glob("*.cu") if KernelRecipe(path.stem).waits_by_itself]
    assert {"modulated_conv", "to_rgb", "filtered_lrelu"} <= {path.stem for path in waiting}
    for path in waiting:
        headers = KernelRecipe(path.stem).headers
        others = [text for name, text in headers.items() if name != "parts/previous_kernel.cuh"]
        assert any("wait_for_previous_kernel();" in text for text in (path.read_text("utf-8"), *others)), path.name


def test_a_kernel_is_known_by_the_parts_that_it_includes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = KernelRecipe("to_rgb")
    assert list(recipe.headers) == [
        "parts/doubling.cuh",
        "parts/types.cuh",
        "parts/bytes.cuh",
        "parts/masks.cuh",
        "parts/previous_kernel.cuh",
    ]
    before = recipe.digest
    changed = {**recipe.headers, "parts/types.cuh": "// another"}
    monkeypatch.setattr(KernelRecipe, "headers", changed)
    assert recipe.digest != before


def test_architectures_share_a_text_only_where_the_source_compares_nothing_between_them() -> None:
    assert thresholds("filtered_lrelu") == (800, 860, 900)
    assert levels_of("filtered_lrelu", "sm_86") == levels_of("filtered_lrelu", "sm_89") == (True, True, False)
    assert levels_of("doubled", "sm_75") != levels_of("doubled", "sm_80") == levels_of("doubled", "sm_90a")
    texts = "".join(path.read_text("utf-8") for path in (*KERNELS.glob("*.cu"), *KERNELS.glob("parts/*.cuh")))
    assert set(re.findall(r"__CUDA_ARCH\w*", texts)) == {"__CUDA_ARCH__"}
    assert texts.count("__CUDA_ARCH__") == 1, "sources ask for LEVEL, which tests may set"
