"""Layouts of workspaces as text."""

from __future__ import annotations

import pytest

from explorer_app.window.docks.stored_layout import StoredLayout


@pytest.mark.parametrize("sizes", ['{"a": [3, %s]}' % 10**30, '{"a": [-1, 2]}', '{"a": [1e9, 2]}', "[" * 100_000])
def test_a_stored_layout_that_no_window_has_is_none(sizes: str) -> None:
    assert StoredLayout.from_text('{"state": "AAAA", "sizes": {"a": [3, 4]}}').custom is not None
    assert StoredLayout.from_text(f'{{"state": "AAAA", "sizes": {sizes}}}').custom is None
