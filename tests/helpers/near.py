"""`pytest.approx` typed as a value, for fields of compared objects."""

from __future__ import annotations

from typing import Any

import pytest


def near(value: Any, *, rel: float | None = None, abs: float | None = None) -> Any:
    return pytest.approx(value, rel=rel, abs=abs)
