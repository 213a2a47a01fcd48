from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLabel, QScrollArea
from pytestqt.qtbot import QtBot

from explorer_app.session.edits import PLACE, GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.controls.slider_row import RowLabel
from explorer_app.window.controls.value_slider import ValueSlider
from explorer_app.window.latent.class_picker import ClassPicker
from explorer_app.window.latent.latent_panel import LatentPanel
from explorer_app.window.latent.noise_section import NoiseSection
from explorer_app.window.look import theme
from gpu_backend import Noise, Recipe, Truncation
from tests.helpers.fonts import narrow_dock
from tests.helpers.near import near
from tests.helpers.panels import CTRL, Edits, click_row, double_click, drag, lay_out, model_facts, move, press


class WatchedPanel(LatentPanel):
    """A panel, and its edits."""

    edits: Edits


@pytest.fixture
def panel(qtbot: QtBot) -> WatchedPanel:
    panel = WatchedPanel()
    qtbot.addWidget(panel)
    panel.show_model(model_facts(classes=1000), None)
    panel.edits = Edits(panel)
    panel.resize(322, 520)
    panel.show()
    return panel


def write(qtbot: QtBot, field: QAbstractSpinBox, text: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, text)
    qtbot.keyClick(field, Qt.Key.Key_Return)


def handle(slider: ValueSlider, amount: float) -> QPointF:
    return QPointF(slider._x_of(amount), slider.height() / 2)


def test_the_place_is_shown_as_a_seed_and_signed_fractions(panel: WatchedPanel) -> None:
    panel.edits.show(Session(position=Position(7.38, 11.96)))
    assert panel.seed.text() == "1207"
    assert panel.plane_x.text() == "+0.38"
    assert panel.plane_y.text() == "−0.04"


class Paints(QObject):
    """Records the widgets that are painted."""

    def __init__(self) -> None:
        super().__init__()
        self.widgets: set[QObject] = set()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        if event.type() == QEvent.Type.Paint:
            self.widgets.add(watched)
        return False


def test_numbers_that_follow_a_drag_repaint_nothing_below_them(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(position=Position(7.38, 11.96)))
    with qtbot.waitExposed(panel):
        panel.show()
    lay_out(panel)
    panel.repaint()
    paints = Paints()
    app = QApplication.instance()
    assert app is not None
    app.installEventFilter(paints)
    panel.edits.show(Session(position=Position(7.4, 11.98)))
    qtbot.waitUntil(lambda: panel.plane_y in paints.widgets)
    app.removeEventFilter(paints)
    fields = panel.plane_x, panel.plane_y
    assert {panel.plane, *fields} <= paints.widgets
    assert paints.widgets <= {panel.plane, *fields, *(field.lineEdit() for field in fields)}


def test_a_field_on_a_panel_shows_the_panels_colour_around_its_corners(panel: WatchedPanel) -> None:
    colour = panel.plane_x.grab().toImage().pixelColor(0, 0)
    assert colour.name() == theme.current().panel


def test_a_typed_seed_is_gone_to(panel: WatchedPanel, qtbot: QtBot) -> None:
    write(qtbot, panel.seed, "4294967295")
    assert panel.edits.steps == [GoToSeed(4294967295)]
    assert panel.seed.text() == "4294967295"


def test_a_seed_beyond_the_last_cannot_be_entered(panel: WatchedPanel, qtbot: QtBot) -> None:
    write(qtbot, panel.seed, "4294967296")
    assert panel.edits.session.position == Position()


def test_stepping_the_seed_walks_to_the_neighbour_in_one_gesture(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(position=Position(-3.2, 5.0)))
    panel.seed.setFocus()
    qtbot.keyClick(panel.seed, Qt.Key.Key_Up)
    qtbot.keyClick(panel.seed, Qt.Key.Key_Up)
    panel.plane.setFocus()
    assert panel.edits.session.position == Position(-1.0, 5.0)
    assert len(panel.edits.steps) == 1


