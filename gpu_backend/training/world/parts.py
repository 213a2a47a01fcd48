"""How the parts of a picture are run: eagerly, or each fused into few kernels by torch.compile."""

import re
from collections.abc import Callable
from typing import Protocol, TypeVar

import torch

Result = TypeVar("Result")

_MOST_SHAPES = 64
"""Most shapes that a part is compiled for: it is called with many rows of a picture or few."""


class Run(Protocol):
    """Runs a part of a picture: a function of tensors and of objects that hold tensors."""

    def __call__(self, part: Callable[..., Result], *arguments: object) -> Result:
        """Return the result of the part for the arguments."""
        ...


def as_is(part: Callable[..., Result], *arguments: object) -> Result:
    """Call it."""
    return part(*arguments)


class CompiledParts:
    """Runs compiled parts. The first picture of a shape takes a minute or two, later ones a fraction of the eager time.

    Attributes
    ----------
    problems
        Parts that cannot be compiled here and run eagerly, and why.
    """

    def __init__(self) -> None:
        self.problems: dict[str, str] = {}
        self._compiled: dict[Callable[..., object], Callable[..., object]] = {}
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, _MOST_SHAPES)

    def __call__(self, part: Callable[..., Result], *arguments: object) -> Result:
        """Compile a part at its first call, and call it."""
        if part not in self._compiled:
            self._compiled[part] = torch.compile(part, dynamic=False)
        try:
            return self._compiled[part](*arguments)  # type: ignore[return-value] # what the part itself returns
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # any error of a compiler: it is optional
            self.problems[part.__qualname__] = _reason(error)
            self._compiled[part] = part
            return part(*arguments)


def _reason(error: Exception) -> str:
    """Return the most informative line: the last one that names an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Failure)\b.*: ", line)]
    return (telling or lines or [type(error).__name__])[-1 if telling else 0][:200]
