"""Paths for a report that somebody pastes where others read it."""

from __future__ import annotations

from pathlib import Path


def without_home(text: str) -> str:
    """Return a text with the person's home folder as ``~``."""
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text
