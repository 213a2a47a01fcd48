"""Timeouts of tests: long, because a busy machine is slow and no timing is an assertion."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

PATIENCE_MS = 30_000


def more_than(items: Sized, count: int) -> Callable[[], bool]:
    """Return whether the count has grown; a condition to wait for."""
    return lambda: len(items) > count


class PatientQtBot(QtBot):
    """pytest-qt's bot with a longer timeout: its own five seconds are too short on a busy machine."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = PATIENCE_MS) -> None:  # noqa: N802
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: Any, *, timeout: int = PATIENCE_MS, **arguments: Any) -> Any:  # noqa: N802
        return super().waitSignal(signal, timeout=timeout, **arguments)

    def waitExposed(self, widget: QWidget, *, timeout: int = PATIENCE_MS) -> Any:  # noqa: N802
        return super().waitExposed(widget, timeout=timeout)
