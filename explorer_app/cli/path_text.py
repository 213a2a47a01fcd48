"""Paths in sentences, and in reports that are pasted where others read them."""

from __future__ import annotations

import os
from pathlib import Path


def without_home(text: str) -> str:
    """Return a text with the user's home folder as ``~``."""
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


def folder_text(folder: Path) -> str:
    """Return a folder for a sentence: ``./`` and not ``.``, which reads as the full stop."""
    return f"{folder}{os.sep}" if folder.name in ("", "..") and not str(folder).endswith(os.sep) else str(folder)
