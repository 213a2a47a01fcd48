"""Text from files, made safe to show: model files, file names and error messages may hold any character.

A terminal obeys escape sequences, a line break forges another line, and a bidirectional override shows letters in
another order than they are stored in. `printable` writes such characters as escapes.

Where the locale is not UTF-8 (``LC_ALL=C`` without Python's UTF-8 mode), Python gives the bytes of file names that it
cannot decode as surrogates. `printable` shows the letters that these bytes mean in UTF-8.
"""

from __future__ import annotations

import re

_NAME_BYTES = re.compile("[\udc80-\udcff]+")
"""Bytes of file names that Python could not decode."""

_LONG_WORD = re.compile(r"\S{401,}")
_LONG_WORD_END = 150


def system_reason(error: Exception) -> str:
    """Return what the system says of a failure, for the end of a sentence: one line without a full stop."""
    return (getattr(error, "strerror", None) or str(error)).replace("\n", " ").rstrip(".")


def type_with_article(value: object) -> str:
    """Return the name of a value's type for a sentence: ``a tuple``, ``an int``, ``an ndarray``."""
    name = type(value).__name__
    return f"{'an' if name.startswith((*'AEIOaeio', 'nd')) else 'a'} {name}"


def printable(text: str) -> str:
    r"""Return a text on one line, with every control and format character as an escape such as ``\x1b``."""
    if text.isprintable():
        return text
    text = _NAME_BYTES.sub(_letters, text)
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """Return a text whose line breaks stay and whose other control and format characters are escapes."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.replace("\r\n", "\n").split("\n"))


def printable_sentence(text: str) -> str:
    """Return what `printable` returns, with the middle of very long words (paths) left out."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:_LONG_WORD_END]}…{word[0][-_LONG_WORD_END:]}", printable(text))


def _letters(name_bytes: re.Match[str]) -> str:
    """Return the letters that bytes of a name mean in UTF-8; other bytes stay surrogates."""
    return name_bytes[0].encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
