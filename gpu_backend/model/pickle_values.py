"""Values of a pickle: which of them may be keys, and how they are called in a sentence."""

from __future__ import annotations

from typing import Any

from gpu_backend.model.records import Foreign, Name, Span, Table, TextSpan
from gpu_backend.model.refusal import Refusal, shown

_MAX_KEY_ITEMS = 16


def plain_key(key: object) -> Any:
    """Return a key that is safe to hash: a plain value, or a short tuple of such."""
    if isinstance(key, tuple) and len(key) <= _MAX_KEY_ITEMS:
        if all(item is None or isinstance(item, str | int | float) for item in key):
            return key
    elif key is None or isinstance(key, str | int | float | Name):
        return key
    raise Refusal("plain values as keys", f"came {kind_of(key)}")


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
