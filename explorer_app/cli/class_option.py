"""What ``--class`` means to a network: a number, or a name where its classes have names."""

from __future__ import annotations

import re

from explorer_app.cli.arguments import UsageError
from explorer_app.session.class_names import class_text, classes_like, classes_named
from gpu_backend import ModelFacts

_TOLD = 4
"""Classes that a sentence lists."""


def class_of(text: str, facts: ModelFacts) -> int:
    """Return the class that a text names, by number or name.

    Raises
    ------
    UsageError
        If no class or several have this name.
    """
    names = facts.class_names
    if re.fullmatch(r"[0-9]{1,9}", text, re.ASCII):
        number = int(text)
        if number < facts.c_dim:
            return number
        raise UsageError(f"{facts.name} has the classes 0 to {facts.c_dim - 1}, but --class {number} was given.")
    given = f"--class {text[:40]!r} was given"
    if not names:
        raise UsageError(
            f"The classes of {facts.name} have numbers only, 0 to {facts.c_dim - 1}, but {given}; "
            f"names can be put into {facts.name}.labels.txt beside it, one a line."
        )
    found = classes_named(text, names)
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"Several classes have this name, {_listed(found, names)}, but {given}; give the number.")
    like = classes_like(text, len(names), names)
    hint = f"some like it are {_listed(like, names)}" if like else f"{facts.class_file} lists all names"
    raise UsageError(f"{facts.name} has no class of that name, but {given}; {hint}.")


def _listed(numbers: list[int], names: tuple[str, ...]) -> str:
    told = [class_text(number, names) for number in numbers[:_TOLD]]
    more = len(numbers) - len(told)
    return "; ".join(told) + (f" and {more} more" if more else "")
