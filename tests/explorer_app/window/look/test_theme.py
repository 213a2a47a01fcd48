"""Tokens, contrasts, and that no colour is written anywhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QFile, QObject, Qt
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QImage, QPalette, QRawFont
from PySide6.QtWidgets import (
    QApplication,
    QDialogButtonBox,
    QFileDialog,
    QLabel,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from pytestqt.qtbot import QtBot

from explorer_app.window.look import appearance, fonts, icons, theme
from explorer_app.window.look.style_sheet import style_sheet
from explorer_app.window.look.theme import DARK, LIGHT, Tokens
from tests.helpers.fonts import provide

WINDOW = Path(theme.__file__).parents[1]


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: str, second: str) -> float:
    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.fixture
def system_font(qapp: QApplication) -> Iterator[Callable[[QFont], None]]:
    """Call it with what the system's UI font is from now on."""
    kept = fonts._Fonts.system, fonts._Fonts.family
    yield lambda font: setattr(fonts._Fonts, "system", font)
    fonts._Fonts.system, fonts._Fonts.family = kept
    appearance.apply(qapp, "dark")


@pytest.mark.parametrize("tokens", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("ground", ["ground", "panel", "head", "well"])
def test_text_stands_out_at_least_four_and_a_half_to_one(tokens: Tokens, ground: str) -> None:
    for name in ("text", "strong", "accent_text", "good_text", "warn_text", "bad_text"):
        assert contrast(getattr(tokens, name), getattr(tokens, ground)) >= 4.5, name


@pytest.mark.parametrize("tokens", [DARK, LIGHT], ids=["dark", "light"])
def test_hints_and_text_on_the_accent_stand_out_too(tokens: Tokens) -> None:
    assert contrast(tokens.dim, tokens.panel) >= 4.5
    assert contrast(tokens.dim, tokens.head) >= 4.5
    assert contrast(tokens.dim, tokens.ground) >= 4.5
    assert contrast(tokens.on_accent, tokens.accent) >= 4.5
    assert contrast(tokens.text, tokens.raised) >= 4.5


def test_the_dark_theme_is_the_design() -> None:
    assert (DARK.ground, DARK.well, DARK.panel, DARK.head) == ("#131518", "#0d0e10", "#1d2025", "#22262c")
    assert (DARK.raised, DARK.edge, DARK.text, DARK.strong, DARK.dim) == (
        "#2a2f36",
        "#3a414b",
        "#d7dbe0",
        "#eef1f4",
        "#8b939e",
    )
    assert DARK.sources == ("#e8a33d", "#5aa9e6", "#7bc47f", "#c98bdb", "#f2777a")


def test_light_sources_are_the_dark_ones_a_fifth_darker() -> None:
    for dark, light in zip(DARK.sources, LIGHT.sources, strict=True):
        for i in (1, 3, 5):
            assert int(light[i : i + 2], 16) == pytest.approx(0.8 * int(dark[i : i + 2], 16), abs=1)


def test_no_colour_is_written_outside_the_theme() -> None:
    written = re.compile(
        r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b|QColor\(\s*\d|(?<![.\w])rgba?\(|GlobalColor\.(?!transparent|color)"
    )
    found = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sorted(WINDOW.rglob("*.py"))
        if path.name != "theme.py"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if written.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(("mode", "tokens"), [("dark", DARK), ("light", LIGHT)])
def test_applying_a_mode_changes_palette_and_style_at_once(
    qapp: QApplication, mode: theme.Mode, tokens: Tokens
) -> None:
    appearance.apply(qapp, mode)
    assert theme.current() is tokens
    assert appearance.mode() == mode
    assert qapp.palette().color(QPalette.ColorRole.Window).name() == tokens.ground
    assert qapp.palette().color(QPalette.ColorRole.Highlight).name() == tokens.accent
    assert tokens.raised in qapp.styleSheet()


def test_another_theme_repaints_whatever_paints_itself(qapp: QApplication, qtbot: QtBot) -> None:
    from explorer_app.window.controls.value_slider import ValueSlider
    from explorer_app.window.latent.seed_plane import SeedPlane
    from explorer_app.window.mix.grid_head import GridHead
    from explorer_app.window.performance.figure import Figure

    painted: set[str] = set()

    class Paints(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if event.type() == QEvent.Type.Paint:
                painted.add(type(watched).__name__)
            return False

    host = QWidget()
    layout = QVBoxLayout(host)
    paints = Paints(host)
    for widget in (ValueSlider(0.0, 1.0), SeedPlane(), GridHead(), Figure("frame", "ms", "A time.")):
        widget.installEventFilter(paints)
        layout.addWidget(widget)
    qtbot.addWidget(host)
    with qtbot.waitExposed(host):
        host.show()
    painted.clear()
    appearance.apply(qapp, "light")
    qtbot.waitUntil(lambda: painted == {"ValueSlider", "SeedPlane", "GridHead", "Figure"})


def test_system_follows_what_the_system_says(qapp: QApplication) -> None:
    appearance.apply(qapp, "light")
    appearance.apply(qapp, "system")
    system = qapp.styleHints().colorScheme()
    assert theme.current() is (LIGHT if system == Qt.ColorScheme.Light else DARK)


@pytest.mark.parametrize("tokens", [DARK, LIGHT], ids=["dark", "light"])
def test_the_style_sheet_is_filled_and_its_pictures_are_there(qapp: QApplication, tokens: Tokens) -> None:
    sheet = style_sheet(tokens)
    assert "$" not in sheet
    pictures = re.findall(r'url\("([^"]+)"\)', sheet)
    assert pictures
    assert all(QFile.exists(picture) for picture in pictures)
    assert all(not QImage(picture).isNull() for picture in pictures), "Qt draws them"


def test_a_role_colours_a_label_in_both_themes(qapp: QApplication, qtbot: QtBot) -> None:
    label = QLabel("hint")
    qtbot.addWidget(label)
    theme.set_role(label, "dim")
    for mode, tokens in (("dark", DARK), ("light", LIGHT)):
        appearance.apply(qapp, mode)  # type: ignore[arg-type]
        label.ensurePolished()
        assert label.palette().color(QPalette.ColorRole.WindowText).name() == tokens.dim


def test_an_icon_takes_the_colour_of_the_theme_that_is_on(qapp: QApplication) -> None:
    icon = icons.icon("open", "accent")
    for mode, tokens in (("dark", DARK), ("light", LIGHT), ("dark", DARK)):
        appearance.apply(qapp, mode)  # type: ignore[arg-type]
        picture = icon.pixmap(32, 32).toImage()
        solid = [
            picture.pixelColor(x, y)
            for x in range(picture.width())
            for y in range(picture.height())
            if picture.pixelColor(x, y).alpha() == 255
        ]
        assert solid
        accent = QColor(tokens.accent)
        assert all(abs(c.red() - accent.red()) + abs(c.blue() - accent.blue()) < 12 for c in solid)


def test_sizes_follow_the_systems_font(qapp: QApplication, system_font: Callable[[QFont], None]) -> None:
    usual = QFont(qapp.font())
    usual.setPixelSize(13)
    system_font(usual)
    assert (fonts.body().pixelSize(), fonts.table().pixelSize(), fonts.caption().pixelSize()) == (13, 12, 11)
    assert fonts.figure().pixelSize() == 22
    assert theme.px(25) == 25

    large = QFont(usual)
    large.setPixelSize(26)
    system_font(large)
    assert fonts.body().pixelSize() == 26
    assert theme.px(25) == 50


def test_figures_are_tabular(qapp: QApplication) -> None:
    for font in (fonts.body(), fonts.table(), fonts.caption(), fonts.figure()):
        assert font.featureValue(QFont.Tag("tnum")) == 1
        metrics = QFontMetricsF(font)
        assert metrics.horizontalAdvance("1111") == metrics.horizontalAdvance("4848")


def test_the_window_has_the_font_that_comes_with_the_program(qapp: QApplication) -> None:
    for font, weight in ((fonts.body(), 400), (fonts.strong(), 600)):
        info = QFontInfo(font)
        assert (info.family(), info.weight()) == (fonts.SHIPPED_FAMILY, weight)
        raw = QRawFont.fromFont(font)
        assert all(raw.supportsCharacter(ord(char)) for char in "AzÄŁΩψЖ▾★☆→×−·…µ±²“”⌘")


def test_the_systems_font_is_used_where_a_person_prefers_it(
    qapp: QApplication, system_font: Callable[[QFont], None]
) -> None:
    system_font(QFont(provide("DejaVu Sans")))
    fonts.use("system")
    assert QFontInfo(fonts.body()).family() == "DejaVu Sans"
    fonts.use("inter")
    assert QFontInfo(fonts.body()).family() == fonts.SHIPPED_FAMILY


def test_an_installation_without_its_fonts_uses_the_systems(
    qapp: QApplication, system_font: Callable[[QFont], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fonts, "_load_shipped", lambda: False)
    system_font(QFont(provide("DejaVu Sans")))
    fonts.use("inter")
    assert QFontInfo(fonts.body()).family() == "DejaVu Sans"


def test_sources_repeat_after_the_last(qapp: QApplication) -> None:
    assert theme.source_colour(0) == DARK.sources[0]
    assert theme.source_colour(6) == DARK.sources[1]


def test_buttons_of_dialogs_have_no_icons_of_another_family(qapp: QApplication, qtbot: QtBot) -> None:
    # Desktops want them; the off-screen platform does not, so a sheet before ours stands in for a desktop.
    wanted = "QDialogButtonBox { dialogbuttonbox-buttons-have-icons: 1; }"
    own = style_sheet(DARK)
    icons_by_sheet = {}
    for name, sheet in (("desktop", wanted), ("ours", f"{wanted}\n{own}")):
        qapp.setStyleSheet(sheet)
        for parent in (QDialogButtonBox(QDialogButtonBox.StandardButton.Close), QFileDialog()):
            qtbot.addWidget(parent)
            parent.show()
            buttons = [button for button in parent.findChildren(QPushButton) if button.text()]
            icons_by_sheet[name, type(parent)] = [not button.icon().isNull() for button in buttons]
    qapp.setStyleSheet(own)
    for (name, _), have in icons_by_sheet.items():
        assert have
        assert all(have) if name == "desktop" else not any(have)
