"""Rows of the panel of local edits: a bend with its numbers, a style channel."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import RemoveBend, RemoveStyleChannel
from explorer_app.session.local_edits import QUANTITIES, LayerBend, StyleChannel
from explorer_app.session.parameters import SetParameter
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.slider_row import SliderRow
from explorer_app.window.controls.switch import Switch
from explorer_app.window.look import icons, ink, theme

_END_PX = 36
"""Side of the pictures of a style channel's ends."""
LABEL_PX = 138
"""Width of the names of blends and bends, whose sliders begin and end below each other."""
_LEAST_BEND_LABEL_PX = 36
"""The same of bends in a narrow panel."""
_GAP_PX = 4

_SLIDERS: dict[str, tuple[float, float, float, float | None, str]] = {
    "gain": (-2.0, 4.0, 1.0, 10.0, "factor of the channels; a negative factor inverts them."),
    "ablate": (0.0, 1.0, 0.0, None, "how far the channels are faded out; 1 removes them."),
    "threshold": (0.0, 4.0, 0.0, None, "activations of a smaller magnitude become 0."),
    "right": (-0.5, 0.5, 0.0, 2.0, "how far the channels move to the right, in widths of the layer."),
    "down": (-0.5, 0.5, 0.0, 2.0, "how far the channels move down, in widths of the layer."),
    "turn": (-180.0, 180.0, 0.0, 3600.0, "rotation of the channels around the centre, in degrees."),
    "scale": (0.25, 4.0, 1.0, None, "scale of the channels around the centre."),
}
"""Ends of a number's slider, its rest, the end of its field, and what it does."""


