"""Checks of every kernel without a GPU: it compiles for each architecture, and its launches fit its parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from gpu_backend.cuda.launches.gpu_op import Refused
from gpu_backend.cuda.schedule import Address, Constant, Launch, Region, TensorMap
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


def assert_compiles(recipe: KernelRecipe, architecture: str, threads: int, *, is_heavy: bool = True) -> None:
    """The kernel compiles, spills nothing, and a block of `threads` finds registers.

    Of a variant that is not heavy, whose registers a heavier one stands for, the compiler's frontend is asked alone,
    but for ``EVERY_KERNEL=1``.
    """
    if not (is_heavy or EVERY):
        log = frontend_log(recipe, architecture)
        assert not log, f"{recipe.title} for {architecture}: {log}"
        return
    compiled = statistics_of(recipe, architecture)
    found = f"{recipe.title} for {architecture}: {compiled.registers} registers, {compiled.spill_nbytes} bytes spilled"
    assert compiled.spill_nbytes == 0, found
    assert 0 < compiled.registers * threads <= 65536, found


def parameters_of(recipe: KernelRecipe) -> list[str]:
    """The parameters of the kernel's entry point, as written."""
    found = re.search(rf'extern "C" __global__[^{{]*?\b{recipe.stem}\(([^{{]*)\)\s*{{', recipe.source)
    assert found is not None, f"{recipe.stem}.cu has no entry point {recipe.stem}"
    return [" ".join(text.split()) for text in found[1].split(",")]


def assert_arguments_fit(launch: Launch, regions: tuple[Region, ...], constants: tuple[Constant, ...]) -> None:
    """Arguments have the parameters' names, order and types; regions and constants that they name are there."""
    named = {"region": {item.name for item in regions}, "constant": {item.key for item in constants}}
    parameters = parameters_of(launch.recipe)
    assert [re.findall(r"\w+", parameter)[-1] for parameter in parameters] == list(launch.arguments)
    for parameter, argument in zip(parameters, launch.arguments.values(), strict=True):
        if parameter.startswith("TMA_MAP "):
            assert isinstance(argument, TensorMap) == (("USE_TMA", "1") in launch.recipe.defines), argument
            continue
        if isinstance(argument, Address):
            assert argument.name in named[argument.kind], f"{parameter}: nothing is called {argument.name!r}"
        pointer = argument is None or isinstance(argument, Address)
        assert ("*" in parameter) == pointer, (parameter, argument)
        if not pointer:
            wanted = {"int": np.int32, "unsigned": np.uint32, "float": np.float32}[parameter.split()[-2]]
            assert type(argument) is wanted, (parameter, argument)