def test_a_typed_fraction_moves_beside_the_seed(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(position=Position(7.0, 12.0)))
    write(qtbot, panel.plane_x, "0.25")
    write(qtbot, panel.plane_y, "-0.5")
    assert panel.edits.session.position == Position(7.25, 11.5)


def test_snap_goes_to_the_nearest_seed(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.edits.show(Session(position=Position(7.38, 11.96)))
    qtbot.mouseClick(panel.snap, Qt.MouseButton.LeftButton)
    assert panel.edits.steps == [SetParameter(PLACE, Position(7.0, 12.0), label="Snap")]


def test_random_is_requested_and_not_decided(panel: WatchedPanel, qtbot: QtBot) -> None:
    with qtbot.waitSignal(panel.random_requested):
        qtbot.mouseClick(panel.random, Qt.MouseButton.LeftButton)
    assert panel.edits.all == []


def test_psi_is_dragged_as_one_gesture_and_keeps_the_cutoff(panel: WatchedPanel) -> None:
    panel.edits.show(Session(truncation=Truncation(0.7, 8)))
    slider = panel.psi.slider
    drag(slider, handle(slider, 0.7), handle(slider, -0.5))
    assert len(panel.edits.steps) == 1
    assert panel.edits.session.truncation == Truncation(near(-0.5, abs=0.03), 8)
    assert panel.psi.field.text() == panel.psi.field.textFromValue(panel.edits.session.truncation.psi)


def test_psi_reaches_from_minus_one_to_two_and_a_double_click_brings_0_7(panel: WatchedPanel, qtbot: QtBot) -> None:
    panel.psi.slider.setFocus()
    qtbot.keyClick(panel.psi.slider, Qt.Key.Key_End)
    assert panel.edits.session.truncation.psi == 2.0
    qtbot.keyClick(panel.psi.slider, Qt.Key.Key_Home)
    assert panel.edits.session.truncation.psi == -1.0
    double_click(panel.psi.slider, handle(panel.psi.slider, 1.5))
    assert panel.edits.session.truncation.psi == 0.7


def test_escape_in_a_drag_of_psi_cancels_the_gesture(panel: WatchedPanel, qtbot: QtBot) -> None:
    slider = panel.psi.slider
    press(slider, handle(slider, 0.7))
    move(slider, handle(slider, 1.5))
    qtbot.keyClick(slider, Qt.Key.Key_Escape)
    assert panel.edits.cancelled == 1
    assert panel.edits.session.truncation.psi == 0.7
    assert panel.psi.field.text() == "0.70"


def test_cutoff_at_its_end_means_all_rows(panel: WatchedPanel, qtbot: QtBot) -> None:
    write(qtbot, panel.cutoff.field, "4")
    assert panel.edits.session.truncation.cutoff == 4
    panel.cutoff.slider.setFocus()
    qtbot.keyClick(panel.cutoff.slider, Qt.Key.Key_End)
    assert panel.edits.session.truncation.cutoff is None
    assert panel.cutoff.field.text() == "14"


def test_a_model_with_fewer_rows_asks_for_nothing(panel: WatchedPanel) -> None:
    for resolution in (1024, 16, 64, 8):
        panel.show_model(model_facts(resolution), None)
    assert panel.edits.all == []


def test_cutoff_ends_at_the_rows_of_the_model(panel: WatchedPanel) -> None:
    panel.show_model(model_facts(64), None)
    assert panel.cutoff.slider.ends == (0, 10)
    assert panel.cutoff.field.text() == "10"


def test_drift_is_requested_and_shown_without_an_edit(panel: WatchedPanel, qtbot: QtBot) -> None:
    speeds: list[float] = []
    panel.drift_changed.connect(speeds.append)
    drag(panel.drift.slider, handle(panel.drift.slider, 0.0), handle(panel.drift.slider, 0.5))
    assert speeds[-1] == pytest.approx(0.5, abs=0.03)
    speeds.clear()
    panel.show_drift(0.25)
    assert panel.drift.field.text() == "0.25"
    assert speeds == []
    assert panel.edits.all == []


def test_a_narrow_noise_row_leaves_out_the_word_gain_and_not_its_own_name(qtbot: QtBot) -> None:
    section = NoiseSection()
    qtbot.addWidget(section)
    section.show()
    name = section.findChild(RowLabel)
    assert name is not None
    words = {label.text(): label for label in section.findChildren(QLabel)}
    section.resize(400, 60)
    qtbot.waitUntil(words["gain"].isVisible)
    section.resize(sum(part.sizeHint().width() for part in (name, section.mode, section.gain)) + 16, 60)
    qtbot.waitUntil(lambda: not words["gain"].isVisible())
    qtbot.waitUntil(lambda: name.text() == "Noise")


def test_noise_modes_are_three_buttons(panel: WatchedPanel, qtbot: QtBot) -> None:
    modes = []
    for mode in ("random", "none", "const"):
        qtbot.mouseClick(panel.noise.mode.segments[mode], Qt.MouseButton.LeftButton)
        modes.append(panel.edits.session.noise.mode)
    assert modes == ["random", "none", "const"]


def test_the_noise_seed_is_there_for_random_noise_only(panel: WatchedPanel, qtbot: QtBot) -> None:
    assert not panel.noise.seed.isEnabled()
    qtbot.mouseClick(panel.noise.mode.segments["random"], Qt.MouseButton.LeftButton)
    assert panel.noise.seed.isEnabled()
    write(qtbot, panel.noise.seed, "99")
    assert panel.edits.session.noise == Noise("random", 99)


def test_gain_is_typed(panel: WatchedPanel, qtbot: QtBot) -> None:
    write(qtbot, panel.noise.gain, "2.5")
    assert panel.edits.session.noise.gain == 2.5


def test_layer_strengths_are_set_in_a_popup(panel: WatchedPanel, qtbot: QtBot) -> None:
    layers = panel.noise.layers
    assert not layers.isVisible()
    qtbot.mouseClick(panel.noise.layers_button, Qt.MouseButton.LeftButton)
    assert layers.isVisible()
    assert [row.label.full_text for row in layers.rows][:3] == ["4 px · conv1", "8 px · conv0", "8 px · conv1"]
    write(qtbot, layers.rows[1].field, "0.5")
    assert panel.edits.session.noise.layer_gains == (1.0, 0.5)
    write(qtbot, layers.rows[1].field, "1")
    assert panel.edits.session.noise.layer_gains == ()
    write(qtbot, layers.rows[2].field, "0.25")
    assert layers.reset.isEnabled()
    layers.reset.click()
    assert panel.edits.session.noise.layer_gains == ()
    assert not layers.reset.isEnabled()
    layers.hide()


def test_both_buttons_that_open_a_popup_look_alike(panel: WatchedPanel) -> None:
    roles = [button.property("role") for button in (panel.class_button, panel.noise.layers_button)]
    assert roles == [None, None], "without a frame the text would be indented against the rows above"


@pytest.mark.parametrize("resolution", [64, 256, 1024])
def test_opening_the_layers_moves_and_scrolls_nothing(scrolled: QScrollArea, qtbot: QtBot, resolution: int) -> None:
    panel = scrolled.widget()
    assert isinstance(panel, LatentPanel)
    panel.show_model(model_facts(resolution), None)
    scrolled.resize(340, 300)
    for _ in range(5):
        QApplication.processEvents()  # the scroll bar comes, and the margin gives way
    scrolled.verticalScrollBar().setValue(scrolled.verticalScrollBar().maximum())
    still = (panel.plane, panel.seed, panel.psi, panel.noise.mode, panel.noise.layers_button)
    before = [(widget.mapTo(scrolled, QPoint(0, 0)), widget.size()) for widget in still]
    qtbot.mouseClick(panel.noise.layers_button, Qt.MouseButton.LeftButton)
    QApplication.processEvents()
    assert panel.noise.layers.isVisible()
    assert [(widget.mapTo(scrolled, QPoint(0, 0)), widget.size()) for widget in still] == before
    assert panel.noise.layers.height() <= panel.screen().availableGeometry().height()
    panel.noise.layers.hide()


def test_a_network_without_noise_has_nothing_to_set(panel: WatchedPanel) -> None:
    panel.show_model(model_facts(has_noise=False), None)
    assert not panel.noise.isEnabled()
    assert panel.psi.isEnabled()
    line = (panel.noise.layers_button, panel.noise.seed)
    assert not any(control.isVisible() for control in (*line, panel.noise.layers)), "one grey line says enough"
    for control in (panel.noise.mode, panel.noise.gain):
        pointed_at = panel.childAt(control.mapTo(panel, control.rect().center()))
        assert pointed_at is panel.noise, "so that what is seen there is"
    assert panel.noise.toolTip() == "A StyleGAN2 network has no noise layers."
    panel.show_model(model_facts(), None)
    assert panel.noise.toolTip() == ""
    assert all(control.isVisible() for control in line)
    assert panel.childAt(panel.noise.gain.mapTo(panel, panel.noise.gain.rect().center())) is not panel.noise


def test_a_network_without_classes_has_no_list(panel: WatchedPanel) -> None:
    assert panel.class_button.isEnabled()
    panel.show_model(model_facts(), None)
    assert not panel.class_button.isEnabled()


def test_without_a_model_everything_is_at_rest(panel: WatchedPanel) -> None:
    panel.show_model(None, None)
    for widget in (
        panel.plane,
        panel.seed,
        panel.snap,
        panel.random,
        panel.psi,
        panel.cutoff,
        panel.drift,
        panel.noise,
    ):
        assert not widget.isEnabled()


def test_a_held_picture_is_reported(panel: WatchedPanel) -> None:
    panel.edits.show(Session(pinned_blend=((Recipe(), 1.0),)))
    assert panel.hint.full_text == "pinned latent"


@pytest.fixture
def picker(panel: WatchedPanel, qtbot: QtBot) -> Iterator[ClassPicker]:
    qtbot.mouseClick(panel.class_button, Qt.MouseButton.LeftButton)
    picker = panel.picker
    assert picker.isVisible()
    yield picker
    picker.hide()


def test_a_click_chooses_one_class_and_ctrl_weighs_several(panel: WatchedPanel, picker: ClassPicker) -> None:
    click_row(picker, 18)
    assert panel.edits.session.classes == ((17, 1.0),)
    assert panel.class_button.text() == "Class 17 ▾"
    click_row(picker, 4, CTRL)
    assert panel.edits.session.classes == ((17, 1.0), (3, 1.0))
    assert panel.class_button.text() == "2 classes ▾"
    click_row(picker, 18, CTRL)
    assert panel.edits.session.classes == ((3, 1.0),)
    click_row(picker, 0)
    assert panel.edits.session.classes == ()


def test_weights_of_classes_are_sliders(panel: WatchedPanel, picker: ClassPicker, qtbot: QtBot) -> None:
    panel.edits.show(Session(classes=((1, 1.0), (2, 1.0))))
    write(qtbot, picker.rows[1].field, "0.25")
    assert panel.edits.session.classes == ((1, 1.0), (2, 0.25))
    assert len(picker.rows) == 2


def test_a_thousand_classes_are_filtered_by_their_digits(
    panel: WatchedPanel, picker: ClassPicker, qtbot: QtBot
) -> None:
    assert picker.model.rowCount() == 1001
    qtbot.keyClicks(picker.filter, "99")
    shown = [picker.model.index(row).data() for row in range(picker.model.rowCount())]
    assert "Class 99" in shown
    assert "Class 990" in shown
    assert len(shown) == 19
    qtbot.keyClick(picker.filter, Qt.Key.Key_Return)
    assert panel.edits.session.classes == ((99, 1.0),)


def test_keys_choose_and_join_classes(panel: WatchedPanel, picker: ClassPicker, qtbot: QtBot) -> None:
    picker.list.setFocus()
    picker.list.setCurrentIndex(picker.model.index(6))
    qtbot.keyClick(picker.list, Qt.Key.Key_Return)
    qtbot.keyClick(picker.list, Qt.Key.Key_Down)
    qtbot.keyClick(picker.list, Qt.Key.Key_Space)
    assert panel.edits.session.classes == ((5, 1.0), (6, 1.0))


def test_the_popup_stays_on_the_screen(panel: WatchedPanel, picker: ClassPicker) -> None:
    picker.hide()
    area = picker.screen().availableGeometry()
    picker.open_at(QPoint(area.right() - 5, area.bottom() - 5))
    assert area.contains(picker.geometry())


def test_the_panel_fits_a_narrow_dock(each_font: str, panel: WatchedPanel) -> None:
    assert panel.minimumSizeHint().width() <= narrow_dock(each_font, 300)


def test_the_name_of_the_noise_row_is_cut_before_the_dock_grows(panel: WatchedPanel) -> None:
    name = panel.noise.findChild(RowLabel)
    assert isinstance(name, RowLabel)
    assert name.minimumSizeHint().width() < name.sizeHint().width()


@pytest.fixture
def scrolled(qtbot: QtBot) -> QScrollArea:
    """The panel in a dock that has just the room for it."""
    area = QScrollArea()
    qtbot.addWidget(area)
    area.setWidgetResizable(True)
    panel = LatentPanel()
    area.setWidget(panel)
    area.resize(340, panel.sizeHint().height() + 4)
    area.show()
    return area


def test_a_slightly_lower_dock_does_not_scroll_yet(scrolled: QScrollArea, qtbot: QtBot) -> None:
    panel = scrolled.widget()
    assert isinstance(panel, LatentPanel)
    panel.show_model(model_facts(), None)
    high = panel.plane.height()
    scrolled.resize(340, scrolled.height() - 30)
    QApplication.processEvents()
    assert not scrolled.verticalScrollBar().isVisible()
    assert scrolled.viewport().rect().contains(panel.noise.geometry())
    assert panel.plane.height() < high, "the plane gives what is missing"
    scrolled.resize(340, scrolled.height() + 60)
    qtbot.waitUntil(lambda: panel.plane.height() == high)


@pytest.mark.usefixtures("each_font")
def test_the_hint_is_shown_whole_or_not_at_all(panel: WatchedPanel) -> None:
    panel.resize(panel.minimumSizeHint().width(), 520)
    for session in (Session(), Session(pinned_blend=((Recipe(), 1.0),))):
        panel.edits.show(session)
        for words in ("Class ▾", "a very long name of a class, and more of it"):
            panel.class_button.setText(words)
            lay_out(panel)
            assert panel.hint.text() in ("", "drag to walk", "pinned latent", "pinned")
            assert panel.hint.fontMetrics().horizontalAdvance(panel.hint.text()) <= max(panel.hint.width(), 0)
    panel.class_button.setText("Class ▾")
    panel.edits.show(Session())
    panel.resize(420, 520)
    lay_out(panel)
    assert panel.hint.text() == "drag to walk"


def test_every_control_says_what_it_is(panel: WatchedPanel) -> None:
    for widget in (
        panel.seed,
        panel.plane_x,
        panel.plane_y,
        panel.snap,
        panel.random,
        panel.psi.slider,
        panel.noise.gain,
    ):
        assert widget.toolTip()
        assert widget.accessibleName() or getattr(widget, "text", str)()
    assert "−1.00 to 2.00" in panel.psi.slider.toolTip()


def test_showing_a_session_emits_nothing(panel: WatchedPanel) -> None:
    session = Session(
        position=Position(3.5, 4.0),
        classes=((5, 0.5),),
        truncation=Truncation(0.1, 3),
        noise=Noise("random", 5, 0.5, (0.2,)),
    )
    panel.edits.show(session)
    panel.edits.show(replace(session, noise=Noise()))
    assert panel.edits.all == []


def test_every_value_of_the_panel_can_get_a_key(panel: WatchedPanel) -> None:
    fields = (panel.seed, panel.plane_x, panel.plane_y, panel.psi, panel.cutoff)
    assert [field.path for field in fields] == ["position"] * 3 + ["truncation.psi", "truncation.cutoff"]
    noise = panel.noise
    assert [field.path for field in (noise.gain, noise.phase, noise.seed)] == [
        f"noise.{name}" for name in ("gain", "phase", "seed")
    ]
