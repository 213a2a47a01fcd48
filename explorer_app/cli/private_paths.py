"""Paths in reports that are pasted where others read them."""

from __future__ import annotations

from pathlib import Path


def without_home(text: str) -> str:
    """Return a text with the person's home folder as ``~``."""
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text
