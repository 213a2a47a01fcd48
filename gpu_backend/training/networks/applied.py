"""A typed call of a custom autograd function, which torch leaves untyped."""

from __future__ import annotations

from typing import Any

from torch.autograd import Function


def applied(function: type[Function], *arguments: Any) -> Any:
    """Apply a custom autograd function."""
    return function.apply(*arguments)
