"""Noise: mode, gain, seed, and a strength for each layer behind a disclosure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import SetParameter
from explorer_app.session.session import Session
from explorer_app.window import icons, theme
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import RowLabel, SliderRow
from gpu_backend import SEED_COUNT, Noise

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_OFFICIAL_NAME = re.compile(r"b(\d+)\.(\w+)")

_MODES = (
    ("const", "Constant", "Noise: the maps that come with the model, the same for every picture."),
    ("random", "Random", "Noise: maps drawn from the noise seed."),
    ("none", "Off", "Noise: none, which smooths the finest structure."),
)


def layer_label(name: str) -> str:
    """Return what a noise layer is called: ``"64 px · conv1"`` for ``"b64.conv1"``."""
    match = _OFFICIAL_NAME.fullmatch(name)
    return f"{match[1]} px · {match[2]}" if match else name


class NoiseSection(QWidget):
    """The noise of the latent panel.

    Signals
    -------
    edited(object, bool)
        `SetParameter`; True once a gesture.
    gesture_cancelled()
        Escape ended a drag.
    turning(bool), opened()
        The layers are about to open or to shut; the person opened them.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("noise",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    turning = Signal(bool)
    opened = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._noise = Noise()
        self._layers: tuple[str, ...] = ()
        self.mode = SegmentedControl(_MODES, "Noise")
        self.gain = NumberField(0.0, 5.0, step=0.05, reset=1.0, widest="0.00")
        self.gain.setAccessibleName("Noise gain")
        self.gain.setToolTip("Noise gain, 0 to 5, scales the noise of all layers; a double-click sets 1.00.")
        self.seed = NumberField(0, SEED_COUNT - 1, decimals=0, step=1, reset=0, widest=str(SEED_COUNT - 1))
        self.seed.setAccessibleName("Noise seed")
        self.seed.setToolTip("Noise seed, 0 to 4294967295, for random noise; a double-click sets 0.")
        self.disclosure = QToolButton()
        theme.set_role(self.disclosure, "flat")
        self.disclosure.setText("Layers")
        self.disclosure.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.disclosure.setIconSize(QSize(12, 12))
        self.disclosure.setCheckable(True)
        self.disclosure.setToolTip("Show a strength for the noise of each layer.")
        self.disclosure.setAccessibleName("Noise strength per layer")
        self.layers = QWidget()
        self.rows: list[SliderRow] = []
        self._rows_layout = QVBoxLayout(self.layers)
        self._rows_layout.setContentsMargins(0, 0, 0, 0)
        self._rows_layout.setSpacing(0)
        self._build()
        self.mode.chosen.connect(lambda mode: self._set("mode", mode, True))
        self.gain.entered.connect(lambda gain, final: self._set("gain", gain, final))
        self.seed.entered.connect(lambda seed, final: self._set("seed", int(seed), final))
        self.disclosure.toggled.connect(self._disclose)
        self._disclose(False)
        self.show_session(Session())

    def _build(self) -> None:
        name, gain, seed = RowLabel("Noise"), QLabel("gain"), QLabel("seed")
        # Cut before the dock grows: some systems' only font is a wide one.
        name.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        for label in (name, gain, seed):
            theme.set_role(label, "dim")
        self._seed_label = seed
        first = QHBoxLayout()
        first.setSpacing(4)
        first.addWidget(name)
        first.addWidget(self.mode)
        first.addStretch(1)
        first.addWidget(gain)
        first.addWidget(self.gain)
        second = QHBoxLayout()
        second.setSpacing(6)
        second.addWidget(self.disclosure)
        second.addStretch(1)
        second.addWidget(seed)
        second.addWidget(self.seed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(first)
        layout.addLayout(second)
        layout.addWidget(self.layers)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Build a row for each noise layer; a network without noise has nothing to set, and one line to say so."""
        layers = facts.noise_layers if facts is not None else ()
        self.setEnabled(bool(layers))
        is_without = facts is not None and not layers
        self.setToolTip(f"A {facts.family} network has no noise layers." if facts is not None and is_without else "")
        for control in (self.mode, self.gain):
            # What cannot be used leaves the tooltip to the section, which says why.
            control.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, is_without)
        if is_without:
            self.disclosure.setChecked(False)
        for part in (self.disclosure, self._seed_label, self.seed):
            part.setVisible(not is_without)
        if layers == self._layers:
            return
        self._layers = layers
        for row in self.rows:
            row.deleteLater()
        self.rows = []
        for index, name in enumerate(layers):
            row = SliderRow(
                layer_label(name),
                0.0,
                2.0,
                neutral=1.0,
                beyond=10.0,
                widest="−0.00",
                tip="strength of the noise of this layer.",
            )
            row.field.setMinimum(0.0)
            row.moved.connect(lambda gain, final, index=index: self._set_layer(index, gain, final))
            row.cancelled.connect(self.gesture_cancelled)
            self._rows_layout.addWidget(row)
            QWidget.setTabOrder(self.rows[-1].field if self.rows else self.seed, row.slider)
            QWidget.setTabOrder(row.slider, row.field)
            self.rows.append(row)
        self._show(self._noise)

    def show_session(self, session: Session) -> None:
        """Show the session's noise."""
        self._show(session.noise)

    def _show(self, noise: Noise) -> None:
        self._noise = noise
        self.mode.show_choice(noise.mode)
        self.gain.show_number(noise.gain)
        self.seed.show_number(noise.seed)
        takes_seed = noise.mode == "random" and bool(self._layers)
        self.seed.setEnabled(takes_seed)
        self._seed_label.setEnabled(takes_seed)
        audible = noise.mode != "none"
        self.gain.setEnabled(audible)
        for index, row in enumerate(self.rows):
            row.setEnabled(audible)
            row.show_amount(noise.layer_gains[index] if index < len(noise.layer_gains) else 1.0)

    def _set_layer(self, index: int, gain: float, final: bool) -> None:
        self._emit(SetParameter(f"noise.layer/{index}", gain), final)

    def _set(self, name: str, value: str | float, final: bool) -> None:
        self._emit(SetParameter(f"noise.{name}", value), final)

    def _emit(self, edit: SetParameter, final: bool) -> None:
        self._noise = edit.apply(Session(noise=self._noise)).noise
        self.edited.emit(edit, final)
        if final:
            self._show(self._noise)

    def _disclose(self, opened: bool) -> None:
        self.turning.emit(opened)
        self.layers.setVisible(opened)
        self.disclosure.setIcon(icons.icon("chevron-down" if opened else "chevron-right", "dim"))
        if opened:
            self.opened.emit()
