"""A dialog with all facts of a model file, and a copy button."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QGridLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from explorer_app.window.look import theme
from explorer_app.window.model import model_text
from gpu_backend import ModelFacts, printable


class ModelDetails(QDialog):
    """Shows the same facts as ``latentloom inspect``."""

    def __init__(self, facts: ModelFacts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(f"Inspect {printable(facts.name)}")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._facts = model_text.all_facts(facts)
        rows = QWidget(self)
        grid = QGridLayout(rows)
        grid.setContentsMargins(0, 0, theme.px(8), 0)
        grid.setHorizontalSpacing(theme.px(16))
        grid.setVerticalSpacing(theme.px(6))
        grid.setColumnStretch(1, 1)
        for row, (name, text) in enumerate(self._facts):
            label = QLabel(name, rows)
            theme.set_role(label, "dim")
            value = QLabel(breakable(text), rows)
            value.setWordWrap(True)
            value.setTextFormat(Qt.TextFormat.PlainText)
            value.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            value.setAccessibleName(name)
            theme.set_role(value, "strong")
            grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(value, row, 1)
        grid.setRowStretch(len(self._facts), 1)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        theme.set_role(area, "text")
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(rows)
        self.copy_button = QPushButton("Copy all", self)
        self.copy_button.setToolTip("Copy everything to the clipboard as text.")
        self.copy_button.clicked.connect(self._copy)
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        box.addButton(self.copy_button, QDialogButtonBox.ButtonRole.ActionRole)
        box.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(12))
        layout.addWidget(area, 1)
        layout.addWidget(box)
        self.resize(theme.px(560), theme.px(560))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(f"{name}: {text}" for name, text in self._facts))


def breakable(text: str) -> str:
    """Return the text with zero-width break opportunities, so that long paths and hashes wrap."""
    words = []
    for word in text.split(" "):
        if len(word) > 40:
            word = "\u200b".join(word[i : i + 8] for i in range(0, len(word), 8))
        words.append(word)
    return " ".join(words)
