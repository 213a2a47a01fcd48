"""A field for frames per second, which knows the rates of broadcasts."""

from __future__ import annotations

from fractions import Fraction

from PySide6.QtGui import QValidator
from PySide6.QtWidgets import QDoubleSpinBox, QWidget

from explorer_app.exporting.video.video_format import MAX_FPS, MIN_FPS, exact_rate
from explorer_app.window.look import theme


class RateBox(QDoubleSpinBox):
    """Frames per second, whole or with up to three digits behind a point or a comma; 23.976 means 24000/1001."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDecimals(3)
        self.setRange(float(MIN_FPS), float(MAX_FPS))
        self.lineEdit().setTextMargins(theme.px(7), 0, 0, 0)  # as of `SpinBox`

    @property
    def rate(self) -> Fraction:
        """The exact rate."""
        return rate_of(self.textFromValue(self.value()))

    def textFromValue(self, value: float) -> str:  # noqa: N802
        """Return the number without zeros at its end."""
        return f"{value:.3f}".rstrip("0").rstrip(".")

    def valueFromText(self, text: str) -> float:  # noqa: N802
        """Parse a number with either decimal mark."""
        try:
            return float(text.replace(",", "."))
        except ValueError:
            return self.value()

    def validate(self, text: str, position: int) -> tuple[object, str, int]:  # type: ignore[override]
        """Accept what can become a number in the range."""
        whole, _, digits = text.replace(",", ".").partition(".")
        if not (whole + digits).isdecimal() and whole + digits:
            return QValidator.State.Invalid, text, position
        is_inside = bool(whole) and self.minimum() <= self.valueFromText(text) <= self.maximum()
        return QValidator.State.Acceptable if is_inside else QValidator.State.Intermediate, text, position


def rate_of(text: str, usual: Fraction = Fraction(30)) -> Fraction:
    """Return the rate of a text that `RateBox` shows; the usual one if it is none."""
    whole, _, digits = text.partition(".")
    is_rate = text.isascii() and whole.isdecimal() and len(whole) < 4 and (not digits or digits.isdecimal())
    rate = exact_rate(Fraction(text[:8])) if is_rate else usual
    return rate if MIN_FPS <= rate <= MAX_FPS else usual
