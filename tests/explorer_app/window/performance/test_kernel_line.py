"""The line about kernels and memory."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

import gpu_backend
from explorer_app.controller import Compiling
from explorer_app.window.performance import kernel_line
from explorer_app.window.performance.kernel_line import KernelLine
from explorer_app.window.performance.kernel_state import summaries
from gpu_backend import MemoryFacts
from tests.helpers.fonts import widened
from tests.helpers.kernel_costs import REASON, costs

MEMORY = MemoryFacts(weights=121_300_000, plans=281_000_000, pinned=12_600_000)


@pytest.fixture
def line(qtbot: QtBot) -> KernelLine:
    line = KernelLine()
    qtbot.addWidget(line)
    line.resize(1100, 30)
    with qtbot.waitExposed(line):
        line.show()
    return line


def test_all_fused_is_said_in_a_word(line: KernelLine) -> None:
    line.show_steps(costs(), "events")
    assert line.state.text() == "6 kernels, all fused"
    assert not line.sign.isVisible()
    assert "events between the kernels" in line.state.toolTip()


def test_a_kernel_that_fell_back_is_named_with_its_reason_and_a_sign(line: KernelLine) -> None:
    line.show_steps(costs(fallback=2), "cupti")
    assert line.state.text() == f"5 fused · 1 fallback (modulated_conv: {REASON})"
    assert line.sign.isVisible()
    assert REASON in line.state.toolTip()
    line.resize(widened(240), 30)
    assert line.state.text() == "5 fused · 1 fallback"


def test_compiling_shows_progress_and_that_the_picture_is_there(line: KernelLine) -> None:
    height = line.sizeHint().height()
    line.show_steps(costs(fallback=1), "cpu")
    line.show_compiling(Compiling(9, 14))
    assert line.state.text() == "compiling 14 kernels: 9 of 14; the picture comes from the CPU"
    assert line.bar.isVisible()
    assert (line.bar.value(), line.bar.maximum()) == (9, 14)
    assert not line.sign.isVisible()
    assert line.sizeHint().height() == height
    line.show_compiling(Compiling(0, 1), "Loom 9000 (fp16)")
    assert line.state.text() == "compiling 1 kernel: 0 of 1; the picture comes from Loom 9000 (fp16)"
    line.show_compiling(None)
    assert not line.bar.isVisible()
    assert "fallback" in line.state.text()


def test_memory_is_that_of_the_process_and_the_parts_of_the_renderer_where_there_is_room(
    line: KernelLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_line, "process_nbytes", lambda: 690_000_000)
    line.show_memory(MEMORY)
    assert line.memory.text() == "memory: process 690 MB · weights 121 · plans 281 · pinned 13 MB"
    assert "plans: 281.0 MB" in line.memory.toolTip()
    assert "whole process, Python and libraries included: 690.0 MB" in line.memory.toolTip()
    line.resize(600, 30)
    assert line.memory.text() == "process 690 MB · renderer 415 MB"
    line.resize(300, 30)
    assert line.memory.text() == "process 690 MB"
    line.show_memory(None)
    assert line.memory.text() == ""


def test_on_a_gpu_the_drivers_count_of_the_process_is_shown_beside_the_ram(
    line: KernelLine, monkeypatch: pytest.MonkeyPatch, qtbot: QtBot
) -> None:
    calls: list[str] = []

    def on_device(device: str) -> int:
        calls.append(device)
        return 707_000_000

    monkeypatch.setattr(kernel_line, "process_nbytes", lambda: 690_000_000)
    monkeypatch.setattr(gpu_backend, "device_process_nbytes", on_device)
    line.show_memory(MEMORY, "cuda:1")

    def is_told() -> bool:
        line.show_memory(MEMORY, "cuda:1")
        return "GPU" in line.memory.text()

    line.resize(1400, 30)
    qtbot.waitUntil(is_told)
    assert set(calls) == {"cuda:1"}
    assert line.memory.text() == "memory: RAM 690 MB · GPU 707 MB · weights 121 · plans 281 · pinned 13 MB"
    assert "GPU memory of the whole process, driver and kernels included: 707.0 MB" in line.memory.toolTip()
    line.resize(520, 30)
    assert line.memory.text() == "RAM 690 MB · GPU 707 MB"
    line.resize(250, 30)
    assert line.memory.text() == "GPU 707 MB"
    line.show_memory(MEMORY)
    assert "GPU" not in line.memory.text()


def test_where_the_system_does_not_tell_the_process_only_the_renderer_is_shown(
    line: KernelLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_line, "process_nbytes", lambda: 0)
    line.show_memory(MEMORY)
    assert line.memory.text() == "memory: weights 121 · plans 281 · pinned 13 MB"
    assert "process" not in line.memory.toolTip()


def test_on_the_processor_there_are_steps(line: KernelLine) -> None:
    from explorer_app.rendering.frame_statistics import StepCost

    steps = [StepCost("a", "conv", 65_500.0, 0.75, 1, 1), StepCost("b", "conv", 20_000.0, 0.25, 1, 1)]
    assert summaries(steps) == ("2 steps on the processor, 85.5 ms", "2 steps, 85.5 ms", "2 steps")
    assert summaries(steps[:1])[0] == "1 step on the processor, 65.5 ms"
    assert summaries([]) == ("",)
