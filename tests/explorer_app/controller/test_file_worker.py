from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer_app.controller.file_worker import FileWorker
from explorer_app.messages import MessageLog
from gpu_backend import LoomError


@pytest.fixture
def worker(messages: MessageLog, qtbot: QtBot) -> Iterator[FileWorker]:
    worker = FileWorker(messages)
    yield worker
    worker.close()


def test_a_result_is_made_on_the_thread_and_taken_by_the_window(worker: FileWorker, qtbot: QtBot) -> None:
    made: list[int] = []
    taken: list[tuple[str, int]] = []

    def make() -> str:
        made.append(threading.get_ident())
        return "a session"

    worker.fetch(make, lambda result: taken.append((result, threading.get_ident())))
    assert taken == []
    qtbot.waitUntil(lambda: bool(taken))
    assert taken == [("a session", threading.get_ident())]
    assert made != [threading.get_ident()]


def test_a_task_that_fails_is_reported_and_brings_nothing(
    worker: FileWorker, messages: MessageLog, qtbot: QtBot
) -> None:
    taken: list[object] = []

    def fail() -> None:
        raise LoomError("This is no session.")

    worker.fetch(fail, taken.append)
    worker.fetch(lambda: "the next", taken.append)
    qtbot.waitUntil(lambda: bool(taken))
    assert taken == ["the next"]
    assert [message.sentence for message in messages.messages] == ["This is no session."]


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [
        ("drag.json could not be saved", "drag.json could not be saved (No space left); choose another place."),
        ("", "The system refused: drag.json: No space left."),
    ],
)
def test_what_the_system_refuses_is_a_sentence(
    failed: str, sentence: str, worker: FileWorker, messages: MessageLog
) -> None:
    def refused() -> None:
        raise OSError(28, "No space left", "drag.json")

    worker.submit(refused, failed=failed)
    worker.close()
    assert [message.sentence for message in messages.messages] == [sentence]


def test_nothing_is_taken_after_the_end(worker: FileWorker, qtbot: QtBot) -> None:
    taken: list[object] = []
    worker.fetch(lambda: "late", taken.append)
    worker.close()
    qtbot.wait(1)
    assert taken == []
