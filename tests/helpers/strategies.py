"""Hypothesis strategies shared by tests."""

from __future__ import annotations

from hypothesis import strategies as st


def texts(max_size: int) -> st.SearchStrategy[str]:
    """Text without surrogates, as `st.text`, which spends seconds on its first character table."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)
