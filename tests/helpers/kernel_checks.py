"""Checks of every kernel without a GPU: it compiles for each architecture, and its launches fit its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from gpu_backend.cuda.driver.arguments import pack_arguments
from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.schedule import Constant, Launch, Region
from gpu_backend.ops.kernels.parameters import MAP_NBYTES
from gpu_backend.ops.kernels.recipe import KernelRecipe
from tests.helpers.kept_kernels import EVERY, frontend_log, statistics_of

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100", "sm_120")
"""The architectures that kernels are compiled for."""
T = TypeVar("T")


def accepted(choice: T | Refused) -> T:
    """Return a builder's launches where a fused kernel is not refused."""
    assert not isinstance(choice, Refused), choice.reason
    return choice


def dealt(recipes: Sequence[T], architecture: str) -> Sequence[T]:
    """What to compile for an architecture: the first kernel, which is the heaviest, and its share of the others.

    ``EVERY_KERNEL=1`` deals all to all.
    """
    first, *others = recipes
    return recipes if EVERY else [first, *others[ARCHITECTURES.index(architecture) :: len(ARCHITECTURES)]]


def one_each(variants: Sequence[T]) -> list[tuple[T, str]]:
    """Each variant of a kernel with one architecture to compile it for, in turn.

    ``test_kernels_compile.py`` compiles every source for each of them. ``EVERY_KERNEL=1`` gives each variant all.
    """
    if EVERY:
        return [(variant, architecture) for variant in variants for architecture in ARCHITECTURES]
    return [(variant, ARCHITECTURES[number % len(ARCHITECTURES)]) for number, variant in enumerate(variants)]


SPILLS = {"transposed_conv": 168, "gradient_picture": 12, "lbfgs_solve": 24, "gradient_layer": 8}
"""Most bytes that NVRTC 13.0, which comes with CUDA builds of torch, spills of a kernel; 13.5 spills none of these."""


def assert_compiles(recipe: KernelRecipe, architecture: str, threads: int, *, is_heavy: bool = True) -> None:
    """The kernel compiles, spills nothing but `SPILLS`, and a block of `threads` finds registers.

    Of a variant that is not heavy, whose registers a heavier one stands for, the compiler's frontend is asked alone,
    but for ``EVERY_KERNEL=1``.
    """
    if not (is_heavy or EVERY):
        log = frontend_log(recipe, architecture)
        assert not log, f"{recipe.title} for {architecture}: {log}"
        return
    compiled = statistics_of(recipe, architecture)
    found = f"{recipe.title} for {architecture}: {compiled.registers} registers, {compiled.spill_nbytes} bytes spilled"
    assert compiled.spill_nbytes <= SPILLS.get(recipe.stem, 0), found
    assert 0 < compiled.registers * threads <= 65536, found


def assert_arguments_fit(launch: Launch, regions: tuple[Region, ...], constants: tuple[Constant, ...]) -> None:
    """Arguments have the parameters' names and types; regions and constants that they name are there."""
    pack_arguments(
        launch.recipe,
        launch.arguments,
        dict.fromkeys((item.name for item in regions), 0),
        dict.fromkeys((item.key for item in constants), 0),
        lambda address, described: bytes(MAP_NBYTES),
    )
