"""What classes are called, and finding one by what a user types: pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_backend import printable


def class_text(number: int, names: Sequence[str]) -> str:
    """Return what a class is called: "207 golden retriever", or "Class 207" where classes have no names."""
    return f"{number} {printable(names[number])}" if 0 <= number < len(names) else f"Class {number}"


def classes_named(text: str, names: Sequence[str]) -> list[int]:
    """Return the classes of a name, ignoring case: by the whole name, else by one of its comma-separated parts."""
    wanted = _plain(text)
    whole = [number for number, name in enumerate(names) if _plain(name) == wanted]
    return whole or [number for number, name in enumerate(names) if wanted in map(_plain, name.split(","))]


def classes_like(text: str, count: int, names: Sequence[str]) -> list[int]:
    """Return the classes whose number or name holds every word of a text; matches at the beginning come first.

    The order is: the class of that number, names that begin with the text, names in which each word of the text begins
    a word, all others; then by number. Nothing typed finds every class.
    """
    wanted = _plain(text)
    words = wanted.split()
    found: list[tuple[int, int]] = []
    for number in range(count):
        said = class_text(number, names).casefold()
        if all(word in said for word in words):
            name = _plain(names[number]) if number < len(names) else ""
            parts = name.replace(",", " ").split()
            if wanted == str(number):
                rank = 0
            elif name.startswith(wanted):
                rank = 1
            else:
                rank = 2 if all(any(part.startswith(word) for part in parts) for word in words) else 3
            found.append((rank, number))
    return [number for _, number in sorted(found)]


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").casefold().split())
