"""Tooltips with text from files: Qt would render a text that looks like HTML as HTML."""

from __future__ import annotations

import html

from gpu_backend import printable_lines


def plain_tip(text: str) -> str:
    """Return a text escaped so that a tooltip shows it literally."""
    text = printable_lines(text)
    if "<" not in text and "&" not in text:
        return text
    return f"<span>{html.escape(text, quote=False)}</span>".replace("\n", "<br>")
