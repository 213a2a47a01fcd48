"""Transform settings: x, y, angle and scale, for networks with an input transform (StyleGAN3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from explorer_app.session.edits import set_transform
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import MAX_SCALE, MIN_SCALE, Session
from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.slider_row import RowLabel
from explorer_app.window.look import theme
from gpu_backend import Transform

if TYPE_CHECKING:
    from gpu_backend import ModelFacts


_MAPPED = {"x": (-0.5, 0.5), "y": (-0.5, 0.5), "degrees": (-180.0, 180.0), "scale": (0.5, 2.0)}
"""Range that a learned controller gets: that of the fields is far too wide for a knob."""


class TransformSection(QWidget):
    """The transform of the latent panel; hidden unless the network has one.

    Signals
    -------
    edited(object, bool)
        `SetParameter` or `set_transform`; True for the last one of a gesture.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("transform",)

    edited = Signal(object, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.place_x = self._field("x", -99.99, 99.99, 0.0, "+0.00", "Shift to the right, in widths of the picture")
        self.place_y = self._field("y", -99.99, 99.99, 0.0, "+0.00", "Shift downwards, in widths of the picture")
        self.angle = self._field("angle", -180.0, 180.0, 0.0, "+180.0", "Rotation in degrees, counterclockwise")
        self.scale = self._field("scale", MIN_SCALE, MAX_SCALE, 1.0, "10.00", "Scale factor")
        self.reset = QPushButton("Reset")
        self.reset.setAccessibleName("Reset transform")
        self.reset.setToolTip("Reset the transform: no shift, no rotation, scale 1.")
        self.reset.clicked.connect(lambda _on: self.edited.emit(set_transform(Transform()), True))
        for field, part in ((self.place_x, "x"), (self.place_y, "y"), (self.angle, "degrees"), (self.scale, "scale")):
            field.path, field.mapped_to = f"transform.{part}", _MAPPED[part]
            field.entered.connect(
                lambda value, final, part=part: self.edited.emit(SetParameter(f"transform.{part}", value), final)
            )
        self._build()
        self.show_session(Session())
        self.show_model(None)

    @staticmethod
    def _field(name: str, low: float, high: float, reset: float, widest: str, what: str) -> NumberField:
        is_angle, is_scale = name == "angle", name == "scale"
        field = NumberField(
            low,
            high,
            decimals=1 if is_angle else 3 if is_scale else 2,
            step=1.0 if is_angle else 0.05 if is_scale else 0.01,
            signed=not is_scale,
            reset=reset,
            widest=widest,
        )
        field.setAccessibleName(f"Transform {name}")
        ends = f"{field.textFromValue(low)} to {field.textFromValue(high)}"
        field.setToolTip(f"{what}, {ends}; a double-click sets {field.textFromValue(reset)}.")
        field.setFixedWidth(field.sizeHint().width())
        return field

    def _build(self) -> None:
        name = RowLabel("Transform")
        name.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        theme.set_role(name, "dim")
        first, second = QHBoxLayout(), QHBoxLayout()
        first.addWidget(name)
        first.addStretch(1)
        second.addWidget(self.reset)
        second.addStretch(1)
        for line, words, field in (
            (first, "x", self.place_x),
            (first, "y", self.place_y),
            (second, "angle", self.angle),
            (second, "scale", self.scale),
        ):
            label = QLabel(words)
            theme.set_role(label, "dim")
            label.setBuddy(field)
            line.addWidget(label)
            line.addWidget(field)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        for line in (first, second):
            line.setSpacing(6)
            layout.addLayout(line)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        for before, after in ((self.place_x, self.place_y), (self.place_y, self.reset), (self.reset, self.angle)):
            QWidget.setTabOrder(before, after)

    def show_model(self, facts: ModelFacts | None) -> None:
        """Show the section if the network has an input transform."""
        self.setVisible(facts is not None and facts.has_transform)

    def show_session(self, session: Session) -> None:
        """Show the session's transform."""
        transform = session.transform
        self.place_x.show_number(transform.x)
        self.place_y.show_number(transform.y)
        self.angle.show_number(transform.degrees)
        self.scale.show_number(transform.scale)
        self.reset.setEnabled(transform != Transform())
