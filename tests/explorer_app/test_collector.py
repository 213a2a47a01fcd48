"""Garbage is collected on the window's thread alone, whoever makes it."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QObject
from pytestqt.qtbot import QtBot

from explorer_app import collector
from explorer_app.collector import Collector, collect_due


class Ring(QObject):
    """One that only a collection ends."""

    def __init__(self) -> None:
        super().__init__()
        self.own = self


def make_garbage(ended_on: list[int]) -> None:
    """Leave rings behind, and more objects than Python makes without looking for garbage."""
    for _ in range(3):
        weakref.finalize(Ring(), lambda: ended_on.append(threading.get_ident()))
    kept = [[number] for number in range(20 * gc.get_threshold()[0])]
    assert kept


def test_garbage_of_other_threads_is_collected_on_the_window_thread(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "_BEAT_MS", 10)
    gc.enable()
    ended_on: list[int] = []
    collects = Collector()
    collects.start()
    try:
        assert not gc.isenabled()
        thread = threading.Thread(target=make_garbage, args=(ended_on,))
        thread.start()
        thread.join()
        assert ended_on == []
        keeps_busy = [[number] for number in range(2 * gc.get_threshold()[0])]
        qtbot.waitUntil(lambda: len(ended_on) == 3)
        assert set(ended_on) == {threading.get_ident()}
        assert keeps_busy
    finally:
        collects.close()
        collects.close()
    assert gc.isenabled(), "it was before"


def test_where_python_was_told_not_to_collect_it_is_not_told_otherwise(qtbot: QtBot) -> None:
    gc.disable()
    collects = Collector()
    collects.start()
    collects.close()
    assert not gc.isenabled()


def test_nothing_is_looked_through_before_there_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(gc, "collect", calls.append)
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, 10))
    for count in ((700, 11, 11), (701, 10, 10), (701, 11, 10), (701, 10, 11), (701, 11, 11)):
        monkeypatch.setattr(gc, "get_count", lambda count=count: count)
        collect_due()
    assert calls == [0, 1, 2, 2]


def test_nothing_is_collected_during_a_start_and_what_it_made_is_passed_over_later(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(collector, "_BEAT_MS", 1)
    monkeypatch.setattr(collector, "_LONGEST_START_BEATS", 1_000_000)
    monkeypatch.setattr(collector, "collect_due", lambda: done.append("collected"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))
    collects = Collector()
    collects.hold()
    collects.start()
    try:
        for _ in range(3):
            with qtbot.waitSignal(collects._timer.timeout):
                pass
        assert done == []
        collects.release()
        collects.release()
        qtbot.waitUntil(lambda: len(done) > 1)
        assert done[:2] == ["frozen", "collected"]
        assert done.count("frozen") == 1
    finally:
        collects.close()


def test_a_start_without_a_picture_counts_as_over_after_a_while(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(collector, "_BEAT_MS", 1)
    monkeypatch.setattr(collector, "_LONGEST_START_BEATS", 3)
    monkeypatch.setattr(collector, "collect_due", lambda: done.append("collected"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("frozen"))
    collects = Collector()
    collects.hold()
    collects.start()
    try:
        qtbot.waitUntil(lambda: len(done) > 1)
        assert done[:2] == ["frozen", "collected"]
    finally:
        collects.close()
