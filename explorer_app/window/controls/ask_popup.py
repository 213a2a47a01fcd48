"""A popup for a seed or a name, beside the widget that opened it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer_app.window.controls.number_field import NumberField
from explorer_app.window.controls.popup import Popup
from explorer_app.window.look import theme
from gpu_backend import SEED_COUNT


class AskPopup(Popup):
    """A title, one field and one button; Enter accepts, Escape and a click elsewhere cancel."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._answer: Callable[[], None] = _nothing
        self.title = QLabel()
        theme.set_role(self.title, "dim")
        self.seed = NumberField(0, SEED_COUNT - 1, decimals=0, step=1, widest=str(SEED_COUNT - 1))
        self.seed.setAccessibleName("Seed")
        self.seed.setToolTip("Seed, 0 to 4294967295.")
        self.text = QLineEdit()
        self.text.setAccessibleName("Name")
        self.text.setMaxLength(80)
        self.button = QPushButton()
        theme.set_role(self.button, "main")
        self.button.clicked.connect(self._take)
        self.text.returnPressed.connect(self._take)
        line = QHBoxLayout()
        line.setSpacing(6)
        line.addWidget(self.seed, 1)
        line.addWidget(self.text, 1)
        line.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.MARGIN, theme.MARGIN, theme.MARGIN, theme.MARGIN)
        layout.setSpacing(6)
        layout.addWidget(self.title)
        layout.addLayout(line)
        self.setFixedWidth(theme.px(240))

    def ask_seed(self, title: str, seed: int, verb: str, point: QPoint, answer: Callable[[int], None]) -> None:
        """Ask for a seed; `answer` is called with it."""

        def take() -> None:
            self.seed.interpretText()
            self.hide()
            answer(int(self.seed.value()))

        self._open(title, verb, point, take, self.seed)
        self.seed.show_number(seed)
        self.seed.selectAll()

    def ask_text(
        self, title: str, text: str, verb: str, point: QPoint, answer: Callable[[str], None], *, most: int = 80
    ) -> None:
        """Ask for a text of at most `most` characters; `answer` is called with it, stripped."""

        def take() -> None:
            self.hide()
            answer(self.text.text().strip())

        self.text.setMaxLength(most)
        self.text.setText(text)
        self._open(title, verb, point, take, self.text)
        self.text.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:  # noqa: N802
        """Accept on Enter in the seed's field too."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._take()
        else:
            super().keyPressEvent(event)

    def _take(self) -> None:
        """Answer once: Enter in the text's field also reaches the popup."""
        answer, self._answer = self._answer, _nothing
        answer()

    def _open(self, title: str, verb: str, point: QPoint, take: Callable[[], None], field: QWidget) -> None:
        self._answer = take
        self.title.setText(title)
        self.button.setText(verb)
        self.seed.setVisible(field is self.seed)
        self.text.setVisible(field is self.text)
        self.open_at(point)
        field.setFocus()


def _nothing() -> None:
    """Answer nothing."""