class EditRow(QWidget):
    """A row with a button that removes it.

    Signals
    -------
    edited(object, bool)
        An Edit; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.remove = QToolButton()
        theme.set_role(self.remove, "flat")
        self.remove.setIcon(icons.icon("close", "dim"))
        self.remove.setIconSize(QSize(theme.px(12), theme.px(12)))
        self.sliders: tuple[SliderRow, ...] = ()

    def _connect(self, slider: SliderRow, path: str) -> None:
        slider.path = path
        slider.moved.connect(lambda value, final: self.edited.emit(SetParameter(path, value), final))
        slider.cancelled.connect(self.gesture_cancelled)

    def _line(self) -> QHBoxLayout:
        """Lay the row out in one line, and return it."""
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(theme.px(_GAP_PX))
        return line

    def _inset(self, switch: Switch) -> tuple[int, int, int, int]:
        """Return the margins of what is below a switch at the left and the button at the right."""
        gap = theme.px(_GAP_PX)
        return switch.sizeHint().width() + gap, 0, self.remove.sizeHint().width() + gap, 0


class BendRow(EditRow):
    """A bend: a switch, its name, a slider for each of its numbers."""

    def __init__(self, bend: LayerBend, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.number, self.kind = bend.number, bend.kind
        self.switch = Switch("")
        self.switch.setToolTip("Turn the bend on or off.")
        self.sliders = tuple(self._slider(name, place) for place, name in enumerate(bend.quantities))
        column = QVBoxLayout()
        column.setSpacing(0)
        for slider in self.sliders:
            column.addWidget(slider)
        line = self._line()
        aligned = Qt.AlignmentFlag.AlignVCenter if len(self.sliders) == 1 else Qt.AlignmentFlag.AlignTop
        line.addWidget(self.switch, 0, aligned)
        line.addLayout(column, 1)
        line.addWidget(self.remove, 0, aligned)
        self.switch.clicked.connect(lambda on: self.edited.emit(SetParameter(f"bend/{self.number}/on", on), True))
        self.remove.clicked.connect(lambda: self.edited.emit(RemoveBend(self.number), True))
        self.sliders[0].renamed.connect(
            lambda name: self.edited.emit(SetParameter(f"bend/{self.number}/name", name), True)
        )
        self.show_bend(bend)

    def _slider(self, name: str, place: int) -> SliderRow:
        low, high, rest, beyond, tip = _SLIDERS[name]
        is_turn = name == "turn"
        slider = SliderRow(
            name.capitalize(),
            low,
            high,
            neutral=rest,
            reset=rest,
            beyond=beyond,
            step=1.0 if is_turn else 0.01,
            snap=15.0 if is_turn else 0.1,
            decimals=0 if is_turn else 2,
            widest="−000.0",
            editable=place == 0,
            label_px=LABEL_PX,
            least_label_px=_LEAST_BEND_LABEL_PX,
            tip=tip,
        )
        slider.label.elided = Qt.TextElideMode.ElideMiddle  # "conv0" or "conv1" stays
        self._connect(slider, f"bend/{self.number}/{name}")
        return slider

    def show_bend(self, bend: LayerBend) -> None:
        """Show its values without emitting."""
        self.switch.setChecked(bend.is_on)
        self.switch.setAccessibleName(f"{bend.name} acts")
        self.remove.setToolTip(plain_tip(f"Remove {bend.name}."))
        self.remove.setAccessibleName(f"Remove {bend.name}")
        names = [bend.name, *(f"    {name}" for name in bend.quantities[1:])]
        for slider, name, quantity in zip(self.sliders, names, bend.quantities, strict=True):
            if slider.label.full_text != name:
                slider.describe(name)
                count = f"{len(bend.channels)} channels" if bend.channels else "all channels"
                slider.set_tip(f"{count} of {bend.layer}; {_SLIDERS[quantity][4]}")
            slider.setEnabled(bend.is_on)
            slider.show_amount(getattr(bend, QUANTITIES[quantity][1]))


class StyleRow(EditRow):
    """A style channel: its name above a slider, between small pictures of its ends. A press on one moves it there."""

    def __init__(self, channel: StyleChannel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key, self.reach = channel.key, channel.reach
        slider = SliderRow(
            channel.name,
            -channel.reach,
            channel.reach,
            beyond=1e4,
            step=channel.reach / 200.0,
            snap=channel.reach / 20.0,
            signed=True,
            widest="−000.00",
            editable=True,
            corner=self.remove,
            tip=f"what is added to channel {channel.channel} of the style of {channel.layer}.",
        )
        slider.label.elided = Qt.TextElideMode.ElideMiddle  # the number of the channel stays
        self.sliders = (slider,)
        self._connect(slider, channel.path)
        self.ends = tuple(self._end(channel.path, amount) for amount in (-channel.reach, channel.reach))
        line = self._line()
        centred = Qt.AlignmentFlag.AlignVCenter
        line.addWidget(self.ends[0], 0, centred)
        line.addWidget(slider, 1)
        line.addWidget(self.ends[1], 0, centred)
        layer, number = channel.key
        slider.renamed.connect(lambda name: self.edited.emit(SetParameter(f"style.name/{layer}/{number}", name), True))
        self.remove.clicked.connect(lambda: self.edited.emit(RemoveStyleChannel(layer, number), True))
        self.show_channel(channel)

    def _end(self, path: str, amount: float) -> QToolButton:
        button = QToolButton()
        theme.set_role(button, "thumb")
        button.setIconSize(QSize(theme.px(_END_PX), theme.px(_END_PX)))
        button.setFixedSize(theme.px(_END_PX + 4), theme.px(_END_PX + 4))
        button.setToolTip(f"The picture at {amount:+g}: click to set this amount.")
        button.clicked.connect(lambda: self.edited.emit(SetParameter(path, amount), True))
        return button

    def show_ends(self, pictures: Sequence[QPixmap | None]) -> None:
        """Show the pictures of the lower and the upper end; None for one that is not rendered yet."""
        for button, picture in zip(self.ends, pictures, strict=True):
            if picture is not None:
                button.setIcon(QIcon(ink.rounded_picture(picture, theme.px(_END_PX))))

    def show_channel(self, channel: StyleChannel) -> None:
        """Show its values without emitting."""
        self.remove.setToolTip(plain_tip(f"Remove {channel.name}."))
        self.remove.setAccessibleName(f"Remove {channel.name}")
        for button, end in zip(self.ends, ("minimum", "maximum"), strict=True):
            button.setAccessibleName(f"{channel.name} at its {end}")
        slider = self.sliders[0]
        if slider.label.full_text != channel.name:
            slider.describe(channel.name)
        slider.show_amount(channel.amount)
