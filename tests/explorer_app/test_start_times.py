import sys
import threading
import time
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from explorer_app import start_times
from explorer_app.start_times import StartTimes, mark, table


def test_a_step_counts_the_first_time_only_and_names_its_thread() -> None:
    times = StartTimes(began_s=0.0)
    thread = threading.Thread(target=lambda: times.mark("torch"), name="importing")
    thread.start()
    thread.join()
    first = times.marks
    times.mark("torch")
    assert times.marks == first
    assert [(mark.step, mark.thread) for mark in first] == [("torch", "importing")]


def test_a_step_is_marked_by_the_time_since_the_process_began() -> None:
    began_s = time.monotonic() - 60.0
    times = StartTimes(began_s)
    times.mark("torch")
    assert 60.0 <= times.marks[0].wall_s <= time.monotonic() - began_s


def test_the_table_lists_steps_in_the_order_in_which_they_were_reached() -> None:
    times = StartTimes(began_s=0.0)
    for step in ("imports", "window shown"):
        times.mark(step)
    head, *lines = times.table().splitlines()
    assert head.split() == ["step", "wall", "s", "CPU", "s", "thread"]
    assert [line[:28].strip() for line in lines] == ["imports", "window shown"]
    assert all(line.endswith("  window") for line in lines)


def test_the_first_step_of_this_process_is_its_interpreter() -> None:
    mark("a step of a test")
    assert table().splitlines()[1].startswith("interpreter")


def test_modules_without_bytecode_are_counted_beside_the_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_times, "_PACKAGES", ("loom_of_a_test",))
    assert start_times.bytecode_note() == ""
    cached = tmp_path / "loom_of_a_test.pyc"
    spec = ModuleSpec("loom_of_a_test", None)
    spec.cached = str(cached)
    module = ModuleType("loom_of_a_test")
    module.__spec__ = spec
    monkeypatch.setitem(sys.modules, "loom_of_a_test", module)
    assert start_times.bytecode_note().startswith("Modules without bytecode: 1.")
    cached.touch()
    assert start_times.bytecode_note() == ""
