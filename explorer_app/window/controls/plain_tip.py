"""Tooltips with text from files: Qt takes a tooltip that looks like HTML for HTML."""

from __future__ import annotations

import html

from gpu_backend import printable_lines


def plain_tip(text: str) -> str:
    """Return what to set as a tooltip so that it shows this text, whatever characters it holds."""
    text = printable_lines(text)
    if "<" not in text and "&" not in text:
        return text
    return f"<span>{html.escape(text, quote=False)}</span>".replace("\n", "<br>")
