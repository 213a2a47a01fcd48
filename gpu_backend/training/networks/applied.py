"""The call of a differentiable function of one's own, which torch leaves untyped."""

from __future__ import annotations

from typing import Any

from torch.autograd import Function


def applied(function: type[Function], *arguments: Any) -> Any:
    """Apply a function; what it returns can be differentiated by it."""
    return function.apply(*arguments)  # type: ignore[no-untyped-call]
