"""Child processes of a farm that are kept running; the real ones are in `test_real_processes.py`."""

import io
import subprocess
import threading
from typing import Any

import pytest

from explorer_app.farm import local_farm
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.local_farm import CrewMember, LocalFarm

_PATIENCE_S = 30.0


class FakeProcess:
    """A process that ends when it is told to, or when its input is closed."""

    pid = 1

    def __init__(self) -> None:
        self.stdin, self.stdout = io.BytesIO(), io.BytesIO()
        self.has_ended = False

    def poll(self) -> int | None:
        return 1 if self.has_ended or self.stdin.closed else None

    def wait(self, timeout_s: float | None = None) -> int:
        return 1


def test_a_child_is_started_again_although_the_system_refused_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[FakeProcess] = []
    refusals = [OSError(12, "Cannot allocate memory")]
    is_there_again = threading.Event()

    def popen(*arguments: Any, **options: Any) -> FakeProcess:
        if started and refusals:
            raise refusals.pop()
        started.append(FakeProcess())
        if len(started) == 2:
            is_there_again.set()
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", popen)
    monkeypatch.setattr(local_farm, "_LOOK_S", 0.001)
    monkeypatch.setattr(local_farm, "_FIRST_DELAY_S", 0.0)
    monkeypatch.setattr(local_farm, "_LAST_DELAY_S", 0.0)
    monkeypatch.setattr(local_farm, "_STEADY_S", 0.0)
    address = FarmAddress("127.0.0.1", 8786, None)
    said: list[str] = []
    with LocalFarm(address, [CrewMember("cpu0", None, 1)], runs_scheduler=False, say=said.append):
        started[0].has_ended = True
        assert is_there_again.wait(_PATIENCE_S)
    assert said == [
        "Worker cpu0 ended (exit status 1) and is started again.",
        "Worker cpu0 could not be started again (Cannot allocate memory).",
    ]
