"""The script that measures what a hand costs goes through with it; its figures are no assertion."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

from explorer_app.messages import Level, Message

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch, qapp: QApplication, quiet_qt: None) -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("hand_benchmark", ROOT / "packaging" / "hand_benchmark.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setitem(sys.modules, "hand_benchmark", module)
    spec.loader.exec_module(module)
    yield module
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_cost_of_events_and_frames_is_told(benchmark: ModuleType) -> None:
    text = benchmark.main(["--seconds", "0.2", "--settle", "0", "--side", "256"])
    figures = dict(re.findall(r"^(.*?) +(-?[\d.]+) ", text, re.M))
    assert float(figures["events"]) > 0
    assert float(figures["frames painted"]) > 0
    assert "both" in figures


def test_a_drag_that_a_message_disturbs_is_not_measured(benchmark: ModuleType) -> None:
    benchmark.refuse_messages([])
    with pytest.raises(SystemExit, match="The disk is full"):
        benchmark.refuse_messages([Message(Level.WARNING, "The disk is full.", "", 0)])
