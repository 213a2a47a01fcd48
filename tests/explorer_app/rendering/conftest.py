from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from explorer_app.rendering.render_thread import RenderThread
from tests.helpers.fake_renderer import Engine
from tests.helpers.render_desk import Desk


@pytest.fixture(autouse=True)
def quiet(quiet_qt: None) -> None:
    """Everything here speaks to Qt."""


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def thread(engine: Engine, qapp: Any) -> Iterator[RenderThread]:
    thread = RenderThread(engine, thumbnail_rest_s=0.0)
    yield thread
    engine.gate.open()
    thread.close()


@pytest.fixture
def desk(thread: RenderThread, qtbot: Any) -> Desk:
    desk = Desk(thread, qtbot)
    thread.start()
    desk.open()
    return desk
