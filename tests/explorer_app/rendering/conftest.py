from __future__ import annotations

import pytest

from tests.helpers.fake_renderer import Engine


@pytest.fixture(autouse=True)
def quiet(quiet_qt: None) -> None:
    """Everything here speaks to Qt."""


@pytest.fixture
def engine() -> Engine:
    return Engine()
