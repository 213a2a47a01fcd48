"""What is told about the model."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QScrollArea
from pytestqt.qtbot import QtBot

from explorer_app.controller import DeviceState
from explorer_app.window.model import model_text
from explorer_app.window.model.model_details import ModelDetails
from explorer_app.window.model.model_panel import ModelPanel
from tests.helpers.fake_controller import FakeDevice, facts
from tests.helpers.focus import has_frame

LONG = "ffhq-1024x1024-config-f-finetuned-on-paintings-" + "kimg-025000-" * 8


@pytest.fixture
def panel(qtbot: QtBot) -> ModelPanel:
    panel = ModelPanel()
    qtbot.addWidget(panel)
    panel.resize(340, 320)
    panel.show()
    return panel


def test_it_shows_what_is_open_where_it_runs_and_that_opening_was_safe(panel: ModelPanel) -> None:
    panel.show_model(facts(c_dim=10), is_bundled=True)
    panel.show_devices(DeviceState(device=FakeDevice()))
    assert panel.name.text() == "Landscapes 256"
    for part in ("bundled", "StyleGAN2", "256 × 256", "34.8 MB", "8.7 M parameters", "14 rows", "10 classes"):
        assert part in panel.about.text()
    assert panel.device.text() == "CPU · fp32"
    assert panel.reason.text() == FakeDevice().reason
    assert panel.safe.text() == "Opened safely"
    assert panel.safety.text() == "No code in the file was run."


def test_the_imports_of_a_file_are_behind_a_disclosure(panel: ModelPanel, qtbot: QtBot) -> None:
    panel.show_model(facts())
    assert not panel.imports.text.isVisible()
    assert panel.imports.button.text() == "3 imports requested · 2 parts ignored"
    qtbot.mouseClick(panel.imports.button, Qt.MouseButton.LeftButton)
    assert panel.imports.text.isVisible()
    assert "torch._utils _rebuild_tensor_v2" in panel.imports.text.text()
    assert "D: discriminator" in panel.imports.text.text()


def test_the_sha_256_is_copied_whole(panel: ModelPanel, qtbot: QtBot) -> None:
    panel.show_model(facts())
    qtbot.mouseClick(panel.copy_button, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == facts().model_id


def test_warnings_are_shown_only_if_there_are_any(panel: ModelPanel) -> None:
    panel.show_model(facts())
    assert not panel.warnings.isVisible()
    panel.show_model(facts(warnings=("w_avg holds NaN: truncation is unavailable.",)))
    assert panel.warnings.isVisible()
    assert panel.warnings.text() == "w_avg holds NaN: truncation is unavailable."


def test_without_a_model_it_says_how_to_begin(panel: ModelPanel) -> None:
    panel.show_model(facts())
    panel.show_model(None)
    panel.show_devices(DeviceState())
    assert panel.name.text() == "No model is open"
    assert not panel.safe.isVisible()
    assert not panel.device.isVisible()
    assert not panel.inspect_button.isEnabled()
    assert panel.open_button.isEnabled()


def test_a_very_long_name_is_cut_and_widens_nothing(panel: ModelPanel) -> None:
    panel.show_model(facts())
    narrow = panel.minimumSizeHint().width()
    panel.show_model(facts(name=LONG))
    assert panel.minimumSizeHint().width() == narrow
    assert panel.width() == 340


def test_buttons_ask(panel: ModelPanel, qtbot: QtBot) -> None:
    panel.show_model(facts())
    with qtbot.waitSignal(panel.open_requested):
        qtbot.mouseClick(panel.open_button, Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(panel.inspect_requested):
        qtbot.mouseClick(panel.inspect_button, Qt.MouseButton.LeftButton)


def test_inspect_shows_and_copies_everything(qtbot: QtBot) -> None:
    dialog = ModelDetails(facts())
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.mouseClick(dialog.copy_button, Qt.MouseButton.LeftButton)
    copied = QGuiApplication.clipboard().text()
    for part in (facts().model_id, "8,700,000", "collections OrderedDict", "b128.conv0", "32 × 32", "34,800,000 bytes"):
        assert part in copied
    dialog.close()


def test_the_details_show_the_focus_before_it_goes_to_a_button(qtbot: QtBot) -> None:
    dialog = ModelDetails(facts())
    qtbot.addWidget(dialog)
    dialog.show()
    area = dialog.findChildren(QScrollArea)[0]
    area.setFocus()
    assert has_frame(area)
    dialog.copy_button.setFocus()
    assert not has_frame(area)
    dialog.close()


@pytest.mark.parametrize(
    ("nbytes", "text"), [(40, "1 KB"), (346_000, "346 KB"), (34_800_000, "34.8 MB"), (1_020_000_000, "1.02 GB")]
)
def test_sizes_are_written_for_people(nbytes: int, text: str) -> None:
    assert model_text.size_text(nbytes) == text


def test_counts_agree_with_their_nouns() -> None:
    assert model_text.plural(1, "row") == "1 row"
    assert model_text.plural(1000, "class", "classes") == "1,000 classes"
    assert model_text.count_text(8_700_000) == "8.7 M"
    assert model_text.count_text(512_000) == "512 k"
    assert model_text.count_text(940) == "940"


def test_a_file_that_imports_nothing_reports_it() -> None:
    assert model_text.safety_summary(facts(names_requested=(), ignored=())) == "no imports requested"
    assert model_text.safety_details(facts(names_requested=(), ignored=())) == ""


def test_the_details_say_where_the_names_of_classes_come_from() -> None:
    assert dict(model_text.all_facts(facts(c_dim=10)))["Classes"] == "10"
    named = facts(c_dim=1, class_names=("jay",), class_file="labels.txt")
    assert dict(model_text.all_facts(named))["Classes"] == "1, with names from labels.txt"


def test_everything_of_the_panel_is_in_sight_in_a_narrow_dock(panel: ModelPanel) -> None:
    many = tuple(f"dnnlib.util name{number}" for number in range(123))
    panel.show_model(facts(names_requested=many))
    panel.show_devices(DeviceState(device=FakeDevice()))
    QCoreApplication.processEvents()  # layouts inside others pass their sizes on by events
    panel.resize(panel.minimumSizeHint().width(), 320)
    assert panel.width() <= 260
    for button in (panel.device_button, panel.copy_button, panel.imports.button):
        assert button.mapTo(panel, button.rect().topRight()).x() < panel.width()
