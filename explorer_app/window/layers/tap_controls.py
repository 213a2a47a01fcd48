"""Display settings of a layer: one channel or three, gain, normalisation."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QStackedLayout, QVBoxLayout, QWidget

from explorer_app.session.parameters import SetParameter
from explorer_app.session.taps import MAX_GAIN_DB
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.controls.switch import Switch
from explorer_app.window.look import theme
from gpu_backend import LayerFacts, Tap

_REACH_DB = 40.0
"""Ends of the gain slider; the number field accepts larger values."""

_LABEL_PX = 62

_MODES = (
    ("one", "One channel", "Show one channel, in grey: 0 is middle grey."),
    ("three", "Three", "Show three channels as red, green and blue."),
)
_NORMALISED = "Normalise: divide each channel by its largest magnitude, so that it spans black to white."


class TapControls(QWidget):
    """Channels, gain and normalisation of the shown layer; disabled, with the reason, while the picture is shown.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for the layer; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tap = Tap("")
        self._is_there = False
        """Whether a layer is shown that the model has."""
        self._count = 0
        self.mode = SegmentedControl(_MODES, "Channels")
        self.normalised = Switch("Normalise")
        self.normalised.setToolTip(_NORMALISED)
        self.normalised.setChecked(self._tap.is_normalized)
        self.channel = SliderRow(
            "Channel",
            0,
            1,
            step=1,
            snap=1,
            decimals=0,
            widest="−100.0",
            label_px=_LABEL_PX,
            tip="the channel that is shown.",
        )
        self.three = tuple(self._field(colour) for colour in ("red", "green", "blue"))
        self.gain = SliderRow(
            "Gain dB",
            -_REACH_DB,
            _REACH_DB,
            step=0.1,
            snap=1.0,
            decimals=1,
            signed=True,
            beyond=MAX_GAIN_DB,
            widest="−100.0",
            label_px=_LABEL_PX,
            tip="brightness of the layer in dB; +20 is ten times.",
        )
        self.gain.path = "layer.gain"
        self._build()
        self.mode.chosen.connect(self._choose_mode)
        self.normalised.clicked.connect(lambda on: self._set(replace(self._tap, is_normalized=on), True))
        self.channel.moved.connect(lambda value, final: self._set(replace(self._tap, channels=(int(value),)), final))
        self.gain.moved.connect(lambda value, final: self._set(replace(self._tap, gain_db=value), final))
        for row in (self.channel, self.gain):
            row.cancelled.connect(self.gesture_cancelled)
        for place, field in enumerate(self.three):
            field.entered.connect(lambda value, final, place=place: self._set_channel(place, int(value), final))
        self.show_tap(None, None, "Open a model first.")

    @staticmethod
    def _field(colour: str) -> NumberField:
        field = NumberField(0, 1, decimals=0, step=1, widest="0000")
        field.setAccessibleName(f"Channel shown as {colour}")
        field.setFixedWidth(field.sizeHint().width() + theme.px(6))
        return field

    def _build(self) -> None:
        first = QHBoxLayout()
        first.setSpacing(6)
        show = QLabel("Show")
        show.setMinimumWidth(show.fontMetrics().horizontalAdvance(show.text()))
        show.setMaximumWidth(theme.px(_LABEL_PX))
        show.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        first.addWidget(show, 4)
        first.addWidget(self.mode)
        first.addStretch(1)
        first.addWidget(self.normalised)
        fields = QWidget()
        line = QHBoxLayout(fields)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addSpacing(theme.px(_LABEL_PX) + 6)
        for letter, field in zip("RGB", self.three, strict=True):
            label = QLabel(letter)
            theme.set_role(label, "dim")
            label.setBuddy(field)
            line.addWidget(label)
            line.addWidget(field)
            line.addSpacing(theme.px(6))
        line.addStretch(1)
        self.channels = QWidget()
        self._pages = QStackedLayout(self.channels)
        self._pages.addWidget(self.channel)
        self._pages.addWidget(fields)
        self.channels.setFixedHeight(theme.px(theme.ROW))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addLayout(first)
        layout.addWidget(self.channels)
        layout.addWidget(self.gain)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def show_tap(self, tap: Tap | None, layer: LayerFacts | None, reason: str) -> None:
        """Show a layer's display settings; without a layer, disable them and show `reason` in the tooltip."""
        # Before a field is disabled, which takes what was typed into it for another layer.
        self._is_there = is_there = tap is not None and layer is not None
        self.setEnabled(is_there)
        self.setToolTip("" if is_there else reason)
        for control in (self.mode, self.normalised, self.channels, self.gain):
            # Disabled controls have no tooltip, so that the section's tooltip gives the reason.
            control.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents, not is_there)
        if tap is None or layer is None:
            return
        self._tap = tap
        if layer.channels != self._count:
            self._take_count(layer.channels)
        self.mode.show_choice("one" if len(tap.channels) == 1 else "three")
        self.mode.segments["three"].setEnabled(layer.channels >= 3)
        self._pages.setCurrentIndex(0 if len(tap.channels) == 1 else 1)
        if len(tap.channels) == 1:
            self.channel.show_amount(tap.channels[0])
        else:
            for field, channel in zip(self.three, tap.channels, strict=True):
                field.show_number(channel)
        self.gain.show_amount(tap.gain_db)
        self.normalised.setChecked(tap.is_normalized)

    def _take_count(self, count: int) -> None:
        self._count = count
        last = count - 1
        self.channel.slider.set_ends(0, last)
        self.channel.set_tip("the channel that is shown.")
        for field in (self.channel.field, *self.three):
            field.setMaximum(last)
        for field, colour in zip(self.three, ("red", "green", "blue"), strict=True):
            field.setToolTip(f"The channel that is shown as {colour}, 0 to {last}.")

    def _choose_mode(self, mode: str) -> None:
        first = self._tap.channels[0]
        channels = (first,) if mode == "one" else tuple((first + step) % self._count for step in range(3))
        if len(channels) != len(self._tap.channels):
            self._set(replace(self._tap, channels=channels), True)

    def _set_channel(self, place: int, channel: int, final: bool) -> None:
        channels = list(self._tap.channels)
        channels[place] = channel
        self._set(replace(self._tap, channels=tuple(channels)), final)

    def _set(self, tap: Tap, final: bool) -> None:
        if not self._is_there:
            return
        self._tap = tap
        self.edited.emit(SetParameter("layer", tap), final)
