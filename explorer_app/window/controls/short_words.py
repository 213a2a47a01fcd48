"""Texts for labels that wrap: a word that cannot be broken would set the least width of all around it."""

from __future__ import annotations

_MOST = 40
_END = 18
"""Most letters of a word, and those of its beginning and of its end that are left of a longer one."""


def short_words(text: str) -> str:
    """Return a text whose long words, as names of files can be, are cut in the middle."""
    return " ".join(_short(word) for word in text.split(" "))


def _short(word: str) -> str:
    return word if len(word) <= _MOST else f"{word[:_END]}…{word[-_END:]}"
