"""Checks fused kernels against plain ones, once for each GPU, driver and kernel.

Both schedules of a plan are bound. The plain one runs launch by launch. Before each fused launch, the regions that it
names are copied from the plain schedule, so that every kernel is judged by itself, unless it depends on those
before. Then the regions are compared by their relative L2 error: fp16 and tf32 round to 2^-11 of a number, weights
and activations alike, and toRGB's sums cancel part of what they add up; a wrong kernel has a far larger error. Products
of bf16x3 err by 2^-18 on average; without low parts, by more than 2^-10.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.compiling.compiler import compiler_version
from gpu_backend.cuda.compiling.kernel_cache import cache_folder
from gpu_backend.cuda.driver.comparison import Numbers, TensorDiff
from gpu_backend.cuda.driver.probe import Gpu
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.launches.fused_convs import COUNTERS, WORKSPACE
from gpu_backend.cuda.schedule import Address, Launch, Region, Schedule
from gpu_backend.errors import DeviceLostError
from gpu_backend.limits import LimitError, read_regular_file
from gpu_backend.ops.kernels.e4m3 import E4M3
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.quick_dataclass import dataclass
from gpu_backend.whole_file import write_whole

TOLERANCE = {"float16": 4e-3, "float32": 2e-2, E4M3: 4e-2}
"""Of the relative L2 error, by the type of the region: pictures are float32, and sums of many channels. A number of
e4m3 that another order of sums rounds to its neighbour is off by 2^-4 to 2^-3 of itself."""

ACTIVATION_TOLERANCE = 4e-3
"""The same of activations, which tf32 kernels store as float32."""

BF16X3_SHARE = 0.05
"""Of these tolerances, for kernels that multiply in bf16x3."""

_ACTIVATIONS = ("y", "y_raw")
"""Arguments that name them."""

Result = TypeVar("Result")

_MOST_NBYTES = 1 << 20
_FORMAT = 1


class Bench(Protocol):
    """A schedule whose launches run one by one, and whose regions can be written."""

    @property
    def schedule(self) -> Schedule:
        """What runs."""
        ...

    def launch(self, index: int) -> None:
        """Run one launch."""
        ...

    def write_region(self, name: str, array: NDArray[Any]) -> None:
        """Fill a region."""
        ...

    def place_of(self, name: str) -> int:
        """Return the device address of a region."""
        ...


class Compares(Protocol):
    """Copies and compares on the device, like `gpu_backend.cuda.driver.comparison.Comparer`."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy, after all work enqueued so far."""
        ...

    def keep(self, source: int, nbytes: int) -> int:
        """Return memory with a copy, to `release`."""
        ...

    def release(self, address: int) -> None:
        """Free memory from `keep`."""
        ...

    def diff(self, got: Numbers, expected: Numbers) -> TensorDiff:
        """Compare, after all work enqueued so far."""
        ...


@dataclass(frozen=True, slots=True)
class _Group:
    """A fused launch and the plain ones that it replaces; without a fused launch, launches of both schedules."""

    fused: int | None
    plain: tuple[int, ...]


def doubtful_recipes(fused: Schedule, plain: Schedule) -> frozenset[KernelRecipe]:
    """Return the kernels that only the fused schedule has."""
    return frozenset(fused.recipes) - frozenset(plain.recipes)


def check_steps(
    fused: Bench,
    plain: Bench,
    inputs: Mapping[str, NDArray[Any]],
    wanted: Collection[KernelRecipe],
    comparer: Compares,
    note: Callable[[Mapping[KernelRecipe, str]], None] = lambda verdicts: None,
) -> Generator[int, None, dict[KernelRecipe, str]]:
    """Run both schedules of a plan on these inputs and return the verdict on each requested kernel that ran.

    Yields the number of verdicts after each kernel that was judged, so that a thread can do other work between two.

    A verdict is empty for a kernel that is right, else one phrase that says where it was off, and how far, or that it
    does not start.

    Parameters
    ----------
    note
        Takes the verdict on a kernel that stops the GPU, which is lost for this process, so that the next one does
        without that kernel.

    Raises
    ------
    DeviceMemoryError
        If there is no room for copies.
    DeviceLostError
        If the GPU failed.
    """
    for name, array in inputs.items():
        plain.write_region(name, array)
    verdicts: dict[KernelRecipe, str] = {}
    producers = _producers(fused.schedule, plain.schedule)
    asked = {place for index, places in producers.items() for place in places if _recipe(fused, index) in wanted}
    for group in _groups(fused.schedule, plain.schedule):
        launch = None if group.fused is None else fused.schedule.launches[group.fused]
        before = () if group.fused is None else producers[group.fused]
        has_right_input = not any(verdicts.get(_recipe(fused, place)) for place in before)
        is_judged = launch is not None and launch.recipe in wanted and has_right_input
        is_wanted = is_judged or (group.fused in asked and has_right_input)
        if launch is None or not is_wanted or verdicts.get(launch.recipe):
            for index in group.plain:
                plain.launch(index)
            continue
        assert group.fused is not None
        with contextlib.ExitStack() as end:
            compared = _ask_plain(group.plain, launch, fused, plain, comparer, end)
            try:
                # Last, with an otherwise idle device: a failure now is this kernel's.
                fused.launch(group.fused)
                if is_judged:
                    verdicts[launch.recipe] = _verdict(launch, compared, comparer)
            except KernelError as error:
                verdicts[launch.recipe] = error.phrase
            except DeviceLostError:
                note({launch.recipe: f"it stopped the GPU in its self-check in {launch.layer}"})
                raise
        yield len(verdicts)
    return verdicts


