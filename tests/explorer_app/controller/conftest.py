from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer_app.messages import MessageLog
from tests.helpers.controller_harness import Harness


@pytest.fixture(autouse=True)
def quiet(quiet_qt: None) -> None:
    """Everything here speaks to Qt."""


@pytest.fixture
def messages() -> MessageLog:
    return MessageLog()


@pytest.fixture
def harness(tmp_path: Path, qtbot: Any, messages: MessageLog) -> Iterator[Harness]:
    """A controller over fakes, not started; three models lie in its folder: cats (bundled), dogs, birds."""
    harness = Harness(tmp_path, qtbot, messages)
    yield harness
    harness.close()


@pytest.fixture
def open_harness(harness: Harness) -> Harness:
    """The same, started, with the picture of the bundled model on the screen."""
    harness.start()
    return harness
