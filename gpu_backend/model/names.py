"""Allowlist of the names that a model file may import; each becomes an inert record.

There are three kinds of names: known ones, each with a stand-in of a fixed signature; classes of third-party libraries
that real files import for their discriminators, which are recorded and never used; all other names, which refuse the
file even if they are never called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gpu_backend.model.records import Foreign, Name
from gpu_backend.model.refusal import Refusal, shown

FOREIGN_PREFIXES = ("torch.nn.", "timm.", "pg_modules.", "training.", "feature_networks.")
"""Third-party modules whose classes occur in unused parts of real files."""

_MAX_NAMES = 2000

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}", re.ASCII)

Known = Mapping[tuple[str, str], Callable[[tuple[object, ...]], object] | None]
"""(module, name) -> what a call makes; None for names that are never called."""


class NameTable:
    """Looks names up and records the requested ones.

    Parameters
    ----------
    requested
        Every requested name is added to it, as ``"module name"``, including a refused one.
    admits_foreign
        Whether classes of third-party libraries are allowed.
    """

    def __init__(self, known: Known, requested: set[str], *, admits_foreign: bool = False) -> None:
        self._known = known
        self._requested = requested
        self._admits_foreign = admits_foreign
        self._found: dict[tuple[str, str], Name] = {}

    def find(self, module: str, name: str) -> Name:
        """Return the record of a name, the same one each time.

        Raises
        ------
        Refusal
            If the name is not in the table.
        """
        known = self._found.get((module, name))
        if known is not None:
            return known
        if (module, name) in self._known:
            found = Name(module, name, self._known[module, name])
        elif self._admits_foreign and module.startswith(FOREIGN_PREFIXES) and _PLAIN.fullmatch(f"{module}.{name}"):
            found = Name(module, name, lambda _: Foreign(Name(module, name)))
        else:
            self._requested.add(f"{module} {name}")
            raise Refusal(
                "a network and nothing that runs", f"it asks to import {shown(f'{module} {name}')} (nothing was run)"
            )
        self._requested.add(str(found))
        if len(self._requested) > _MAX_NAMES:
            raise Refusal(f"at most {_MAX_NAMES} names to import in a model file", "this one asks for more")
        self._found[module, name] = found
        return found
