"""Help > About, and the text of bug reports."""

from __future__ import annotations

import platform
from collections.abc import Sequence

import PySide6
from PySide6.QtCore import Qt, qVersion
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QLayout, QVBoxLayout, QWidget

from explorer_app.messages import Message
from explorer_app.rendering.renderer_like import DeviceLike
from explorer_app.version import __version__
from explorer_app.window.look import fonts, theme
from explorer_app.window.look.app_icon import app_icon
from gpu_backend import ModelFacts

_MOST_MESSAGES = 40
_TEXT_PX = 320


def report(facts: ModelFacts | None, device: DeviceLike | None, messages: Sequence[Message]) -> str:
    """Return a bug report: versions, model, device, and the newest messages."""
    screen = QGuiApplication.primaryScreen()
    size = (
        f"{screen.size().width()} × {screen.size().height()}, factor {screen.devicePixelRatio():g}" if screen else "-"
    )
    model = "none"
    if facts is not None:
        model = f"{facts.name}, {facts.family} ({facts.flavour}), {facts.resolution} px, SHA-256 {facts.model_id}"
    lines = [
        f"Latent Loom {__version__}",
        f"Python {platform.python_version()}, Qt {qVersion()}, PySide6 {PySide6.__version__}",
        f"{platform.system()} {platform.release()}, {platform.machine()}",
        f"Screen: {size}",
        f"Model: {model}",
        f"Device: {device.name}, {device.precision}; {device.reason}" if device is not None else "Device: none yet",
        "",
        "Messages, newest last:",
    ]
    for message in messages[-_MOST_MESSAGES:]:
        lines.append(f"[{message.level.name.lower()}] {message.sentence}")
        lines.extend(f"    {line}" for line in message.details.splitlines())
    return "\n".join(lines)


class AboutDialog(QDialog):
    """Name, version and licence."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("About Latent Loom")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        mark = QLabel(self)
        mark.setPixmap(app_icon().pixmap(theme.px(64), theme.px(64)))
        name = QLabel("Latent Loom", self)
        theme.set_role(name, "figure")
        version = QLabel(f"Version {__version__} · MIT licence", self)
        theme.set_role(version, "dim")
        text = QLabel(
            "An explorer for the latent spaces of StyleGAN: drag, and the picture follows. "
            "Opening a model file never executes code from it.",
            self,
        )
        text.setWordWrap(True)
        text.setFont(fonts.body())
        text.setFixedWidth(theme.px(_TEXT_PX))  # the dialog's size follows from the text's height at this width
        words = QVBoxLayout()
        words.setSpacing(theme.px(4))
        for label in (name, version, text):
            words.addWidget(label)
        top = QHBoxLayout()
        top.setSpacing(theme.px(16))
        top.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        box = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        box.rejected.connect(self.reject)
        layout = QVBoxLayout(self)
        edge = theme.px(20)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(16))
        layout.addLayout(top)
        layout.addWidget(box)
        layout.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)
