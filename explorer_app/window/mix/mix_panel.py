"""The mix panel: blends sources into the current latent, row by row."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPixmap, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer_app.session.edits import AddSources, RemoveSource, set_source, set_strengths
from explorer_app.session.mix_presets import PRESETS, base_share, preset_strengths
from explorer_app.session.parameters import SetParameter
from explorer_app.session.row_groups import row_groups
from explorer_app.session.session import Session, Source
from explorer_app.window.controls.ask_popup import AskPopup
from explorer_app.window.controls.hint_label import HintLabel
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.controls.parameter_menu import add_parameter_entries
from explorer_app.window.controls.slider_row import below
from explorer_app.window.look import icons, theme
from explorer_app.window.mix.grid_head import GridHead
from explorer_app.window.mix.mix_cells import GridShape
from explorer_app.window.mix.strength_grid import StrengthGrid, Strengths
from gpu_backend import Latent, Point, Recipe

if TYPE_CHECKING:
    from gpu_backend import Directions, ModelFacts

_REQUEST_MS = 250
_KEPT_PICTURES = 128
_PEEK = 12
_RANDOM_SEEDS = 100_000
"""Upper bound of suggested seeds, so that they stay short."""

_ONLY = (("coarse", "Only coarse"), ("middle", "Only middle"), ("fine", "Only fine"), ("all", "All"), ("none", "None"))


class MixPanel(QWidget):
    """The mix panel. It scrolls its sources by itself.

    Signals
    -------
    edited(object, bool)
        `AddSources`, `RemoveSource`, `SetParameter` (a name, a preset) or `SetParameters` (painted: a drag may
        cross sources); True once a gesture.
    gesture_cancelled()
        Escape ended a drag.
    mix_in_requested()
        The button that adds the current latent as a source was pressed.
    thumbnail_wanted(object, object)
        A key and the `Session` to render, for the base and each source; the result arrives in `show_thumbnail`.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = (
        "model",
        "position",
        "pinned_blend",
        "classes",
        "truncation",
        "noise",
        "mix",
        "transform",
    )

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    mix_in_requested = Signal()
    thumbnail_wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Mix")
        self._session = Session()
        self._is_shown = False
        """Whether the grid shows the session's sources with this model's rows."""
        self._resolutions: tuple[int, ...] = ()
        self._pictures: OrderedDict[object, QPixmap] = OrderedDict()
        self.head = GridHead()
        self.grid = StrengthGrid()
        self.ask = AskPopup(self)
        self.presets = QToolButton()
        theme.set_role(self.presets, "flat")
        self.presets.setText("Presets ▾")
        self.presets.setToolTip("Apply preset strengths to the last changed source.")
        self.add = QPushButton("+ Source")
        self.add.setToolTip("Add another seed to the mix.")
        self.mix_in = QPushButton("Mix in current")
        self.mix_in.setToolTip("Add the current latent as a source (A).")
        self.hint = HintLabel("drag to paint")
        # The narrowest dock shows the strength, too, in every font.
        self.hint.setMinimumWidth(self.hint.fontMetrics().horizontalAdvance("0.00") + theme.px(2))
        self.empty = QLabel()
        self.empty.setWordWrap(True)
        self.empty.setMargin(6)
        self.empty.setIndent(0)
        theme.set_role(self.empty, "dim")
        self._request_timer = QTimer(self, singleShot=True, interval=_REQUEST_MS)
        self._request_timer.timeout.connect(self._request_pictures)
        self._build()
        self._connect()
        self.show_model(None, None)

    def _build(self) -> None:
        margin = theme.MARGIN
        content = QWidget()
        inner = QVBoxLayout(content)
        inner.setContentsMargins(margin, 0, margin, 0)
        inner.setSpacing(0)
        inner.addWidget(self.grid)
        inner.addWidget(self.empty)
        inner.addStretch(1)
        self.area = QScrollArea()
        self.area.setWidget(content)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.area.setMinimumHeight(GridShape(1, 1).pitch_y)
        self.area.verticalScrollBar().rangeChanged.connect(self._keep_width)
        self.area.verticalScrollBar().setSingleStep(-(-GridShape(1, 1).pitch_y // QApplication.wheelScrollLines()))
        self._content = inner
        head = QHBoxLayout()
        head.setContentsMargins(margin, 6, margin, 0)
        head.addWidget(self.head)
        self._above = head
        buttons = QHBoxLayout()
        buttons.setContentsMargins(margin, 6, margin, margin)
        buttons.setSpacing(6)
        for button in (self.add, self.mix_in):
            button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            buttons.addWidget(button)
        buttons.addWidget(self.hint, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addWidget(self.area, 1)
        layout.addLayout(buttons)

    def _connect(self) -> None:
        self.grid.painted.connect(self._painted)
        self.grid.gesture_cancelled.connect(self._cancelled)
        self.grid.menu_requested.connect(self._open_menu)
        self.grid.pointed_at.connect(self._describe_cell)
        self.grid.current_moved.connect(self._reveal)
        self.add.clicked.connect(self._ask_source)
        self.mix_in.clicked.connect(self.mix_in_requested)
        self.presets.clicked.connect(self._open_presets)

    def header_widgets(self) -> Sequence[QWidget]:
        """Return the widgets for the dock's header."""
        return (self.presets,)

    def minimumSizeHint(self) -> QSize:  # noqa: N802
        """Return the size with one visible source; the others scroll."""
        return QSize(theme.px(250), self._height(1))

    def sizeHint(self) -> QSize:  # noqa: N802
        """Return the size with two visible sources and part of a third, which shows that the list scrolls."""
        return QSize(theme.px(320), self._height(2) + theme.px(_PEEK))

    def wheelEvent(self, event: QWheelEvent) -> None:  # noqa: N802
        """Scroll the sources when the wheel turns over the labels or the base."""
        bar = self.area.verticalScrollBar()
        if bar.maximum() > 0:
            bar.setValue(bar.value() - round(event.angleDelta().y() / 120 * GridShape(1, 1).pitch_y))
        event.setAccepted(bar.maximum() > 0)

    def _reveal(self, source: int) -> None:
        """Scroll to a source."""
        pitch = GridShape(1, 1).pitch_y
        bar = self.area.verticalScrollBar()
        top = source * pitch
        bar.setValue(min(max(bar.value(), top + pitch - self.area.viewport().height()), top))

    def _keep_width(self, _low: int, high: int) -> None:
        """Place the scroll bar in the margin, so that the cells stay aligned with their labels."""
        bar = self.area.verticalScrollBar().sizeHint().width() if high > 0 else 0
        self._content.setContentsMargins(theme.MARGIN, 0, max(theme.MARGIN - bar, 0), 0)
        self._above.setContentsMargins(theme.MARGIN, 6, max(theme.MARGIN, bar), 0)

    def _height(self, lines: int) -> int:
        pitch = GridShape(1, 1).pitch_y
        return 6 + self.head.sizeHint().height() + lines * pitch + 6 + theme.px(theme.ROW) + theme.MARGIN

    # --- content ----------------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Set up the rows of a model; disable the panel without one."""
        self._resolutions = facts.row_resolutions if facts is not None else ()
        self.head.show_rows(self._resolutions)
        self.grid.show_rows(self._resolutions)
        self.head.setVisible(facts is not None)
        for widget in (self.add, self.mix_in, self.hint):
            widget.setEnabled(facts is not None)
        self.empty.setText(
            "Open a model to mix its latents" if facts is None else "Add a source, then paint the rows it gives"
        )
        self._is_shown = False
        self.show_session(self._session)

    def show_session(self, session: Session) -> None:
        """Show a session without emitting; scroll to a new source."""
        old, self._session = self._session.mix, session
        self._request_timer.start()
        if session.mix is old and self._is_shown:
            return  # during a drag: the base's picture updates when it ends
        self._is_shown = True
        sources = session.mix if self._resolutions else ()
        new = -1
        if len(sources) == len(old) + 1:
            new = next((index for index, source in enumerate(old) if source != sources[index]), len(old))
        self.grid.show_sources([source.label for source in sources], tuple(source.strengths for source in sources))
        self.grid.setVisible(bool(sources))
        self.empty.setVisible(not sources)
        self.presets.setEnabled(bool(sources))
        self._show_base()
        self._show_pictures()
        if new >= 0:
            self._content.activate()
            QApplication.sendEvent(self.area, QEvent(QEvent.Type.LayoutRequest))  # updates the scroll range now
            self._reveal(new)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture; ignore other widgets' keys."""
        if not (isinstance(key, tuple) and len(key) == 2 and key[0] == "mix"):
            return
        self._pictures[key] = QPixmap.fromImage(image)
        while len(self._pictures) > _KEPT_PICTURES:
            self._pictures.popitem(last=False)
        self._show_pictures()

    def _base_key(self) -> tuple[str, Session]:
        return "mix", replace(self._session, mix=(), sliders=())

    def _source_key(self, source: Source) -> tuple[str, Session]:
        """Return the key and session of a source alone: its latent with the truncation it gets in the mix."""
        blend = ((Recipe(source.latent, self._session.truncation), 1.0),)
        return "mix", Session(model=self._session.model, pinned_blend=blend, noise=self._session.noise)

    def _show_base(self) -> None:
        self.head.show_base(base_share(self.grid.strengths, len(self._resolutions)))

    def _show_pictures(self) -> None:
        base = self._pictures.get(self._base_key())
        if base is not None or not self._resolutions:
            self.head.show_picture(base)
        self.grid.show_pictures([self._pictures.get(self._source_key(source)) for source in self._session.mix])

    def _request_pictures(self) -> None:
        if not self._resolutions or not self.isVisible():
            return
        self._show_pictures()
        keys = [self._base_key(), *(self._source_key(source) for source in self._session.mix)]
        for key in reversed(keys):  # the last request is rendered first
            if key not in self._pictures:
                self.thumbnail_wanted.emit(key, key[1])

    def _describe_cell(self, source: int, row: int) -> None:
        """Describe the cell under the pointer in the corner label; its space is reserved, so nothing moves."""
        if source < 0 or source >= len(self._session.mix):
            self.hint.show_text("drag to paint")
        elif row < 0:
            self.hint.show_name(self._session.mix[source].label)
        else:
            strength = f"{self.grid.strengths[source][row]:.2f}"
            self.hint.show_text(f"row {row} · {strength}", strength)

    # --- edits ------------------------------------------------------------------------------------------------------

    def _painted(self, strengths: Strengths, final: bool) -> None:
        self._show_base()
        self.edited.emit(set_strengths(strengths), final)

    def _cancelled(self) -> None:
        self._show_base()
        self.gesture_cancelled.emit()

    def _ask_source(self) -> None:
        seed = random.randrange(_RANDOM_SEEDS)
        self.ask.ask_seed("Seed of the new source", seed, "Add", below(self.add), self._add_source)

    def _add_source(self, seed: int) -> None:
        source = Source(
            latent=Latent(point=Point(((seed, 1.0),)), classes=self._session.classes),
            strengths=preset_strengths(row_groups(self._resolutions)[-1].name, self._resolutions),
            label=f"seed {seed}",
        )
        self.edited.emit(AddSources((source,)), True)

    def _set_preset(self, index: int, name: str) -> None:
        strengths = preset_strengths(name, self._resolutions)
        if index < len(self._session.mix) and self._session.mix[index].strengths != strengths:
            self.edited.emit(SetParameter(f"mix/{index}/strengths", strengths), True)

    def _new_menu(self, title: str) -> QMenu:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(menu_text(title)).setEnabled(False)
        menu.addSeparator()
        return menu

    def _open_presets(self) -> None:
        index = self.grid.current[0]
        if index < len(self._session.mix):
            menu = self._new_menu(self._title(index))
            for name, words in PRESETS:
                menu.addAction(words, partial(self._set_preset, index, name))
            menu.popup(below(self.presets))

    def _title(self, index: int) -> str:
        return f"{index + 1} · {self._session.mix[index].label}"

    def _open_menu(self, index: int, row: int, where: QPoint) -> None:
        menu = self._new_menu(self._title(index))
        known = {group.name for group in row_groups(self._resolutions)} | {"all", "none"}
        for name, words in _ONLY:
            action = menu.addAction(words, partial(self._set_preset, index, name))
            action.setEnabled(name in known)
        menu.addSeparator()
        add_parameter_entries(menu.addMenu("Strength of all rows"), self, f"mix/{index}/strength", 0.0, 1.0)
        if row >= 0:
            own = menu.addMenu(f"Strength of row {row + 1}")
            add_parameter_entries(own, self, f"mix/{index}/strength/{row}", 0.0, 1.0)
        menu.addSeparator()
        menu.addAction(icons.icon("random", "dim"), "Another seed…", lambda: self._ask_seed(index, where))
        menu.addAction(icons.icon("rename", "dim"), "Rename…", lambda: self._ask_name(index, where))
        menu.addAction(icons.icon("remove", "dim"), "Remove", lambda: self.edited.emit(RemoveSource(index), True))
        menu.popup(where)

    def _ask_seed(self, index: int, where: QPoint) -> None:
        if index >= len(self._session.mix):
            return  # another session came while the menu was open
        point = self._session.mix[index].latent.point
        seeds = point.seeds if isinstance(point, Point) else ()
        seed = seeds[0][0] if len(seeds) == 1 else random.randrange(_RANDOM_SEEDS)

        def take(seed: int) -> None:
            latent = Latent(point=Point(((seed, 1.0),)), classes=self._session.classes)
            self.edited.emit(set_source(index, latent, f"seed {seed}"), True)

        self.ask.ask_seed("Another seed for this source", seed, "Set", where, take)

    def _ask_name(self, index: int, where: QPoint) -> None:
        if index >= len(self._session.mix):
            return
        old = self._session.mix[index]

        def take(name: str) -> None:
            if name and name != old.label:
                self.edited.emit(SetParameter(f"mix/{index}/name", name), True)

        self.ask.ask_text("Name of this source", old.label, "Rename", where, take)
