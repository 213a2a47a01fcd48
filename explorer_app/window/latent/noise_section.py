"""Noise settings: mode, gain, seed, and a popup with the gain of each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import Edit
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import RowLabel, below
from explorer_app.window.latent.noise_layers import NoiseLayers
from explorer_app.window.look import theme
from gpu_backend import SEED_COUNT, Noise

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_SPACING_PX = 4

_MODES = (
    ("const", "Constant", "Noise: the model's own maps, the same for every picture."),
    ("random", "Random", "Noise: maps drawn from the noise seed."),
    ("none", "Off", "Noise: none, which smooths the finest structure."),
)


class NoiseSection(QWidget):
    """The noise of the latent panel.

    Signals
    -------
    edited(object, bool)
        `SetParameter`; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("noise",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._noise = Noise()
        self._layers: tuple[str, ...] = ()
        self.mode = SegmentedControl(_MODES, "Noise")
        self.mode.path = "noise.mode"
        self.gain = NumberField(0.0, 5.0, step=0.05, reset=1.0, widest="0.00")
        self.gain.setAccessibleName("Noise gain")
        self.gain.path, self.gain.mapped_to = "noise.gain", (0.0, 2.0)
        self.gain.setToolTip("Noise gain, 0 to 5, scales the noise of all layers; a double-click sets 1.00.")
        self.seed = NumberField(0, SEED_COUNT - 1, decimals=0, step=1, reset=0, widest=str(SEED_COUNT - 1))
        self.seed.setAccessibleName("Noise seed")
        self.seed.path, self.seed.mapped_to = "noise.seed", (0.0, 99.0)
        self.seed.setToolTip("Noise seed, 0 to 4294967295, for random noise; a double-click sets 0.")
        self.phase = NumberField(-36000.0, 36000.0, decimals=0, step=5, reset=0.0, widest="−000")
        self.phase.setSuffix("°")
        self.phase.setAccessibleName("Noise phase")
        self.phase.path, self.phase.mapped_to = "noise.phase", (0.0, 360.0)
        self.phase.setToolTip(
            "Noise phase: moves the noise around a circle that closes at 360°. The timeline's noise loop moves it; a "
            "double-click sets 0."
        )
        self.layers_button = QToolButton()
        self.layers_button.setText("Layers ▾")
        self.layers_button.setToolTip("Set the noise strength of each layer.")
        self.layers_button.setAccessibleName("Noise of each layer")
        self.layers = NoiseLayers(self)
        self._build()
        self.mode.chosen.connect(lambda mode: self._set("mode", mode, True))
        self.gain.entered.connect(lambda gain, final: self._set("gain", gain, final))
        self.phase.entered.connect(lambda phase, final: self._set("phase", phase, final))
        self.seed.entered.connect(lambda seed, final: self._set("seed", int(seed), final))
        self.layers_button.clicked.connect(lambda _on: self.layers.open_at(below(self.layers_button)))
        self.layers.edited.connect(self._emit)
        self.layers.gesture_cancelled.connect(self.gesture_cancelled)
        self.show_session(Session())

    def _build(self) -> None:
        name, gain, seed = RowLabel("Noise"), QLabel("gain"), RowLabel("seed")
        # Elided rather than widening the dock: some systems have only a wide font.
        for elided in (name, seed):
            elided.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        for label in (name, gain, seed):
            theme.set_role(label, "dim")
        self._name, self._gain_label, self._seed_label = name, gain, seed
        first = QHBoxLayout()
        first.setSpacing(_SPACING_PX)
        first.addWidget(name)
        first.addWidget(self.mode)
        first.addStretch(1)
        first.addWidget(gain)
        first.addWidget(self.gain)
        second = QHBoxLayout()
        second.setSpacing(_SPACING_PX)
        second.addWidget(self.layers_button)
        second.addStretch(1)
        second.addWidget(self.phase)
        second.addWidget(seed)
        second.addWidget(self.seed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addLayout(first)
        layout.addLayout(second)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Hide the word "gain" where a wide font leaves no room for it; the field has it in its tooltip."""
        super().resizeEvent(event)
        row = (self._name, self.mode, self._gain_label, self.gain)
        needed = sum(part.sizeHint().width() + _SPACING_PX for part in row)
        self._gain_label.setVisible(self.width() >= needed)

    def show_model(self, facts: ModelFacts | None, directions: Directions | None = None) -> None:
        """Set up the noise layers; for a network without noise, show one line instead."""
        layers = facts.noise_layers if facts is not None else ()
        self.setEnabled(bool(layers))
        is_without = facts is not None and not layers
        self.setToolTip(f"A {facts.family} network has no noise layers." if facts is not None and is_without else "")
        for control in (self.mode, self.gain):
            # Disabled controls have no tooltip, so that the section's tooltip gives the reason.
            control.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, is_without)
        for part in (self.layers_button, self.phase, self._seed_label, self.seed):
            part.setVisible(not is_without)
        self._layers = layers
        self.layers.show_layers(layers)
        self._show(self._noise)

    def show_session(self, session: Session) -> None:
        """Show the session's noise."""
        self._show(session.noise)

    def _show(self, noise: Noise) -> None:
        self._noise = noise
        self.mode.show_choice(noise.mode)
        self.gain.show_number(noise.gain)
        self.phase.show_number(noise.phase)
        self.seed.show_number(noise.seed)
        takes_seed = noise.mode == "random" and bool(self._layers)
        self.seed.setEnabled(takes_seed)
        self._seed_label.setEnabled(takes_seed)
        audible = noise.mode != "none"
        self.gain.setEnabled(audible)
        self.phase.setEnabled(audible)
        self.layers_button.setEnabled(audible)
        self.layers.show_gains(noise.layer_gains)

    def _set(self, name: str, value: str | float, final: bool) -> None:
        self._emit(SetParameter(f"noise.{name}", value), final)

    def _emit(self, edit: Edit, final: bool) -> None:
        self._noise = edit.apply(Session(noise=self._noise)).noise
        self.edited.emit(edit, final)
        if final:
            self._show(self._noise)
