"""The layers panel: the model's layers, display settings, statistics and spectrum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

import gpu_backend
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.session.taps import first_tap, fit_tap
from explorer_app.window.layers.layer_text import channels_text
from explorer_app.window.layers.spectrum_scale import picture_values
from explorer_app.window.look import fonts, theme
from gpu_backend import Frame, Tap

if TYPE_CHECKING:
    from explorer_app.window.layers.layer_statistics_view import LayerStatisticsView
    from explorer_app.window.layers.layer_table import LayerTable
    from explorer_app.window.layers.spectrum_legend import SpectrumLegend
    from explorer_app.window.layers.spectrum_view import SpectrumView
    from explorer_app.window.layers.tap_controls import TapControls
    from gpu_backend import Directions, ModelFacts

_INTERVAL_MS = 250
"""Shortest update interval of the statistics, so that they stay readable."""

_QUICK_PX = 256
"""Layers above this size get a spectrum only when the picture rests, because its FFT takes long."""


_PARTS = ("table", "empty", "controls", "spectrum", "figures", "legend", "about")
"""Names of the widgets that are created on first access."""


class LayersPanel(QWidget):
    """The layers panel. Its widgets are created when it is first shown, and a hidden panel computes nothing.

    Signals
    -------
    edited(object, bool)
        `SetParameter` for the layer; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    """

    SESSION_PARTS: ClassVar[tuple[str, ...]] = ("tap",)

    edited = Signal(object, bool)
    gesture_cancelled = Signal()

    table: LayerTable
    empty: QLabel
    controls: TapControls
    spectrum: SpectrumView
    figures: LayerStatisticsView
    legend: SpectrumLegend
    about: QLabel

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("layers-panel")
        self.setAccessibleName("Layers")
        self._facts: ModelFacts | None = None
        self._session = Session()
        self._last: Tap | None = None
        """The last tap, maybe of another model: settings for the next layer, and the layer that `toggle` returns to."""
        self._is_on_show = True
        self._frame: Frame | None = None
        self._drawn: Frame | None = None
        self._figures_timer = QTimer(self, singleShot=True, interval=_INTERVAL_MS)
        self._figures_timer.timeout.connect(self._draw_statistics)
        self._spectrum_timer = QTimer(self, singleShot=True, interval=_INTERVAL_MS)
        self._spectrum_timer.timeout.connect(self._draw_spectrum)

    def __getattr__(self, name: str) -> Any:
        """Create the widgets on first access to one of them."""
        if name not in _PARTS:
            raise AttributeError(name)
        self._make()
        return self.__dict__[name]

    @property
    def is_made(self) -> bool:
        """Whether the widgets inside exist."""
        return "table" in self.__dict__

    def _make(self) -> None:
        from explorer_app.window.layers.layer_statistics_view import LayerStatisticsView
        from explorer_app.window.layers.layer_table import LayerTable
        from explorer_app.window.layers.spectrum_legend import SpectrumLegend
        from explorer_app.window.layers.spectrum_view import SpectrumView
        from explorer_app.window.layers.tap_controls import TapControls

        self.table = LayerTable()
        self.empty = QLabel("Open a model to see its layers", self.table)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.empty, "sentence")
        self.controls = TapControls()
        self.spectrum = SpectrumView()
        self.figures = LayerStatisticsView()
        self.legend = SpectrumLegend()
        self.about = QLabel()
        self.about.setFont(fonts.caption())
        self.about.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom)
        theme.set_role(self.about, "caption")
        self._build()
        self.table.layer_chosen.connect(self._choose)
        self.controls.edited.connect(self.edited)
        self.controls.gesture_cancelled.connect(self.gesture_cancelled)
        self.spectrum.pointed.connect(self._describe_spectrum)
        self.show_model(self._facts, None)
        self._fit()

    def _build(self) -> None:
        inside = QVBoxLayout(self.table)
        inside.addWidget(self.empty)
        beside = QVBoxLayout()
        beside.setSpacing(theme.px(4))
        beside.addWidget(self.figures)
        beside.addStretch(1)
        beside.addWidget(self.about)
        beside.addWidget(self.legend)
        below = QHBoxLayout()
        below.setSpacing(theme.px(12))
        below.addWidget(self.spectrum)
        below.addLayout(beside, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.px(4), theme.MARGIN, theme.MARGIN)
        layout.setSpacing(theme.px(8))
        layout.addWidget(self.table, 1)
        layout.addWidget(self.controls)
        layout.addLayout(below)

    # -- content ----------------------------------------------------------------------------------------------------

    def show_model(self, facts: ModelFacts | None, directions: Directions | None) -> None:
        """Set the layers of a model; disable the panel without one."""
        self._facts = facts
        if not self.is_made:
            return
        self.table.show_model(facts)
        self.empty.setVisible(facts is None)
        self.show_session(self._session)

    def show_session(self, session: Session) -> None:
        """Show a session's layer and its display settings without emitting."""
        self._session = session
        tap, facts = session.tap, self._facts
        self.remember(tap)
        if not self.is_made:
            return
        layer = next((layer for layer in facts.layers if tap and layer.name == tap.layer), None) if facts else None
        self.table.show_layer(None if tap is None else tap.layer)
        reason = (
            "Open a model first."
            if facts is None
            else "Choose a layer first; these controls do not affect the picture."
        )
        self.controls.show_tap(tap, layer, reason)

    def remember(self, tap: Tap | None) -> None:
        """Note the layer that is shown, also while the panel is hidden: `toggle` returns to it."""
        if tap is not None:
            self._last = tap

    def show_frame(self, frame: Frame | None) -> None:
        """Schedule an update of the statistics and the spectrum; their rate is independent of the calls."""
        self._frame = frame
        if not (self._is_on_show and self.isVisible()):
            return
        if not self._figures_timer.isActive():
            self._figures_timer.start()
        is_slow = frame is not None and min(frame.width, frame.height) > _QUICK_PX
        if is_slow or not self._spectrum_timer.isActive():
            self._spectrum_timer.start()

    def set_on_show(self, on: bool) -> None:
        """Record whether the panel is visible; `isVisible` is also True for a panel behind another tab."""
        self._is_on_show = on
        self._draw()

    def toggle(self, on: bool) -> None:
        """Request the layer that was shown last, if the model has it, else its first one; False for the picture."""
        facts = self._facts
        if facts is not None:
            last = None if self._last is None else fit_tap(self._last, facts)
            self.edited.emit(SetParameter("layer", (last or first_tap(facts)) if on else None), True)

    # -- internals --------------------------------------------------------------------------------------------------

    def _choose(self, layer: str | None) -> None:
        tap = None
        if layer is not None and self._facts is not None:
            tap = fit_tap(replace(self._last or Tap(layer), layer=layer), self._facts)
        self.edited.emit(SetParameter("layer", tap), True)

    @Slot()
    def _draw(self) -> None:
        """Apply the updates that arrived while hidden."""
        if self._is_on_show and self.isVisible():
            self._draw_statistics()
            self._draw_spectrum()

    def _draw_statistics(self) -> None:
        self.figures.show_frame(self._frame)

    def _draw_spectrum(self) -> None:
        frame = self._drawn = self._frame
        values = None
        if frame is not None:
            values = picture_values(frame.pixels) if frame.tap is None else frame.tap.values
        self.spectrum.show_spectrum(None if values is None else gpu_backend.log_spectrum(values))
        self.legend.show_ends(self.spectrum.ends_db)
        self._describe_spectrum("")

    def _describe_spectrum(self, words: str) -> None:
        """Describe the frequency under the pointer; otherwise name the spectrum's channel."""
        tap = self._drawn.request.tap if self._drawn is not None else None
        whose = "the picture" if tap is None else channels_text(replace(tap, channels=tap.channels[:1]))
        self.about.setText(words or (f"Spectrum of\n{whose}" if self._drawn is not None else ""))

    # -- events -----------------------------------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:  # noqa: N802 - Qt's name
        """Apply the updates that arrived while hidden."""
        super().showEvent(event)
        if self.is_made:
            self._draw()
        else:
            QTimer.singleShot(0, self, self._draw)  # by then `set_on_show` has been called

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802 - Qt's name
        """Stop the updates."""
        self._figures_timer.stop()
        self._spectrum_timer.stop()
        super().hideEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:  # noqa: N802 - Qt's name
        """Resize the spectrum with the panel."""
        super().resizeEvent(event)
        if self.is_made:
            self._fit()

    def _fit(self) -> None:
        self.spectrum.set_side(min(0.5 * self.width(), 0.38 * self.height()))
