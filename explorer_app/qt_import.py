"""The import of Qt's bindings, without what they do to every import after them."""

from __future__ import annotations

import builtins
import importlib


def import_qt() -> None:
    """Import PySide6 without its hook in Python's ``__import__``.

    The hook serves ``from __feature__ import snake_case``, which nothing here uses. It reads the source of every module
    that is imported later, to see whether it mentions PySide6, and keeps the text in memory: a third of the time of
    ``import torch``, and tens of megabytes.

    Raises
    ------
    ImportError
        If a library of the system is missing.
    """
    importlib.import_module("PySide6.QtCore")
    builtins.__import__ = getattr(builtins, "__orig_import__", builtins.__import__)
    importlib.import_module("PySide6.QtWidgets")
