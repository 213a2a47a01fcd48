"""Fused kernels checked against plain ones on the GPU at hand, once for each GPU, driver and kernel.

Both schedules of a plan are bound. The plain one runs launch by launch; before each fused launch, the regions that it
names get what the plain schedule holds, so that every kernel is judged by itself and not by those before it, unless
one asks the other. Then the regions are compared by their relative L2 error: fp16 rounds to 2^-11 of a number, weights
and activations alike, and toRGB's sums cancel part of what they add up; a kernel that is wrong is off by far more.
Activations of a large network are hundreds of megabytes, so the processor's cores share what is done with them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_backend.cuda.compiler import compiler_version
from gpu_backend.cuda.errors import KernelError
from gpu_backend.cuda.kernel_cache import cache_folder
from gpu_backend.cuda.probe import Gpu
from gpu_backend.cuda.schedule import Address, Launch, Region, Schedule
from gpu_backend.cuda.shared_work import share_out
from gpu_backend.errors import DeviceLostError
from gpu_backend.ops.kernels.recipe import KernelRecipe
from gpu_backend.whole_file import write_whole

TOLERANCE = {"float16": 4e-3, "float32": 2e-2}
"""Of the relative L2 error, by the type of the region: pictures are float32, and sums of many channels."""

_MOST_NBYTES = 1 << 20
_BLOCK = 1 << 20
"""Numbers that a core compares at a time."""

_FORMAT = 1


class Bench(Protocol):
    """A schedule whose launches run one by one, and whose regions can be read and written."""

    @property
    def schedule(self) -> Schedule:
        """What runs."""
        ...

    def launch(self, index: int) -> None:
        """Run one launch."""
        ...

    def read_region(self, name: str) -> NDArray[Any]:
        """Return a copy of a region."""
        ...

    def write_region(self, name: str, array: NDArray[Any]) -> None:
        """Fill a region."""
        ...


@dataclass(frozen=True, slots=True)
class _Group:
    """A fused launch and the plain ones that do the same; without a fused launch, those that both schedules have."""

    fused: int | None
    plain: tuple[int, ...]


def doubtful_recipes(fused: Schedule, plain: Schedule) -> frozenset[KernelRecipe]:
    """Kernels of the fused schedule that the plain one does without."""
    return frozenset(fused.recipes) - frozenset(plain.recipes)


def check_kernels(
    fused: Bench,
    plain: Bench,
    inputs: Mapping[str, NDArray[Any]],
    wanted: Collection[KernelRecipe],
    note: Callable[[Mapping[KernelRecipe, str]], None] = lambda verdicts: None,
) -> dict[KernelRecipe, str]:
    """Run both schedules of a plan on these inputs and return the verdict on each wanted kernel that ran.

    A verdict is empty for a kernel that is right, else one phrase that says where it was off, and how far, or that it
    does not start.

    Parameters
    ----------
    note
        Takes the verdict on a kernel that stops the GPU, which is lost for this process, so that the next one does
        without that kernel.

    Raises
    ------
    DeviceLostError
        If the GPU failed.
    """
    for name, array in inputs.items():
        plain.write_region(name, array)
    verdicts: dict[KernelRecipe, str] = {}
    for group in _groups(fused.schedule, plain.schedule):
        launch = None if group.fused is None else fused.schedule.launches[group.fused]
        teller, follower = _neighbours(group.fused, fused.schedule, plain.schedule)
        is_judged = launch is not None and launch.recipe in wanted and not (teller and verdicts.get(teller.recipe))
        is_asked = is_judged or (follower is not None and follower.recipe in wanted)
        if launch is None or not is_asked or verdicts.get(launch.recipe):
            for index in group.plain:
                plain.launch(index)
            continue
        assert group.fused is not None
        shared = _shared_regions(launch, fused.schedule, plain.schedule)
        before = {other.name: plain.read_region(other.name) for _, other in shared}
        for mine, other in shared:
            if mine.shape == other.shape and mine.role != "zeroed":
                fused.write_region(mine.name, before[mine.name])
        written: dict[str, NDArray[Any]] = {}
        for index in group.plain:
            plain.launch(index)
            # A region that the launch does not name can change too: its memory may serve another one by now.
            for name in _named(plain.schedule.launches[index]) & set(before):
                after = plain.read_region(name)
                if has_changed(before[name], after):
                    written[name] = after
        try:
            # Last, with nothing else under way: what fails now fails by this kernel.
            fused.launch(group.fused)
            if is_judged:
                verdicts[launch.recipe] = _compare(launch, fused, shared, written)
        except KernelError as error:
            verdicts[launch.recipe] = error.phrase
        except DeviceLostError:
            note({launch.recipe: f"it stopped the GPU in its self-check in {launch.layer}"})
            raise
    return verdicts


def _groups(fused: Schedule, plain: Schedule) -> Iterator[_Group]:
    """Pair launches: a plain launch begins a group if the next fused one is the same kernel or stands for it."""
    in_plain = set(plain.recipes)
    next_fused = 0
    group = _Group(None, ())
    for index, launch in enumerate(plain.launches):
        upcoming = fused.launches[next_fused] if next_fused < len(fused.launches) else None
        if upcoming is not None and upcoming.layer == launch.layer:
            is_same = upcoming.recipe == launch.recipe
            stands_for = upcoming.recipe not in in_plain and launch.label == f"plain_{upcoming.label}"
            if is_same or stands_for:
                yield group
                group = _Group(next_fused if stands_for else None, ())
                next_fused += 1
        group = _Group(group.fused, (*group.plain, index))
    yield group


def _neighbours(index: int | None, fused: Schedule, plain: Schedule) -> tuple[Launch | None, Launch | None]:
    """Return who tells a launch what no plain kernel does, and whom it tells: those beside it, of its layer.

    A StyleGAN1's convolution sums for the normalisation, which is right only if that was.
    """
    if index is None:
        return None, None
    alone = {region.name for region in fused.regions} - {region.name for region in plain.regions}
    here = fused.launches[index]

    def beside(place: int) -> Launch | None:
        other = fused.launches[place] if 0 <= place < len(fused.launches) else None
        is_one = other is not None and other.layer == here.layer and alone & _named(other) & _named(here)
        return other if is_one else None

    return beside(index - 1), beside(index + 1)


def _shared_regions(launch: Launch, fused: Schedule, plain: Schedule) -> list[tuple[Region, Region]]:
    """Regions that a launch names and that both schedules have, once each."""
    names = _named(launch)
    mine = {region.name: region for region in fused.regions}
    others = {region.name: region for region in plain.regions}
    return [
        (mine[name], others[name])
        for name in sorted(names)
        if name in others and mine[name].dtype == others[name].dtype
    ]


def _named(launch: Launch) -> set[str]:
    """Regions among a launch's arguments."""
    return {item.name for item in launch.arguments if isinstance(item, Address) and item.kind == "region"}


