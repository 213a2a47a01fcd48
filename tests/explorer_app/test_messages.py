import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from explorer_app.messages import (
    Action,
    Level,
    Message,
    MessageBridge,
    MessageLog,
    describe,
    is_from_outside,
    write_to_log,
)
from gpu_backend import RequestError


@pytest.fixture
def told() -> MessageLog:
    return MessageLog()


@pytest.fixture
def bridge(told: MessageLog) -> Iterator[MessageBridge]:
    bridge = MessageBridge(told)
    bridge.install()
    yield bridge
    bridge.remove()


def test_a_late_subscriber_receives_earlier_messages(told: MessageLog) -> None:
    told.warning("Before.")
    heard: list[Message] = []
    unsubscribe = told.subscribe(heard.append)
    told.info("Then.", "details")
    unsubscribe()
    unsubscribe()
    told.info("After.")
    assert [(message.number, message.level, message.sentence) for message in heard] == [
        (1, Level.WARNING, "Before."),
        (2, Level.INFO, "Then."),
    ]
    assert heard[1].details == "details"


def test_only_the_newest_messages_are_remembered() -> None:
    told = MessageLog(3)
    for number in range(5):
        told.note(str(number))
    assert [message.sentence for message in told.messages] == ["2", "3", "4"]


def test_messages_of_many_threads_all_arrive(told: MessageLog) -> None:
    threads = [threading.Thread(target=lambda: [told.note("x") for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [message.number for message in told.messages] == list(range(1, 161))


def test_an_error_of_ours_is_reported_in_its_own_sentence(told: MessageLog) -> None:
    message = told.exception(RequestError("It has no row 14.", "rows 0..13"))
    assert (message.sentence, message.details) == ("It has no row 14.", "rows 0..13")


def test_any_other_error_gets_a_sentence_and_its_traceback_as_details() -> None:
    for error, part in (
        (FileNotFoundError(2, "No such file", "a.png"), "a.png: No such file"),
        (MemoryError(), "not enough memory"),
        (KeyError("x"), "KeyError"),
    ):
        sentence, details = describe(error)
        assert part in sentence
        assert type(error).__name__ in details


def test_warnings_of_the_log_reach_the_user(
    told: MessageLog, bridge: MessageBridge, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("some.library").warning("Odd: %s", 7)
    logging.getLogger("some.library").error("Bad.")
    logging.getLogger("some.library").info("Quiet.")
    caplog.clear()
    assert [(message.level, message.sentence) for message in told.messages] == [
        (Level.WARNING, "Odd: 7"),
        (Level.ERROR, "Bad."),
    ]
    assert "some.library" in told.messages[0].details


def test_uncaught_exceptions_in_the_log_become_messages(
    told: MessageLog, bridge: MessageBridge, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (ValueError("inside"), RequestError("It has no row 14.")):
        logging.getLogger("explorer_app.logs").error("Uncaught exception.", exc_info=error)
    caplog.clear()
    assert [message.level for message in told.messages] == [Level.ERROR, Level.ERROR]
    assert "inside" in told.messages[0].details
    assert told.messages[1].sentence == "It has no row 14."


def test_the_bridge_is_taken_down_as_it_was_found(told: MessageLog) -> None:
    before = list(logging.getLogger().handlers)
    bridge = MessageBridge(told)
    bridge.install()
    bridge.install()
    bridge.remove()
    bridge.remove()
    assert list(logging.getLogger().handlers) == before


def test_each_message_is_logged_once_and_each_record_becomes_one_message(
    told: MessageLog, bridge: MessageBridge, caplog: pytest.LogCaptureFixture
) -> None:
    told.subscribe(write_to_log)
    told.warning("Posted.", "with details")
    logging.getLogger("some.library").warning("Logged.")
    assert [record.getMessage() for record in caplog.records] == ["Posted.", "Logged."]
    assert [message.sentence for message in told.messages] == ["Posted.", "Logged."]
    caplog.clear()


def test_text_from_files_cannot_forge_a_message(told: MessageLog) -> None:
    message = told.error("Model \x1b[31m\nSaved.\u202e is gone", "line\x07 1\nline 2")
    assert message.sentence == r"Model \x1b[31m\nSaved.\u202e is gone"
    assert message.details == "line\\x07 1\nline 2"


def test_a_long_file_name_leaves_room_for_the_reason(told: MessageLog) -> None:
    sentence = told.exception(OSError(36, "File name too long", "x" * 5000)).sentence
    assert len(sentence) < 400
    assert sentence.endswith("File name too long.")


def test_a_deleted_working_folder_is_named_as_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> Path:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(Path, "cwd", gone)
    assert "working folder is gone" in describe(FileNotFoundError(2, "No such file or directory", "out"))[0]


def test_memory_that_torch_or_a_thread_lacks_is_reported_as_such() -> None:
    for error in (
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("can't start new thread"),
    ):
        assert "not enough memory" in describe(error)[0]
        assert is_from_outside(error)
    assert not is_from_outside(RuntimeError("odd"))


def test_a_message_may_say_what_can_be_done(told: MessageLog) -> None:
    done: list[int] = []
    told.warning("The GPU stopped answering.", "", Action("Try it again", lambda: done.append(1)))
    told.info("Saved.")
    action = told.messages[0].action
    assert action is not None
    action.call()
    assert done == [1]
    assert told.messages[1].action is None
