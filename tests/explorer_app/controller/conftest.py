from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from explorer_app.messages import MessageLog
from tests.helpers.desk import Desk


@pytest.fixture(autouse=True)
def quiet(quiet_qt: None) -> None:
    """Everything here speaks to Qt."""


@pytest.fixture
def messages() -> MessageLog:
    return MessageLog()


@pytest.fixture
def desk(tmp_path: Path, qtbot: Any, messages: MessageLog) -> Iterator[Desk]:
    """A controller over fakes, not started; three models lie in its folder: cats (bundled), dogs, birds."""
    desk = Desk(tmp_path, qtbot, messages)
    yield desk
    desk.close()


@pytest.fixture
def open_desk(desk: Desk) -> Desk:
    """The same, started, with the picture of the bundled model on the screen."""
    desk.start()
    return desk
