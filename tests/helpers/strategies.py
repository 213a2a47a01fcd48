"""Hypothesis strategies shared by tests."""

from __future__ import annotations

import os

from hypothesis import settings, strategies as st


def examples(usual: int) -> int:
    """How many examples a test tries: as many as usual, or FUZZ_EXAMPLES where those are more, as before a release."""
    return max(usual, int(os.environ.get("FUZZ_EXAMPLES", "0")))


def tries(usual: int) -> settings:
    """Settings of a test by examples: so many, and no deadline, since a busy machine is slow now and then."""
    return settings(deadline=None, max_examples=examples(usual))


def texts(max_size: int) -> st.SearchStrategy[str]:
    """Text without surrogates, as `st.text`, which spends seconds on its first character table."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size)
