"""Values of a pickle: which of them may be keys, and how they are called in a sentence."""

from __future__ import annotations

from typing import Any

from gpu_backend.model.records import Foreign, Name, Span, Table, TextSpan
from gpu_backend.model.refusal import Refusal, shown

_MAX_KEY_ITEMS = 16
_MAX_KEY = 1 << 60
"""Whole numbers below this have hashes of their own; among larger ones a file can choose thousands with the same."""


def plain_key(key: object) -> Any:
    """Return a key that a file cannot misuse: one whose hash it cannot choose, or a short tuple of texts."""
    if isinstance(key, tuple):
        if len(key) <= _MAX_KEY_ITEMS and all(isinstance(item, str) for item in key):
            return key
    elif isinstance(key, int):
        if -_MAX_KEY < key < _MAX_KEY:
            return key
    elif key is None or isinstance(key, str | float | Name):
        return key
    raise Refusal("plain values as keys", f"found {kind_of(key)}")


def kind_of(value: object) -> str:
    """What a value of a pickle is, in words."""
    if value is None:
        return "nothing (None)"
    if isinstance(value, Name):
        return f"the name '{value}'"
    if isinstance(value, Foreign):
        return f"an object of {shown(str(value.name))}"
    words = {
        str: "a text",
        TextSpan: "a long text",
        Span: "a byte string",
        bool: "a truth value",
        int: "an integer",
        float: "a number",
        list: "a list",
        tuple: "a tuple",
        set: "a set",
        dict: "a dict",
        Table: "a dict",
    }
    return words.get(type(value), "a stored object")
