"""Choosing on which device pictures are rendered, and what is said about it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidgetAction
from pytestqt.qtbot import QtBot

from explorer_app.controller import Compiling, DeviceState
from explorer_app.messages import Action, MessageLog
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.window.model import device_text
from explorer_app.window.model.device_menu import DeviceMenu
from explorer_app.window.shell.main_window import MainWindow
from tests.helpers.fake_controller import FakeController
from tests.helpers.fake_renderer import GPU, OTHER_GPU, FakeDevice, FakeMemory
from tests.helpers.windows import calls

CPU = FakeDevice(reason="CPU: no NVIDIA driver was found.")
BOTH = DeviceState(devices=(GPU, OTHER_GPU, FakeDevice()), device=GPU, memory=FakeMemory())
NONE = DeviceState(devices=(CPU,), device=CPU)


class Shown:
    """A menu over a state that a test changes, and what it asked for."""

    def __init__(self, qtbot: QtBot) -> None:
        self.state = BOTH
        self.calls: list[str] = []
        self.menu = DeviceMenu(lambda: self.state)
        qtbot.addWidget(self.menu)
        self.menu.device_chosen.connect(self.calls.append)
        self.menu.precision_chosen.connect(self.calls.append)
        self.menu.again_requested.connect(lambda: self.calls.append("again"))

    def show(self, state: DeviceState) -> list[str]:
        self.state = state
        self.menu.fill()
        return [action.text() for action in self.actions]

    @property
    def actions(self) -> list[QAction]:
        return [action for action in self.menu.actions() if not action.isSeparator()]

    def action(self, text: str) -> QAction:
        return next(action for action in self.actions if action.text() == text)

    def checked(self) -> list[str]:
        return [action.text() for action in self.actions if action.isChecked()]


@pytest.fixture
def shown(qtbot: QtBot) -> Shown:
    return Shown(qtbot)


def test_each_gpu_is_listed_with_name_and_memory(shown: Shown) -> None:
    assert shown.show(BOTH) == [
        "Automatic",
        "Loom 9000 · 150 GB",
        "Loom 100 · 8 GB",
        "CPU",
        "fp16 – fast",
        "fp8 – fastest",
        "tf32 – wide range",
        "bf16x3 – near fp32",
        "fp32 – reference",
    ]
    assert shown.checked() == ["Automatic", "fp16 – fast"]


def test_gpus_of_one_name_are_distinguished(shown: Shown) -> None:
    twins = (GPU, replace(GPU, id="cuda:1"))
    assert shown.show(replace(BOTH, devices=twins))[1:3] == ["Loom 9000 (0) · 150 GB", "Loom 9000 (1) · 150 GB"]


@pytest.mark.parametrize(
    ("choice", "checked"),
    [
        (DeviceChoice("cpu", "fp32"), ["CPU", "fp32 – reference"]),
        (DeviceChoice("cuda:1"), ["Loom 100 · 8 GB", "fp16 – fast"]),
        (DeviceChoice("cuda"), ["Loom 9000 · 150 GB", "fp16 – fast"]),
    ],
)
def test_the_choice_is_checked(shown: Shown, choice: DeviceChoice, checked: list[str]) -> None:
    shown.show(replace(BOTH, choice=choice))
    assert shown.checked() == checked


def test_choosing_asks(shown: Shown) -> None:
    shown.show(BOTH)
    precisions = ("fp8 – fastest", "tf32 – wide range", "bf16x3 – near fp32", "fp32 – reference")
    for text in ("Loom 100 · 8 GB", "CPU", "Automatic", *precisions):
        shown.action(text).trigger()
    assert shown.calls == ["cuda:1", "cpu", "auto", "fp8", "tf32", "bf16x3", "fp32"]


def test_without_a_gpu_a_sentence_says_why(shown: Shown) -> None:
    assert shown.show(NONE)[:4] == ["Automatic", "No GPU can be used", "No NVIDIA driver was found.", "CPU"]
    assert not shown.action("No GPU can be used").isEnabled()
    assert not shown.action("fp16 – fast").isEnabled()
    assert isinstance(shown.action("No NVIDIA driver was found."), QWidgetAction)
    shown.show(BOTH)
    shown.show(NONE)
    assert len(shown.actions) == 9, "filling it again leaves nothing behind"


def test_before_the_devices_are_listed_the_menu_reports_it(shown: Shown) -> None:
    assert "Looking for GPUs…" in shown.show(DeviceState())


def test_a_gpu_that_failed_is_offered_again_with_the_reason(shown: Shown) -> None:
    texts = shown.show(replace(BOTH, device=CPU, problem="The GPU stopped answering."))
    assert texts[-2:] == ["The GPU stopped answering.", "Try the GPU again"]
    shown.action("Try the GPU again").trigger()
    assert shown.calls == ["again"]
    assert "Try the GPU again" not in shown.show(replace(BOTH, choice=DeviceChoice("cpu"), problem="It is lost."))


def test_the_device_text_counts_kernels_while_they_compile() -> None:
    state = replace(BOTH, device=FakeDevice(), compiling=Compiling(5, 14))
    assert device_text.engine_text(state) == "CPU · compiling 14 kernels, 5 done"
    assert state.reason == "Until 14 kernels are compiled for Loom 9000, the CPU renders."
    state = replace(BOTH, choice=DeviceChoice("cuda:1"), compiling=Compiling(0, 1))
    assert device_text.engine_text(state) == "Loom 9000 · compiling 1 kernel, 0 done"
    assert state.reason == "Until a kernel is compiled for Loom 100, Loom 9000 (fp16) renders."
    assert device_text.engine_text(BOTH) == "Loom 9000 ready"
    assert device_text.engine_text(DeviceState()) == ""


def test_a_message_that_offers_to_try_the_gpu_again_goes_when_that_is_no_longer_needed(
    window: MainWindow, controller: FakeController, messages: MessageLog, qtbot: QtBot
) -> None:
    controller.show_devices(replace(BOTH, device=FakeDevice(), problem="The GPU stopped answering."))
    again = Action("Try the GPU again", lambda: None, lambda: controller.engine.devices.state.can_try_again)
    messages.warning("The GPU stopped answering.", action=again)
    messages.warning("Something else.", action=Action("Do it", lambda: None))
    qtbot.waitUntil(lambda: len(window.message_strip.lines) == 2)
    controller.show_devices(replace(controller.engine.devices.state, memory=None))
    assert len(window.message_strip.lines) == 2
    controller.show_devices(BOTH)
    assert [line.message.sentence for line in window.message_strip.lines] == ["Something else."]


def test_the_footprint_is_reported_in_one_line() -> None:
    assert device_text.memory_text(FakeMemory()) == "Holds 572 MB · weights 60 · plans 500 · pinned 12"
    assert device_text.memory_text(FakeMemory(pinned=0)) == "Holds 560 MB · weights 60 · plans 500"


def test_the_window_shows_the_device_wherever_one_looks(
    window: MainWindow, controller: FakeController, messages: MessageLog
) -> None:
    controller.show_devices(BOTH)
    assert window.top_bar.device_button.text() == "Loom 9000 · fp16 ▾"
    assert window.model.device.text() == "Loom 9000 · fp16"
    assert window.model.memory.text().startswith("Holds 572 MB")
    assert window.status_bar.engine.text() == "Loom 9000 ready"
    controller.show_devices(replace(BOTH, device=FakeDevice(), compiling=Compiling(5, 14)))
    assert window.status_bar.engine.text() == "CPU · compiling 14 kernels, 5 done"
    assert window.model.reason.text() == "Until 14 kernels are compiled for Loom 9000, the CPU renders."
    assert window.model.reason.property("role") == "dim"
    controller.show_devices(replace(BOTH, device=FakeDevice(), problem="The GPU stopped answering."))
    assert window.model.reason.text() == "The GPU stopped answering."
    assert window.model.reason.property("role") == "warn"


def test_the_menu_stands_at_the_chip_in_the_panel_and_under_model(window: MainWindow) -> None:
    assert window.top_bar.device_button.menu() is window.device_menu
    assert window.model.device_button.menu() is window.device_menu
    assert window.device_menu.menuAction() in window.menus["Model"].actions()


def test_a_chosen_device_reaches_the_controller(window: MainWindow, controller: FakeController) -> None:
    window.device_menu.device_chosen.emit("cuda:1")
    window.device_menu.precision_chosen.emit("fp32")
    window.device_menu.again_requested.emit()
    assert calls(controller, "choose_device") == [("choose_device", "cuda:1")]
    assert calls(controller, "choose_precision") == [("choose_precision", "fp32")]
    assert calls(controller, "try_device_again") == [("try_device_again",)]


def test_a_message_that_one_can_act_on_stays_until_one_does(
    window: MainWindow, messages: MessageLog, qtbot: QtBot
) -> None:
    done: list[str] = []
    messages.warning("The GPU stopped answering.", "", Action("Try the GPU again", lambda: done.append("again")))
    qtbot.waitUntil(lambda: bool(window.message_strip.lines))
    (line,) = window.message_strip.lines
    assert line.action_button.text() == "Try the GPU again"
    assert not line._timer.isActive()
    line.action_button.click()
    assert done == ["again"]
    assert window.message_strip.lines == ()
