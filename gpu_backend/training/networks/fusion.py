"""Bodies of several operations that a GPU runs as one or few kernels, by torch.compile where it works."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

_MOST_VARIANTS = 64
"""Of a body: with and without scale, noise and so on, in each precision, for each activation."""


def fused(body: Callable[P, R]) -> Callable[P, R]:
    """Return a function that does the same; its first argument tells the device.

    Sizes may change from call to call without compiling again. Nothing in it is differentiated.
    """
    compiled: list[Callable[P, R]] = []

    @functools.wraps(body)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        first: Any = arguments[0]
        if not first.is_cuda or torch.compiler.is_compiling() or not _can_compile():
            return body(*arguments, **named)
        if not compiled:
            torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _MOST_VARIANTS)
            compiled.append(torch.compile(body, dynamic=True))
        return compiled[0](*arguments, **named)

    return run


@functools.cache
def _can_compile() -> bool:
    return find_spec("triton") is not None
