"""How the parts of a picture are run: as they are, or each melted into few kernels by torch.compile."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch

Result = TypeVar("Result")


class Run(Protocol):
    """Runs a part of a picture: a function of tensors, and of what holds tensors."""

    def __call__(self, part: Callable[..., Result], *arguments: object) -> Result:
        """Return what the part gives for the arguments."""
        ...


def as_is(part: Callable[..., Result], *arguments: object) -> Result:
    """Call it."""
    return part(*arguments)


class Melted:
    """Runs parts compiled: minutes for the first picture of a shape, a tenth of the time from then on."""

    def __init__(self) -> None:
        self._compiled: dict[Callable[..., object], Callable[..., object]] = {}

    def __call__(self, part: Callable[..., Result], *arguments: object) -> Result:
        """Compile a part when it is met first, and call it."""
        if part not in self._compiled:
            self._compiled[part] = torch.compile(part)
        return self._compiled[part](*arguments)  # type: ignore[return-value] # what the part itself returns
