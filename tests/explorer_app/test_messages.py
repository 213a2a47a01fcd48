import logging
import sys
import threading
from collections.abc import Iterator

import pytest

from explorer_app.messages import Action, Level, Message, MessageBridge, MessageLog, describe
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


def test_who_subscribes_late_hears_what_was_said_before(told: MessageLog):
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


def test_only_the_newest_messages_are_remembered():
    told = MessageLog(3)
    for number in range(5):
        told.note(str(number))
    assert [message.sentence for message in told.messages] == ["2", "3", "4"]


def test_messages_of_many_threads_all_arrive(told: MessageLog):
    threads = [threading.Thread(target=lambda: [told.note("x") for _ in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [message.number for message in told.messages] == list(range(1, 161))


def test_an_error_of_ours_is_told_in_its_own_sentence(told: MessageLog):
    message = told.exception(RequestError("It has no row 14.", "rows 0..13"))
    assert (message.sentence, message.details) == ("It has no row 14.", "rows 0..13")


def test_any_other_error_gets_a_sentence_and_its_traceback_as_details():
    for error, part in (
        (FileNotFoundError(2, "No such file", "a.png"), "a.png: No such file"),
        (MemoryError(), "not enough memory"),
        (KeyError("x"), "KeyError"),
    ):
        sentence, details = describe(error)
        assert part in sentence
        assert type(error).__name__ in details


def test_warnings_of_the_log_reach_the_user(told: MessageLog, bridge: MessageBridge, caplog: pytest.LogCaptureFixture):
    logging.getLogger("some.library").warning("Odd: %s", 7)
    logging.getLogger("some.library").error("Bad.")
    logging.getLogger("some.library").info("Quiet.")
    caplog.clear()
    assert [(message.level, message.sentence) for message in told.messages] == [
        (Level.WARNING, "Odd: 7"),
        (Level.ERROR, "Bad."),
    ]
    assert "some.library" in told.messages[0].details


def test_exceptions_that_nobody_caught_reach_the_user(told: MessageLog, bridge: MessageBridge):
    try:
        raise ValueError("inside")
    except ValueError as error:
        sys.excepthook(ValueError, error, error.__traceback__)

    def fail() -> None:
        raise RequestError("From a thread.")

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert [message.level for message in told.messages] == [Level.ERROR, Level.ERROR]
    assert "inside" in told.messages[0].details
    assert told.messages[1].sentence == "From a thread."


def test_the_road_is_taken_down_as_it_was_found(told: MessageLog):
    before = (sys.excepthook, threading.excepthook, list(logging.getLogger().handlers))
    bridge = MessageBridge(told)
    bridge.install()
    bridge.install()
    bridge.remove()
    bridge.remove()
    assert (sys.excepthook, threading.excepthook, list(logging.getLogger().handlers)) == before


def test_a_message_may_say_what_can_be_done(told: MessageLog):
    done: list[int] = []
    told.warning("The GPU stopped answering.", "", Action("Try it again", lambda: done.append(1)))
    told.info("Saved.")
    action = told.messages[0].action
    assert action is not None
    action.call()
    assert done == [1]
    assert told.messages[1].action is None
