"""Which number a controller and sound move for a parameter."""

from __future__ import annotations

from explorer_app.session.parameters import parameter

_NUMBERED = {"noise.mode": "noise.mode/number", "classes": "classes/number"}
"""Choices, and the parameters that count them."""


def number_path(path: str) -> str:
    """Return the path of the number that represents a parameter: usually its own; empty if there is none.

    Raises
    ------
    ParameterError
        If there is no such parameter.
    """
    path = _NUMBERED.get(path, path)
    row = parameter(path)
    return path if row.kind in ("number", "angle") or (row.kind == "integer" and row.default is not None) else ""
