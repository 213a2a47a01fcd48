"""Edit > Preferences: theme, font, glide after a flick, and how exports run and end."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QVBoxLayout, QWidget

from explorer_app.exporting.writers import MAX_THREADS
from explorer_app.settings import Preferences
from explorer_app.window.controls.number_field import SpinBox
from explorer_app.window.controls.segmented import SegmentedControl
from explorer_app.window.controls.switch import Switch
from explorer_app.window.look import theme

_THEMES = (
    ("system", "System", "Follow the system's dark or light theme."),
    ("dark", "Dark", "Be dark."),
    ("light", "Light", "Use the light theme."),
)
_FONTS = (
    ("inter", "Inter", "Use the font that comes with Latent Loom."),
    ("system", "System", "Use the system's font."),
)


class PreferencesDialog(QDialog):
    """Changes apply at once, except the font, which applies at the next start.

    Signals
    -------
    theme_chosen(str), font_chosen(str), glide_chosen(bool), encoders_chosen(int), notices_chosen(bool)
        The user changed the preference.
    """

    theme_chosen = Signal(str)
    font_chosen = Signal(str)
    glide_chosen = Signal(bool)
    encoders_chosen = Signal(int)
    notices_chosen = Signal(bool)

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._font = preferences.font
        self.themes = SegmentedControl(_THEMES, "Theme")
        self.themes.show_choice(preferences.theme)
        self.themes.chosen.connect(self.theme_chosen)
        self.fonts = SegmentedControl(_FONTS, "Font")
        self.fonts.show_choice(preferences.font)
        self.fonts.chosen.connect(self._choose_font)
        self.hint = QLabel("The font changes when Latent Loom starts again.")
        theme.set_role(self.hint, "hint")
        policy = self.hint.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.hint.setSizePolicy(policy)
        self.hint.hide()
        self.glide = Switch("Glide on")
        self.glide.setToolTip("After a flick, keep moving until you click.")
        self.glide.setChecked(preferences.flick_glide)
        self.glide.toggled.connect(self.glide_chosen)
        self.encoders = SpinBox(0, MAX_THREADS)
        self.encoders.setSpecialValueText("All cores but one")
        self.encoders.setAccessibleName("Encoders")
        self.encoders.setToolTip("Pictures of an export that are compressed at a time, from the next export on.")
        threads = preferences.choices.get("export.threads", "")
        self.encoders.setValue(int(threads) if threads.isdecimal() and len(threads) < 5 else 0)
        self.encoders.valueChanged.connect(self.encoders_chosen)
        self.notices = Switch("Notify at the end")
        self.notices.setToolTip("Show a notification when an export of more than ten seconds ends in the background.")
        self.notices.setChecked(preferences.choices.get("export.notify") != "no")
        self.notices.toggled.connect(self.notices_chosen)
        form = QFormLayout()
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        form.setHorizontalSpacing(theme.px(20))
        form.setVerticalSpacing(theme.px(8))
        form.addRow("Theme", self.themes)
        form.addRow("Font", self.fonts)
        form.addRow("", self.hint)
        form.addRow("Flick", self.glide)
        form.addRow("Encoders", self.encoders)
        form.addRow("Exports", self.notices)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.close)
        layout = QVBoxLayout(self)
        edge = theme.px(16)
        layout.setContentsMargins(edge, edge, edge, edge)
        layout.setSpacing(theme.px(16))
        layout.addLayout(form)
        layout.addWidget(buttons)

    def _choose_font(self, font: str) -> None:
        self.hint.setVisible(font != self._font)
        self.font_chosen.emit(font)
