"""The card over an empty canvas: how to open a model, or the progress of reading one, with a cancel button.

The message strip below the canvas reports why a file did not open; the card does not repeat it.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QBoxLayout, QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout

from explorer_app.window.canvas.picture_stage import PictureStage
from explorer_app.window.controls.elided_label import ElidedLabel
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.share_bar import ShareBar
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.icons import icon

_EDGE_PX = 24
"""Margin inside the card, in px."""

_LEAST_EDGE_PX = 8
"""Left and right margin inside a card that is hardly wider than its longest button, in px."""


class CanvasOverlay(QFrame):
    """A card in the middle of the canvas, or nothing.

    Signals
    -------
    open_requested()
        The Open button was pressed.
    cancel_requested()
        The Cancel button was pressed.
    bundled_requested()
        The button for the bundled model was pressed.
    """

    open_requested = Signal()
    cancel_requested = Signal()
    bundled_requested = Signal()

    def __init__(self, stage: PictureStage) -> None:
        super().__init__(stage)
        self.setObjectName("canvas-state")
        self.setAttribute(Qt.WidgetAttribute.WA_NoMousePropagation)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self._stage = stage
        self._mark_name = ("model", "dim")
        self.mark = QLabel(self)
        self.mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = ElidedLabel("", self, mode=Qt.TextElideMode.ElideMiddle)
        self.title.setFont(fonts.strong())
        self.title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.title, "strong")
        self.sentence = QLabel(self)
        self.sentence.setWordWrap(True)
        self.sentence.setTextFormat(Qt.TextFormat.PlainText)
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.sentence, "dim")
        self.bar = ShareBar("Loading", self)
        self.open_button = QPushButton("Open model…", self)
        self.open_button.setToolTip("Choose a StyleGAN file: .pkl, .pt or .safetensors (Ctrl+O).")
        self.open_button.clicked.connect(self.open_requested)
        theme.set_role(self.open_button, "main")
        self.cancel_button = QPushButton("Cancel", self)
        self.cancel_button.setToolTip("Stop reading this file and keep what is open.")
        self.cancel_button.clicked.connect(self.cancel_requested)
        self.bundled_button = QPushButton("Open the bundled model", self)
        self.bundled_button.setToolTip("Open the model that came with the program (Ctrl+B).")
        self.bundled_button.clicked.connect(self.bundled_requested)

        buttons = self._buttons = QHBoxLayout()
        buttons.setSpacing(theme.px(8))
        buttons.addStretch(1)
        for button in (self.open_button, self.bundled_button, self.cancel_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        layout = self._layout = QVBoxLayout(self)
        edge = theme.px(_EDGE_PX)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(8))
        layout.addWidget(self.mark)
        layout.addWidget(self.title)
        layout.addWidget(self.sentence)
        layout.addSpacing(theme.px(4))
        layout.addWidget(self.bar)
        layout.addSpacing(theme.px(4))
        layout.addLayout(buttons)
        stage.resized.connect(self.place)
        self.show_nothing()

    def show_nothing(self) -> None:
        """Hide the card."""
        self.hide()

    def show_no_model(self, *, has_bundled: bool = True) -> None:
        """Show how to open a first model."""
        self._compose(
            ("model", "dim"),
            "No model is open",
            "Open a StyleGAN file, or drop one here.\nNothing in the file is run.",
            open_button=True,
            bundled_button=has_bundled,
        )

    def show_loading(self, name: str, sentence: str, share: float) -> None:
        """Show the progress of reading a file; `share` is in 0..1, and 0 means unknown."""
        self._compose(("model", "accent"), name, sentence, bar=True, cancel=True)
        self.bar.show_share(share if share > 0 else None)

    def show_waiting(self, name: str, sentence: str) -> None:
        """Show a short operation that cannot be cancelled."""
        self._compose(("model", "accent"), name, sentence, bar=True)
        self.bar.show_share(None)

    def _compose(
        self,
        mark: tuple[str, str],
        title: str,
        sentence: str,
        *,
        bar: bool = False,
        open_button: bool = False,
        bundled_button: bool = False,
        cancel: bool = False,
    ) -> None:
        self._mark_name = mark
        self._paint_mark()
        self.title.setText(title)
        self.title.setToolTip(plain_tip(title))
        self.sentence.setText(sentence)
        self.bar.setVisible(bar)
        self.open_button.setVisible(open_button)
        self.bundled_button.setVisible(bundled_button)
        self.cancel_button.setVisible(cancel)
        self.setAccessibleName(f"{title}: {sentence}")
        self.show()
        self.place()

    def _paint_mark(self) -> None:
        name, token = self._mark_name
        self.mark.setPixmap(icon(name, token).pixmap(theme.px(32), theme.px(32)))

    @Slot()
    def place(self) -> None:
        """Centre the card on the canvas."""
        if self.isHidden():
            return
        width = min(theme.px(400), self._stage.width() - theme.px(24))
        self.setFixedWidth(max(theme.px(200), width))
        self._stack_buttons()
        self.resize(self.width(), self.heightForWidth(self.width()))
        self.move((self._stage.width() - self.width()) // 2, (self._stage.height() - self.height()) // 2)
        self.raise_()

    def _stack_buttons(self) -> None:
        """Stack the buttons vertically when the card is too narrow for one row; then narrow the margins as needed."""
        shown = [
            button for button in (self.open_button, self.bundled_button, self.cancel_button) if button.isVisibleTo(self)
        ]
        widths = [button.sizeHint().width() for button in shown]
        edge = theme.px(_EDGE_PX)
        is_narrow = sum(widths) + self._buttons.spacing() * (len(shown) - 1) > self.width() - 2 * edge
        beside = (self.width() - max(widths, default=0)) // 2
        side = max(theme.px(_LEAST_EDGE_PX), min(edge, beside))
        self._layout.setContentsMargins(side, edge, side, edge)
        direction = QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight
        if direction != self._buttons.direction():
            self._buttons.setDirection(direction)

    def changeEvent(self, event: QEvent) -> None:  # noqa: N802 - Qt's name
        """Redraw the mark after a theme change."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "mark"):
            self._paint_mark()

    def paintEvent(self, event: QPaintEvent) -> None:  # noqa: N802 - Qt's name
        """Paint the card."""
        tokens = theme.current()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.mixed(tokens.panel, tokens.edge, 0.55), 1))
        painter.setBrush(QColor(tokens.panel))
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        painter.drawRoundedRect(area, theme.DOCK_RADIUS, theme.DOCK_RADIUS)