def returned(steps: Generator[Any, None, Result]) -> Result:
    """Exhaust a generator and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result


def _ask_plain(
    indices: tuple[int, ...],
    launch: Launch,
    fused: Bench,
    plain: Bench,
    comparer: Compares,
    end: contextlib.ExitStack,
) -> list[tuple[Numbers, Numbers, float]]:
    """Copy the inputs of the plain launches to the fused schedule, and run the plain launches.

    Return the outputs that they wrote: where the fused launch will write, a copy that lasts until `end`, the tolerance.
    Regions that are only read are the same on both sides.
    """

    def keep(numbers: Numbers) -> Numbers:
        address = comparer.keep(numbers.address, numbers.nbytes)
        end.callback(comparer.release, address)
        return replace(numbers, address=address)

    pairs = _given(launch, fused, plain, comparer)
    before = {name: mine if mine.parts == other.parts else keep(other) for name, (mine, other) in pairs.items()}
    written: dict[str, Numbers] = {}
    for index in indices:
        plain.launch(index)
        # A region that the launch does not name can change too: its memory may serve another one by now.
        for name in _named(plain.schedule.launches[index]) & set(pairs):
            other = pairs[name][1]
            if comparer.diff(_in_one(other), _in_one(before[name])).mismatched:
                written[name] = keep(other)
    return [
        (mine, written[name], tolerance_of(launch, name, mine.dtype))
        for name, (mine, _) in pairs.items()
        if name in written
    ]


def tolerance_of(launch: Launch, region: str, dtype: str) -> float:
    """Return the largest relative L2 error of a region that a launch writes."""
    activations = (launch.arguments.get(name) for name in _ACTIVATIONS)
    is_activation = any(isinstance(item, Address) and item.name == region for item in activations)
    tolerance = ACTIVATION_TOLERANCE if is_activation and dtype != E4M3 else TOLERANCE[dtype]
    return tolerance * (BF16X3_SHARE if ("BF16X3", "1") in launch.recipe.defines else 1.0)


def _given(launch: Launch, fused: Bench, plain: Bench, comparer: Compares) -> dict[str, tuple[Numbers, Numbers]]:
    """Copy the regions that a launch names from the plain schedule to the fused one; return those to compare.

    toRGB has one partial sum for each block of channels, so the numbers of parts may differ; their sums are compared.
    """
    pairs = {}
    for mine, other in _shared_regions(launch, fused.schedule, plain.schedule):
        here, there = fused.place_of(mine.name), plain.place_of(other.name)
        count, dtype = math.prod(mine.shape[1:]), mine.dtype
        if mine.shape == other.shape:
            comparer.copy(here, there, mine.nbytes)
            if dtype in TOLERANCE:
                count *= mine.shape[0]
                pairs[other.name] = Numbers(here, dtype, count), Numbers(there, dtype, count)
        elif dtype in TOLERANCE and mine.shape[1:] == other.shape[1:]:
            if mine.shape[0] > other.shape[0]:  # the launch may read them: all in the first parts
                fused.write_region(mine.name, np.zeros(mine.shape, dtype))
                comparer.copy(here, there, other.nbytes)
            pairs[other.name] = Numbers(here, dtype, count, mine.shape[0]), Numbers(there, dtype, count, other.shape[0])
    return pairs


def _in_one(numbers: Numbers) -> Numbers:
    """Return the same numbers as one part."""
    return replace(numbers, count=numbers.count * numbers.parts, parts=1)


def _groups(fused: Schedule, plain: Schedule) -> Iterator[_Group]:
    """Pair launches: a plain launch starts a group if the next fused one is the same kernel or stands for it.

    A fused launch that stands for none is a group of its own: the launch after it is judged with it.
    """
    in_plain = set(plain.recipes)
    next_fused = 0

    def upcoming(layer: str) -> Launch | None:
        launch = fused.launches[next_fused] if next_fused < len(fused.launches) else None
        return launch if launch is not None and launch.layer == layer else None

    group = _Group(None, ())
    for index, launch in enumerate(plain.launches):
        following = upcoming(launch.layer)
        if following is not None and following.recipe not in in_plain and not following.stands_for:
            yield group
            group = _Group(next_fused, ())
            next_fused += 1
            following = upcoming(launch.layer)
        if following is not None:
            stands_for = following.recipe not in in_plain and launch.label == following.stands_for
            if stands_for or following.recipe == launch.recipe:
                yield group
                group = _Group(next_fused if stands_for else None, ())
                next_fused += 1
        group = _Group(group.fused, (*group.plain, index))
    yield group


def _producers(fused: Schedule, plain: Schedule) -> dict[int, tuple[int, ...]]:
    """Return, for each fused launch, those before that it depends on by regions that only the fused schedule has.

    A StyleGAN1's convolution sums for the normalisation, which is right only if that was; so is the convolution whose
    weights have the normalisation.
    """
    alone = {region.name for region in fused.regions} - {region.name for region in plain.regions}
    alone -= {WORKSPACE, COUNTERS}  # of each convolution by itself
    found: dict[int, tuple[int, ...]] = {}
    for index, launch in enumerate(fused.launches):
        is_linked = index > 0 and bool(alone & _named(launch) & _named(fused.launches[index - 1]))
        found[index] = (*found[index - 1], index - 1) if is_linked else ()
    return found


def _recipe(bench: Bench, index: int) -> KernelRecipe:
    return bench.schedule.launches[index].recipe


def _shared_regions(launch: Launch, fused: Schedule, plain: Schedule) -> list[tuple[Region, Region]]:
    """Distinct regions that a launch names and both schedules have, except regions that every run leaves zero."""
    names = _named(launch)
    mine = {region.name: region for region in fused.regions}
    others = {region.name: region for region in plain.regions}
    return [
        (mine[name], others[name])
        for name in sorted(names)
        if name in others and mine[name].dtype == others[name].dtype and mine[name].role not in ("zeroed", "kept")
    ]


def _named(launch: Launch) -> set[str]:
    """Regions among a launch's arguments."""
    return set(launch.region_names)


