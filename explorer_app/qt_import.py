"""The import of Qt's bindings, without what they do to every import after them."""

from __future__ import annotations

import builtins
import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

_LARGE = 1000
"""Length of a regular expression, in characters, from which on compiling it takes milliseconds."""


def import_qt() -> None:
    """Import PySide6 without its hook in Python's ``__import__``.

    The hook serves ``from __feature__ import snake_case``, which nothing here uses. It reads the source of every module
    that is imported later, to see whether it mentions PySide6, and keeps the text in memory: a third of the time of
    ``import torch``, and tens of megabytes.

    PySide6 compiles three regular expressions of 6,000 characters for texts of errors and for stub files. They are
    compiled when they are first used: a fifth less CPU time for this import.

    Raises
    ------
    ImportError
        If a library of the system is missing.
    """
    with late_patterns():
        importlib.import_module("PySide6.QtCore")
    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)
    importlib.import_module("PySide6.QtWidgets")


@contextlib.contextmanager
def late_patterns() -> Iterator[None]:
    """Let `re.compile` put off large patterns within this block until they are used."""
    compile_now = re.compile

    def compile_late(pattern: Any, flags: int = 0) -> Any:
        is_large = isinstance(pattern, str) and len(pattern) >= _LARGE
        return _LatePattern(pattern, flags) if is_large else compile_now(pattern, flags)

    re.compile = cast("Any", compile_late)
    try:
        yield
    finally:
        re.compile = compile_now


class _LatePattern:
    """A regular expression that is compiled by the first call of a method; a method may be kept before that."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    @functools.cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def __getattr__(self, name: str) -> Any:
        if not callable(getattr(re.Pattern, name)):
            return getattr(self._compiled, name)
        return functools.partial(self._call, name)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        method: Callable[..., Any] = getattr(self._compiled, name)
        return method(*arguments, **options)
