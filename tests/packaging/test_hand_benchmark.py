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
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    monkeypatch.setitem(sys.modules, "hand_benchmark", module)
    spec.loader.exec_module(module)
    yield module
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_the_cost_of_events_and_frames_is_printed(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "ROUNDS", 1)
    monkeypatch.setattr(benchmark, "REST_S", 0.0)
    monkeypatch.setattr(benchmark.x_mouse, "SETTLE_S", 0.1)
    for seconds in ("0.3", "3", "30"):  # until frames came, on a machine that is busy elsewhere
        text = benchmark.main(["--seconds", seconds, "--settle", "0", "--side", "256"])
        if "input to paint" in text:
            break
    figures = dict(re.findall(r"^(.*?) +(-?[\d.]+) ", text, re.M))
    assert float(figures["events"]) > 0
    assert float(figures["frames painted"]) > 0
    assert float(figures["input to paint"]) > 0
    assert "a frame" in text
    assert "other processes" in figures


def cost(benchmark: ModuleType, share: float, frames: int) -> object:
    """What a drag of 2 s with 200 events cost, by the part of a core that the window's thread took."""
    return benchmark.Cost(2.0, 200, frames, share, 1.0, 0.5, (10.0,) * 99 + (30.0,))


def test_a_frame_that_cannot_be_distinguished_from_events_has_no_cost(benchmark: ModuleType) -> None:
    assert "a frame            0.500 ms" in benchmark.report(cost(benchmark, 0.05, 0), cost(benchmark, 0.08, 120), 60.0)
    text = benchmark.report(cost(benchmark, 0.05, 0), cost(benchmark, 0.04, 28), 60.0)
    assert "-" not in text
    assert "not told apart" in text


def test_a_pause_of_the_machine_does_not_count_in_the_median(benchmark: ModuleType) -> None:
    thread_s = 0.0
    readings = []
    for index in range(9):
        readings.append(benchmark.Reading(0.25 * index, thread_s, 2.0 * thread_s, 15 * index, 5.0 * thread_s))
        thread_s += 0.25 if index == 3 else 0.025
    whole = benchmark.Cost.of([(500, readings, (5.0,)), (500, readings, (7.0,))])
    assert (whole.seconds, whole.events, whole.frames) == (4.0, 1000, 240)
    assert whole.share == pytest.approx(0.1)
    assert whole.others_s == pytest.approx(1.5 * whole.process_s)
    assert whole.latencies_ms == (5.0, 7.0)


def test_the_pointer_goes_in_a_circle_from_where_it_was_pressed(benchmark: ModuleType) -> None:
    assert benchmark.x_mouse.place(120.0, 0.0) == (0.0, 0.0)
    assert benchmark.x_mouse.place(120.0, 0.25) == pytest.approx((120.0, 120.0))
    assert benchmark.x_mouse.place(120.0, 1.0) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_a_drag_that_a_message_disturbs_is_not_measured(benchmark: ModuleType) -> None:
    benchmark.refuse_messages([])
    with pytest.raises(SystemExit, match="The disk is full"):
        benchmark.refuse_messages([Message(Level.WARNING, "The disk is full.", "", 0)])
