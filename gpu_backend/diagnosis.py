"""Diagnostic report of the installation: GPUs, driver, compiler, kernels, fallbacks and their reasons.

Needs neither a GPU nor a driver nor any package besides NumPy; missing parts are reported as missing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpu_backend.cuda.driver.probe import Gpu, compile_architecture, probe
from gpu_backend.device import processor_name, usable_precision
from gpu_backend.errors import DeviceError
from gpu_backend.model import Model
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.torch_import import torch_problem

if TYPE_CHECKING:
    from gpu_backend.cuda.schedule import Schedule
    from gpu_backend.cuda.tiles.table import TileTable
    from gpu_backend.ops.kernels.recipe import KernelRecipe
    from gpu_backend.plan.plan import Precision

PACKAGES = (
    "cuda-bindings",
    "nvidia-cuda-nvrtc",
    "nvidia-ml-py",
    "cupti-python",
    "nvidia-cuda-cupti",
    "torch",
    "numpy",
)

_PLAIN_PLAN = (
    "Plan of fp32, whose kernels are plain: products and pictures of toRGB, moments and normalisations have kernels of "
    "their own"
)

WITHOUT_TILES = "without tiles"
"""Of convolutions whose fused kernels divide their work by other rules."""

KernelReadiness = Literal["ready", "not compiled yet", "falls back", "fails"]
"""``falls back``: the kernel does not compile or fails its self-check, and a plain kernel replaces it. ``fails``: no
plain kernel can replace it."""


@dataclass(frozen=True, slots=True)
class KernelDiagnosis:
    """A kernel of a model on a GPU, and the reason if it is not used.

    Attributes
    ----------
    stem
        Name of its source file, shared by kernels with other macros; the title includes the macros.
    """

    stem: str
    title: str
    state: KernelReadiness
    reason: str = ""


@dataclass(frozen=True, slots=True)
class PlainLayer:
    """A layer without a fused kernel on a GPU: the plain kernel that computes it, and the reason."""

    layer: str
    stem: str
    reason: str


@dataclass(frozen=True, slots=True)
class GpuDiagnosis:
    """A usable GPU.

    Attributes
    ----------
    id
        Name that selects it: ``"cuda:0"``.
    architecture, compile_architecture
        Its own architecture, and the compilation target.
    tiles
        Origin of the tiles of a model's convolutions -> number of convolutions; "plain" for those of plain kernels,
        `WITHOUT_TILES` for those of fused ones that divide their work by other rules.
    tuned_entries, shipped_entries
        Numbers of entries in the tuned and the shipped tile table.
    kernels, plain_layers
        Kernels of the model, and its layers without a fused kernel.
    """

    id: str
    name: str
    architecture: str
    compile_architecture: str
    memory_nbytes: int
    multiprocessors: int
    shared_nbytes_per_block: int
    l2_nbytes: int
    tuned_entries: int
    shipped_entries: int
    tiles: tuple[tuple[str, int], ...] = ()
    kernels: tuple[KernelDiagnosis, ...] = ()
    plain_layers: tuple[PlainLayer, ...] = ()
    problem: str = ""
    """Why the kernels of the model could not be listed; empty if they were."""
    other_precision: str = ""
    """Why the model is rendered in another precision, and in which; empty if it is not."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Contents of a report on the backend.

    Attributes
    ----------
    problem
        One sentence: why no GPU is usable; empty if one is.
    cpu_problem
        One sentence: why the CPU cannot render; empty if it can.
    other_gpus
        Names of unusable GPUs, if none is usable.
    nvrtc, architectures
        Version of the compiler and its target architectures; empty if not installed.
    packages
        Name and version; the version is empty if not installed.
    cache_folder, cache_files, cache_nbytes
        The user's cache folder, its number of files and their size.
    """

    gpus: tuple[GpuDiagnosis, ...]
    problem: str
    driver: str
    other_gpus: tuple[str, ...]
    nvrtc: str
    architectures: tuple[str, ...]
    packages: tuple[tuple[str, str], ...]
    cache_folder: Path
    cache_files: int
    cache_nbytes: int
    processor: str
    processors: int
    memory_nbytes: int
    cpu_problem: str = ""


def diagnose(model: Model | None = None, precision: Precision = "fp16") -> Diagnosis:
    """Examine this machine and, with a model, its kernels. Nothing is compiled; earlier compilations are reported."""
    from gpu_backend.cuda.compiling.kernel_cache import cache_folder
    from gpu_backend.cuda.driver.nvml import gpu_names

    found = probe()
    nvrtc, architectures = _compiler()
    folder = cache_folder()
    sizes = _sizes(folder)
    return Diagnosis(
        gpus=tuple(_gpu(gpu, model, found.driver, precision) for gpu in found.gpus),
        problem=found.problem,
        driver=found.driver,
        other_gpus=() if found.gpus else gpu_names(),
        nvrtc=nvrtc,
        architectures=architectures,
        packages=tuple((name, _version(name)) for name in PACKAGES),
        cache_folder=folder,
        cache_files=len(sizes),
        cache_nbytes=sum(sizes),
        processor=processor_name(),
        processors=os.cpu_count() or 1,
        memory_nbytes=_memory_nbytes(),
        cpu_problem=torch_problem("Rendering on the CPU"),
    )


def fused_plan(model: Model, precision: Precision = "fp16", architecture: str = "") -> list[str]:
    """Return which steps of a model's plans become one kernel on a GPU, a line each, and what convolutions multiply.

    Needs no GPU. Plans of fp8 depend on the GPU, which their first line names: one of an architecture, such as
    ``"sm_90"``, else the first one of this machine. Without any, the plan is that of GPUs other than Hopper. The first
    line of a plan of fp32 says that its kernels are plain. A last line names the layers that one kernel computes on
    this machine's GPU.
    """
    from gpu_backend.cuda.launches.gpu_op import LoweringContext
    from gpu_backend.cuda.launches.op_table import GPU_OPS
    from gpu_backend.cuda.tiles.target import target_of
    from gpu_backend.ops.kernels.e4m3 import up_convs_multiply_e4m3
    from gpu_backend.plan.families import build_plan
    from gpu_backend.plan.fusion import fuse
    from gpu_backend.plan.plan import PlanKey

    keys = (
        PlanKey(model.facts.model_id, "mapping", 1),
        PlanKey(model.facts.model_id, "synthesis", 1, model.spec.resolution, precision),
    )
    gpus = () if architecture else probe().gpus[:1]
    lines: list[str] = []
    up_convs_read_fp8 = False
    if precision == "fp8":
        target, sentence = _plan_target(architecture, gpus)
        up_convs_read_fp8 = up_convs_multiply_e4m3(target)
        lines.append(sentence)
    elif precision == "fp32":
        lines.append(_PLAIN_PLAN)
    for key in keys:
        plan = build_plan(model.spec, key)
        steps = fuse(plan, up_convs_read_fp8=up_convs_read_fp8)
        of_e4m3 = {step.y for step in steps if step.stores_fp8}
        for step in steps:
            op = GPU_OPS.get(step.main.op)
            is_convolution = op is not None and op.shape_for_tuning(step.main, key.batch) is not None
            multiplied = "e4m3" if step.x in of_e4m3 else "fp16" if key.precision == "fp8" else key.precision
            lines.append(f"{step}, multiplies {multiplied}" if is_convolution else str(step))
    for gpu in gpus if precision != "fp32" else ():
        context = LoweringContext(plan, model.weights, target_of(gpu, None), {})
        for place, step in enumerate(steps):
            run = GPU_OPS[step.main.op].fused_run(steps[place:], context)
            if run is not None:
                last = steps[place + run[0] - 1].main.layer
                lines.append(f"{gpu.name}: one kernel from {step.main.layer} to {last}")
    return lines


def _plan_target(architecture: str, gpus: Sequence[Gpu]) -> tuple[str, str]:
    """Return the architecture that a plan of fp8 is for, empty for any other than Hopper, and a line that says so."""
    if architecture:
        return compile_architecture(architecture), f"Plan for {architecture}"
    if gpus:
        return gpus[0].compile_architecture, f"Plan for {gpus[0].name}, {gpus[0].architecture}"
    return "", "Plan for GPUs other than Hopper (sm_90), since this machine has no GPU to use"


def _gpu(gpu: Gpu, model: Model | None, driver: str, precision: Precision) -> GpuDiagnosis:
    from gpu_backend.cuda.running.self_check import doubtful_recipes
    from gpu_backend.cuda.tiles.table import tuned_folder
    from gpu_backend.cuda.tiles.target import target_of
    from gpu_backend.renderer.kernels import recipes_in, schedules_of

    table = target_of(gpu, tuned_folder()).tiles
    kernels: tuple[KernelDiagnosis, ...] = ()
    layers: tuple[PlainLayer, ...] = ()
    origins: tuple[tuple[str, int], ...] = ()
    problem = other_precision = ""
    if model is not None:
        usable, why = usable_precision(model, gpu, precision)
        if why:
            other_precision = f"{usable} in place of {precision}: {why}"
        try:
            picture, latent, plain = schedules_of(model, gpu, precision)
            recipes = recipes_in((picture, latent, plain))
            kernels = tuple(_kernels(recipes, doubtful_recipes(picture, plain), gpu, driver))
            layers = tuple(
                PlainLayer(launch.layer, launch.recipe.stem, launch.reason)
                for launch in picture.launches
                if launch.reason
            )
            origins = _origins(model, picture, table)
        except DeviceError as error:
            problem = error.sentence
    return GpuDiagnosis(
        id=gpu.id,
        name=gpu.name,
        architecture=gpu.architecture,
        compile_architecture=gpu.compile_architecture,
        memory_nbytes=gpu.memory_nbytes,
        multiprocessors=gpu.multiprocessors,
        shared_nbytes_per_block=gpu.shared_nbytes_per_block_optin,
        l2_nbytes=gpu.l2_nbytes,
        tuned_entries=len(table.tuned),
        shipped_entries=len(table.shipped),
        tiles=origins,
        kernels=kernels,
        plain_layers=layers,
        problem=problem,
        other_precision=other_precision,
    )


def _kernels(
    recipes: Iterable[KernelRecipe], replaceable: Collection[KernelRecipe], gpu: Gpu, driver: str
) -> Iterator[KernelDiagnosis]:
    from gpu_backend.cuda.compiling.kernel_cache import KernelCache, kernel_key
    from gpu_backend.cuda.running.self_check import record_of

    cache = KernelCache()
    failures = record_of(gpu, driver).failures
    for recipe in recipes:
        key = kernel_key(recipe, gpu.compile_architecture)
        why = failures.get(recipe.digest) or cache.failure(key)
        state: KernelReadiness = "ready" if cache.has(key) else "not compiled yet"
        if why:
            state = "falls back" if recipe in replaceable else "fails"
        yield KernelDiagnosis(recipe.stem, recipe.title, state, why)


def _origins(model: Model, picture: Schedule, table: TileTable) -> tuple[tuple[str, int], ...]:
    from gpu_backend.cuda.tiles.table import KERNELS
    from gpu_backend.cuda.tuning.isolated_conv import FusedExtras, conv_steps
    from gpu_backend.ops.kernels.conv_tile import NoTileError

    extras = FusedExtras.of(model.spec)
    with_tile = {launch.layer for launch in picture.launches if launch.recipe.stem in KERNELS}
    plain = {launch.layer for launch in picture.launches if not launch.is_fused}
    counted: Counter[str] = Counter()
    for shape, (_, step) in conv_steps([picture.plan]).items():
        try:
            _, origin = extras.explain(table, shape)
        except NoTileError:
            counted["plain"] += 1
        else:
            counted[origin if step.layer in with_tile else "plain" if step.layer in plain else WITHOUT_TILES] += 1
    return tuple(counted.items())


def _compiler() -> tuple[str, tuple[str, ...]]:
    from gpu_backend.cuda.driver.installed_system import InstalledSystem

    # Any exception: a package or its library may be missing or built for another machine.
    try:
        version, known = InstalledSystem().nvrtc()
    except Exception:
        return "", ()
    return f"{version[0]}.{version[1]}", tuple(f"sm_{number}" for number in known)


def _sizes(folder: Path) -> list[int]:
    """Return the sizes of all files; tolerates files that disappear meanwhile."""
    sizes = []
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                sizes.append(Path(place, name).stat().st_size)
    return sizes


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _memory_nbytes() -> int:
    """Return the machine's memory in bytes; 0 if unknown."""
    if sys.platform == "win32":
        return 0
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return 0
