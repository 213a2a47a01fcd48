"""Hypothesis strategies that several tests need."""

from __future__ import annotations

from hypothesis import strategies as st


def texts(max_size: int) -> st.SearchStrategy[str]:
    """Any text but for surrogates, as `st.text` gives, which spends seconds on UTF-8's characters the first time."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)
