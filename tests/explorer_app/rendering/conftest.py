from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_thread import RenderThread
from tests.helpers.fake_renderer import Engine
from tests.helpers.render_harness import Harness


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
def start(engine: Engine, qtbot: Any, qapp: Any) -> Iterator[Callable[..., Harness]]:
    """Start a rendering thread with a wish for a device, and open a model on it."""
    threads: list[RenderThread] = []

    def start(choice: DeviceChoice | None = None, *, opens: bool = True) -> Harness:
        thread = RenderThread(engine, choice, thumbnail_rest_s=0.0)
        threads.append(thread)
        harness = Harness(thread, qtbot)
        thread.start()
        if opens:
            harness.open()
        return harness

    yield start
    engine.gate.open()
    engine.find_gate.open()
    engine.compile_gate.open()
    engine.check_gate.open()
    for thread in threads:
        thread.close()


@pytest.fixture
def harness(thread: RenderThread, qtbot: Any) -> Harness:
    harness = Harness(thread, qtbot)
    thread.start()
    harness.open()
    return harness