def _compare(
    launch: Launch, fused: Bench, shared: list[tuple[Region, Region]], written: Mapping[str, NDArray[Any]]
) -> str:
    """Compare what the plain kernels wrote; what they only read is the same on both sides."""
    for mine, other in shared:
        if other.name not in written or mine.dtype not in TOLERANCE or mine.shape[1:] != other.shape[1:]:
            continue
        expected = written[other.name]
        got = fused.read_region(mine.name)
        if mine.shape[0] != other.shape[0]:  # toRGB's parts: one a block of channels, and their sum counts
            got, expected = got.sum(axis=0), expected.sum(axis=0)
        error = relative_error(got, expected)
        if not error <= TOLERANCE[mine.dtype]:
            return f"its self-check was off by {error:.1%} in {launch.layer}"
    return ""


def has_changed(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Tell whether any bit of an array is another one."""
    old, new = (array.reshape(-1).view(np.uint8) for array in (before, after))
    is_same = True

    def look(block: int) -> None:
        nonlocal is_same
        part = slice(block * _BLOCK, (block + 1) * _BLOCK)
        if is_same and not np.array_equal(old[part], new[part]):
            is_same = False

    share_out(look, -(-old.size // _BLOCK))
    return not is_same


def relative_error(got: NDArray[Any], expected: NDArray[Any]) -> float:
    """L2 norm of the difference over that of what was expected; where that is not finite, nothing is compared.

    Infinite if what came is not finite elsewhere. Sums of squares are taken in float32 by blocks, then in float64.
    """
    ours, theirs = got.reshape(-1), expected.reshape(-1)
    blocks = -(-theirs.size // _BLOCK)
    squares = np.zeros((blocks, 2))

    def add(block: int) -> None:
        part = slice(block * _BLOCK, (block + 1) * _BLOCK)
        one, other = ours[part].astype(np.float32), theirs[part].astype(np.float32)
        comparable = np.isfinite(other)
        if not comparable.all():
            one, other = one[comparable], other[comparable]
        apart = one - other
        squares[block] = (np.dot(apart, apart), np.dot(other, other)) if np.isfinite(one).all() else (np.inf, 0.0)

    share_out(add, blocks)
    difference, size = (float(np.sqrt(total)) for total in squares.sum(axis=0))
    return difference / size if size else difference


def record_of(gpu: Gpu, driver: str) -> SelfCheckRecord:
    """Return what was found on a GPU with a driver and the compiler that is installed, from the person's cache folder.

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
        """Keep verdicts; what the disk refuses is checked again next time."""
        self._verdicts.update({recipe.digest: why for recipe, why in verdicts.items()})
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._path, json.dumps(self._verdicts, indent=0, sort_keys=True).encode())


def _read(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _MOST_NBYTES:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {digest: why for digest, why in found.items() if isinstance(digest, str) and isinstance(why, str)}
