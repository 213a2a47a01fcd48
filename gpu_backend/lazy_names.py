"""Lazy imports: of a package's names from its modules (PEP 562), and of whole modules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    Parameters
    ----------
    package
        The package's ``__name__``.
    homes
        Module below the package -> its names.
    """
    home_of = {name: f"{package}.{home}" for home, names in homes.items() for name in names}

    def fetch(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return fetch, names


class LazyModule:
    """A module that is imported when its first attribute is read: NumPy, for instance, after the first paint.

    Parameters
    ----------
    name
        Full name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the module, and keep it here so that the next read costs a look-up in a dict."""
        value = getattr(importlib.import_module(self._name), name)
        setattr(self, name, value)
        return value
