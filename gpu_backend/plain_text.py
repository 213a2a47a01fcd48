"""Text from files, made safe to show: model files, file names and error messages may hold any character.

A terminal obeys escape sequences, a line break forges another line, and a bidirectional override shows letters in
another order than they are stored in. `printable` writes such characters as escapes.
"""

from __future__ import annotations

import re

_LONG_WORD = re.compile(r"\S{401,}")
_LONG_WORD_END = 150


def system_reason(error: Exception) -> str:
    """Return what the system says of a failure, for the end of a sentence: one line without a full stop."""
    return (getattr(error, "strerror", None) or str(error)).replace("\n", " ").rstrip(".")


def printable(text: str) -> str:
    r"""Return a text on one line, with every control and format character as an escape such as ``\x1b``."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def printable_lines(text: str) -> str:
    """Return a text whose line breaks stay and whose other control and format characters are escapes."""
    return "\n".join(printable(line.replace("\t", "    ")) for line in text.replace("\r\n", "\n").split("\n"))


def printable_sentence(text: str) -> str:
    """Return what `printable` returns, with the middle of very long words (paths) left out."""
    return _LONG_WORD.sub(lambda word: f"{word[0][:_LONG_WORD_END]}…{word[0][-_LONG_WORD_END:]}", printable(text))