def _verdict(launch: Launch, compared: list[tuple[Numbers, Numbers, float]], comparer: Compares) -> str:
    for got, expected, tolerance in compared:
        error = comparer.diff(got, expected).relative_error
        if not error <= tolerance:
            return f"its self-check was off by {error:.1%} in {launch.layer}"
    return ""


def record_of(gpu: Gpu, driver: str) -> SelfCheckRecord:
    """Return the verdicts for a GPU, a driver and the installed compiler, from the user's cache folder.

    Raises
    ------
    KernelError
        If there is no compiler.
    """
    return SelfCheckRecord(cache_folder() / "self_check", gpu.uuid, driver, compiler_version())


class SelfCheckRecord:
    """Verdicts that were found before, by digest of the kernel, in a small file of one GPU, driver and compiler."""

    def __init__(self, folder: Path, *depends_on: str) -> None:
        key = hashlib.sha256(json.dumps([_FORMAT, *depends_on]).encode()).hexdigest()
        self._path = folder / f"{key[:32]}.json"
        self._verdicts = _read(self._path)

    @property
    def failures(self) -> dict[str, str]:
        """Digest -> why, of kernels that were wrong."""
        return {digest: why for digest, why in self._verdicts.items() if why}

    def knows(self, recipe: KernelRecipe) -> bool:
        """Whether a kernel was checked."""
        return recipe.digest in self._verdicts

    def note(self, verdicts: Mapping[KernelRecipe, str]) -> None:
        """Store verdicts beside those that other processes stored meanwhile.

        Verdicts that cannot be written are found again at the next start.
        """
        new = {recipe.digest: why for recipe, why in verdicts.items()}
        self._verdicts = {**_read(self._path), **self._verdicts, **new}
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(self._verdicts, indent=0, sort_keys=True).encode())


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(read_regular_file(path, _MOST_NBYTES, "verdicts"))
    except (OSError, LimitError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {digest: why for digest, why in found.items() if isinstance(digest, str) and isinstance(why, str)}
