"""The script that measures what a hand costs goes through with it; its figures are no assertion."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication

ROOT = Path(__file__).resolve().parents[2]


def test_the_cost_of_events_and_frames_is_told(
    monkeypatch: pytest.MonkeyPatch, qapp: QApplication, quiet_qt: None
) -> None:
    spec = importlib.util.spec_from_file_location("hand_benchmark", ROOT / "packaging" / "hand_benchmark.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setitem(sys.modules, "hand_benchmark", module)
    spec.loader.exec_module(module)
    text = module.main(["--seconds", "0.2", "--settle", "0", "--side", "256"])
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    figures = dict(re.findall(r"^(.*?) +(-?[\d.]+) ", text, re.M))
    assert float(figures["events"]) > 0
    assert float(figures["frames painted"]) > 0
    assert "both" in figures
