"""The latent panel: seed plane, seed and fractions, class, drift, truncation, transform, noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtGui import QImage, QResizeEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpacerItem,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.edits import PLACE, Edit, GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.number_field import NumberField, PanelNumberField
from explorer_app.window.controls.parameter_menu import open_parameter_menu
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.slider_row import SliderRow, below
from explorer_app.window.docks.session_views import SessionViews
from explorer_app.window.latent.class_picker import NAMES_TIP, ClassPicker, classes_label
from explorer_app.window.latent.noise_section import NoiseSection
from explorer_app.window.latent.seed_plane import SeedPlane
from explorer_app.window.latent.transform_section import TransformSection
from explorer_app.window.look import theme
from gpu_backend import SEED_COUNT, plane_seed

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

START_PSI = 0.7
"""Reset value of truncation: that of a new session."""

_NEAR = 10
"""Largest difference of seed numbers that moves on the plane instead of jumping."""


_CLASS_WIDTH = 100
"""Maximum width of a class name on its button, in px."""

_LOW = 2
"""Smallest bottom margin in px, when the dock is too low for the full one."""


class LatentPanel(QWidget):
    """The latent panel.

    Signals
    -------
    edited(object, bool)
        `SetParameter`, `SetParameters` or `GoToSeed`; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    random_requested()
        The button for a random seed was pressed.
    drift_changed(float)
        Drift speed in seeds per second; 0 stops it. `show_drift` shows the resulting speed.
    thumbnail_wanted(object, object)
        From the seed plane and the class list: a key and the `Session` to render; the result arrives in
        `show_thumbnail`.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = (
        "model",
        "position",
        "pinned_blend",
        "classes",
        "truncation",
        "noise",
        "transform",
    )

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    random_requested = Signal()
    drift_changed = Signal(float)
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Latent")
        self._session = Session()
        self._num_ws = 14
        self._classes = 0
        self._class_names: tuple[str, ...] = ()
        self._class_tip = ""
        self.plane = SeedPlane()
        self.seed = PanelNumberField(0, SEED_COUNT - 1, decimals=0, step=1, widest=str(SEED_COUNT - 1))
        self.seed.setAccessibleName("Seed")
        self.seed.setToolTip("Seed, 0 to 4294967295: type one or step with the arrow keys.")
        self.plane_x = self._fraction("x")
        self.plane_y = self._fraction("y")
        self.snap = self._button("Snap", "Go to the nearest seed.", self._snap)
        self.random = self._button("Random", "Go to a random seed (R).", self.random_requested.emit)
        self.class_button = self._button("Class ▾", "", self._pick_class)
        self.class_button.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.class_button.customContextMenuRequested.connect(self._open_class_menu)
        self.hint = HintLabel("drag to walk")
        self._labels: list[QLabel] = [self.hint]
        self.picker = ClassPicker(self)
        self.drift = SliderRow("Drift", -1.0, 1.0, tip="speed of the automatic walk, in seeds per second; 0 stops it.")
        self.psi = SliderRow(
            "Truncation ψ",
            -1.0,
            2.0,
            reset=START_PSI,
            marks=(START_PSI, 1.0),
            tip="0 is the average picture, 1 the full variety; marks at 0.70 and 1.00.",
        )
        self.cutoff = SliderRow(
            "Cutoff", 0, 14, reset=14, step=1, snap=1, decimals=0, tip="rows that truncation acts on."
        )
        self.psi.path, self.cutoff.path = "truncation.psi", "truncation.cutoff"
        self.seed.path = self.plane_x.path = self.plane_y.path = "position"
        self.transform = TransformSection()
        self.noise = NoiseSection()
        self._sections = SessionViews((self.plane, self.transform, self.noise, self.picker))
        self._shown: Session | None = None
        self._build()
        self._connect()
        self.show_model(None, None)
        self.show_session(self._session)

    # --- building ---------------------------------------------------------------------------------------------------

    @staticmethod
    def _fraction(axis: str) -> NumberField:
        field = PanelNumberField(-99.99, 99.99, signed=True, reset=0.0, widest="+0.00")
        field.setAccessibleName(f"Plane {axis}")
        field.setToolTip(f"Offset from the seed along {axis}, usually −0.5 to +0.5; a double-click sets 0.00.")
        return field

    @staticmethod
    def _button(words: str, tip: str, action: Callable[[], object]) -> QPushButton:
        button = QPushButton(words)
        button.setToolTip(tip)
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda _on: action())
        return button

    def _build(self) -> None:
        seeds = QHBoxLayout()
        seeds.setSpacing(5)
        for words, field in (("Seed", self.seed), ("x", self.plane_x), ("y", self.plane_y)):
            label = QLabel(words)
            theme.set_role(label, "dim")
            label.setBuddy(field)
            self._labels.append(label)
            seeds.addWidget(label)
            field.setFixedWidth(field.sizeHint().width())
            seeds.addWidget(field)
        seeds.addStretch(1)
        buttons = QHBoxLayout()
        buttons.setSpacing(5)
        for button in (self.snap, self.random, self.class_button):
            buttons.addWidget(button)
        buttons.addWidget(self.hint, 1)
        sliders = QVBoxLayout()
        sliders.setSpacing(0)
        for row in (self.drift, self.psi, self.cutoff):
            sliders.addWidget(row)
        layout = QVBoxLayout(self)
        margin = theme.MARGIN
        layout.setContentsMargins(margin, margin, margin, _LOW)
        self._whole = layout
        layout.setSpacing(6)
        layout.addWidget(self.plane)
        layout.addLayout(seeds)
        layout.addLayout(buttons)
        layout.addLayout(sliders)
        layout.addWidget(self.transform)
        layout.addWidget(self.noise)
        # A slightly too low dock first shrinks the bottom margin before it scrolls.
        layout.addSpacerItem(QSpacerItem(0, margin - _LOW, QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Preferred))
        layout.addStretch(1)

    def _connect(self) -> None:
        self.plane.edited.connect(self.edited)
        self.plane.gesture_cancelled.connect(self.gesture_cancelled)
        self.plane.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.picker.thumbnail_wanted.connect(self.thumbnail_wanted)
        self.transform.edited.connect(self.edited)
        self.noise.edited.connect(self.edited)
        self.noise.gesture_cancelled.connect(self.gesture_cancelled)
        self.picker.edited.connect(self.edited)
        self.picker.gesture_cancelled.connect(self.gesture_cancelled)
        self.seed.entered.connect(self._go_to_seed)
        self.plane_x.entered.connect(lambda x, final: self._move(x, None, final))
        self.plane_y.entered.connect(lambda y, final: self._move(None, y, final))
        self.drift.moved.connect(lambda speed, _: self.drift_changed.emit(speed))
        self.drift.cancelled.connect(lambda: self.drift_changed.emit(self.drift.slider.amount))
        self.psi.moved.connect(lambda psi, final: self._truncate(psi, None, final))
        self.cutoff.moved.connect(lambda rows, final: self._truncate(None, int(rows), final))
        for row in (self.psi, self.cutoff):
            row.cancelled.connect(self.gesture_cancelled)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802
        """Place the dock's scroll bar in the margin, so that nothing moves when it appears."""
        super().resizeEvent(event)
        area = self._area()
        # The bar still counts as visible during the layout that removes it.
        taken = max(0, area.width() - self.width()) if area is not None else 0
        margin = theme.MARGIN
        self._whole.setContentsMargins(margin, margin, max(margin - taken, 0), _LOW)

    def _area(self) -> QScrollArea | None:
        viewport = self.parentWidget()
        area = viewport.parentWidget() if viewport is not None else None
        return area if isinstance(area, QScrollArea) else None

    # --- content ----------------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Set up a model's rows, classes and noise layers; disable the panel without a model."""
        self.plane.show_model(facts, directions)
        self.transform.show_model(facts)
        self.noise.show_model(facts, directions)
        self.picker.show_model(facts, directions)
        fields = (self.seed, self.plane_x, self.plane_y, self.snap, self.random, self.drift, self.psi, self.cutoff)
        for widget in (*fields, *self._labels):
            widget.setEnabled(facts is not None)
        self._num_ws = facts.num_ws if facts is not None else 14
        self._classes = facts.c_dim if facts is not None else 0
        self._class_names = facts.class_names if facts is not None else ()
        self.class_button.setEnabled(self._classes > 0)
        self._class_tip = (
            f"Choose one of {self._classes} classes, or weight several; "
            + (f"their names are from {facts.class_file}." if facts.class_names else f"{NAMES_TIP}, gives them names.")
            if facts is not None and facts.c_dim
            else "This network has no classes."
        )
        usual = facts.usual_cutoff if facts is not None else None
        self.cutoff.slider.set_ends(0, self._num_ws, reset=self._num_ws if usual is None else usual)
        self.cutoff.field.setMaximum(self._num_ws)
        self.cutoff.set_tip("rows that truncation acts on.")
        self._shown = None
        self._sections.refresh(self._session)
        self.show_session(self._session)

    def show_session(self, session: Session) -> None:
        """Show a session without emitting."""
        before, self._session, self._shown = self._shown, session, session
        self._sections.show(session)
        x, y = session.position.x, session.position.y
        self.seed.show_number(plane_seed(x, y))
        self.plane_x.show_number(round(x - math.floor(x + 0.5), 2))
        self.plane_y.show_number(round(y - math.floor(y + 0.5), 2))
        cutoff = session.truncation.cutoff
        self.psi.show_amount(session.truncation.psi)
        self.cutoff.show_amount(self._num_ws if cutoff is None else min(cutoff, self._num_ws))
        if before is None or before.classes != session.classes:
            self._show_classes(session)
        self.hint.show_text(*(("pinned latent", "pinned") if session.pinned_blend else ("drag to walk",)))

    def _show_classes(self, session: Session) -> None:
        words = classes_label(session.classes, self._class_names)
        cut = self.class_button.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, theme.px(_CLASS_WIDTH))
        self.class_button.setText(f"{cut.replace('&', '&&')} ▾")
        is_named = len(session.classes) == 1 and bool(self._class_names)
        self.class_button.setToolTip(plain_tip(f"{words}. {self._class_tip}") if is_named else self._class_tip)

    def show_drift(self, speed: float) -> None:
        """Show the drift speed in seeds per second."""
        self.drift.show_amount(speed)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Pass a picture to the seed plane and the class list."""
        self.plane.show_thumbnail(key, image)
        self.picker.show_thumbnail(key, image)

    # --- edits ------------------------------------------------------------------------------------------------------

    def _edit(self, edit: Edit, final: bool) -> None:
        self.edited.emit(edit, final)

    def _snap(self) -> None:
        x, y = self._session.position.x, self._session.position.y
        self._edit(SetParameter(PLACE, Position(float(math.floor(x + 0.5)), float(math.floor(y + 0.5))), "Snap"), True)

    def _go_to_seed(self, number: float, final: bool) -> None:
        seed = int(number)
        x, y = (math.floor(part + 0.5) for part in (self._session.position.x, self._session.position.y))
        away = seed - plane_seed(float(x), float(y))
        if abs(away) <= _NEAR:
            self._edit(SetParameter(PLACE, Position(float(x + away), float(y)), "Go to seed"), final)
        else:
            self._edit(GoToSeed(seed), final)

    def _move(self, x: float | None, y: float | None, final: bool) -> None:
        here = self._session.position
        self._edit(
            SetParameter(
                PLACE,
                Position(
                    here.x if x is None else math.floor(here.x + 0.5) + x,
                    here.y if y is None else math.floor(here.y + 0.5) + y,
                ),
            ),
            final,
        )

    def _truncate(self, psi: float | None, rows: int | None, final: bool) -> None:
        if psi is not None:
            self._edit(SetParameter("truncation.psi", psi), final)
        if rows is not None:
            self._edit(SetParameter("truncation.cutoff", None if rows >= self._num_ws else rows), final)

    @Slot(QPoint)
    def _open_class_menu(self, place: QPoint) -> None:
        """Offer to animate the class, and to learn a controller that steps through all of them."""
        open_parameter_menu(self, "classes", self.class_button.mapToGlobal(place), 0.0, self._classes - 1.0)

    def _pick_class(self) -> None:
        self.picker.set_place(self._session)
        self.picker.open_at(below(self.class_button))
