"""Shared by panel tests: a model's facts, directions, recorded edits, and mouse events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from explorer_app.session.session import Session
from explorer_app.window.latent.class_picker import ClassPicker
from gpu_backend import LayerFacts, ModelFacts, RowRange

NO_KEYS = Qt.KeyboardModifier.NoModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
CTRL = Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton


def row_resolutions(resolution: int) -> tuple[int, ...]:
    """Return the resolutions of a StyleGAN2's rows: one for 4 px, two for each further one, one more at last."""
    rows, px = [4], 8
    while px <= resolution:
        rows += [px, px]
        px *= 2
    return (*rows, resolution)


def model_facts(resolution: int = 256, *, classes: int = 0, w_dim: int = 512, has_noise: bool = True) -> ModelFacts:
    """Return the facts of a StyleGAN2, without a file."""
    rows = row_resolutions(resolution)
    layers = tuple(f"b{px}.conv{number}" for px in sorted(set(rows)) for number in (0, 1))[1:]
    return ModelFacts(
        path="landscapes.safetensors",
        name="Landscapes",
        nbytes=1,
        model_id="ab" * 32,
        container="safetensors",
        family="StyleGAN2",
        flavour="ADA",
        architecture="skip",
        resolution=resolution,
        img_channels=3,
        z_dim=w_dim,
        w_dim=w_dim,
        num_ws=len(rows),
        c_dim=classes,
        mapping_layers=8,
        parameters=1,
        conv_clamp=None,
        fp16_layers=(),
        noise_layers=layers if has_noise else (),
        layers=tuple(LayerFacts(name, 16384 // max(int(name[1:-6]), 32), int(name[1:-6])) for name in layers),
        draft_resolutions=(),
        row_resolutions=rows,
        names_requested=(),
    )


@dataclass(frozen=True)
class FewDirections:
    """The part of the backend's Directions that panels use."""

    names: tuple[str, ...]
    reach: tuple[float, ...]
    rows: tuple[RowRange, ...]
    centre: tuple[float, ...]


def model_directions(
    count: int = 30, reach: float = 10.0, named: Sequence[tuple[str, float, RowRange, float]] = ()
) -> Any:
    """Return named directions (name, reach, rows, centre), then `count` more of one reach."""
    names, ends, rows, middles = zip(*named, strict=True) if named else ((), (), (), ())
    return FewDirections(
        names=(*names, *(f"sefa/{index}" for index in range(count))),
        reach=(*ends, *(reach,) * count),
        rows=(*rows, *(RowRange(),) * count),
        centre=(*middles, *(0.0,) * count),
    )


@dataclass
class Edits:
    """Listens to a panel as the controller does: applies edits, shows the session back, counts gestures."""

    panel: Any
    session: Session = field(default_factory=Session)
    all: list[tuple[Any, bool]] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    cancelled: int = 0
    before: Session | None = None

    def __post_init__(self) -> None:
        self.panel.edited.connect(self._edited)
        self.panel.gesture_cancelled.connect(self._cancelled)
        self.panel.show_session(self.session)

    def _edited(self, edit: Any, final: bool) -> None:
        self.before = self.before or self.session
        self.all.append((edit, final))
        self.session = edit.apply(self.session)
        if final:
            self.steps.append(edit)
            self.before = None
        self.panel.show_session(self.session)

    def _cancelled(self) -> None:
        self.cancelled += 1
        self.session, self.before = self.before or self.session, None
        self.panel.show_session(self.session)

    def show(self, session: Session) -> None:
        """Show another session, as undo does."""
        self.session = session
        self.panel.show_session(session)


def mouse(
    widget: QWidget,
    kind: QEvent.Type,
    at: QPointF | QPoint,
    button: Qt.MouseButton = LEFT,
    keys: Qt.KeyboardModifier = NO_KEYS,
    held: Qt.MouseButton | None = None,
) -> None:
    """Send one mouse event."""
    place = QPointF(at)
    is_move = kind == QEvent.Type.MouseMove
    if held is None:
        held = Qt.MouseButton.NoButton if kind == QEvent.Type.MouseButtonRelease else button
    event = QMouseEvent(
        kind,
        place,
        QPointF(widget.mapToGlobal(place)),
        Qt.MouseButton.NoButton if is_move else button,
        held,
        keys,
    )
    QApplication.sendEvent(widget, event)


def press(widget: QWidget, at: QPointF | QPoint, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    """Press the left button; the widget gets the focus that a click gives."""
    if widget.focusPolicy() & Qt.FocusPolicy.ClickFocus:
        widget.setFocus(Qt.FocusReason.MouseFocusReason)
    mouse(widget, QEvent.Type.MouseButtonPress, at, keys=keys)


def move(widget: QWidget, to: QPointF | QPoint, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    """Move with the left button held."""
    mouse(widget, QEvent.Type.MouseMove, to, keys=keys, held=LEFT)


def release(widget: QWidget, at: QPointF | QPoint, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    """Release the left button."""
    mouse(widget, QEvent.Type.MouseButtonRelease, at, keys=keys)


def drag(widget: QWidget, start: QPointF, end: QPointF, keys: Qt.KeyboardModifier = NO_KEYS, steps: int = 5) -> None:
    """Press, move in a few steps, release."""
    press(widget, start, keys)
    for step in range(1, steps + 1):
        move(widget, start + (end - start) * (step / steps), keys)
    release(widget, end, keys)


def lay_out(widget: QWidget | None) -> None:
    """Apply the layout of a widget now instead of at the next event."""
    layout = None if widget is None else widget.layout()
    assert layout is not None
    layout.activate()


def text_of(widget: QWidget) -> str:
    """Return the text of a button."""
    assert isinstance(widget, QAbstractButton)
    return widget.text()


def double_click(widget: QWidget, at: QPointF | QPoint) -> None:
    """Press, release, press again and release, as a double-click arrives."""
    press(widget, at)
    release(widget, at)
    mouse(widget, QEvent.Type.MouseButtonDblClick, at)
    release(widget, at)


def click_row(picker: ClassPicker, row: int, keys: Qt.KeyboardModifier = NO_KEYS) -> None:
    """Scroll to a row of the list of classes, and click it."""
    index = picker.model.index(row)
    picker.list.scrollTo(index)
    place = QPointF(picker.list.visualRect(index).center())
    press(picker.list.viewport(), place, keys)
    release(picker.list.viewport(), place, keys)


def wheel(widget: QWidget, at: QPointF | QPoint, notches: int, keys: Qt.KeyboardModifier = NO_KEYS) -> bool:
    """Turn the wheel; return whether the widget took it."""
    place = QPointF(at)
    event = QWheelEvent(
        place,
        QPointF(widget.mapToGlobal(place)),
        QPoint(0, 0),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    event.ignore()
    QApplication.sendEvent(widget, event)
    return event.isAccepted()
