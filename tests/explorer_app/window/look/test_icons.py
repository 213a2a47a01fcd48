from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon, QPixmap

from explorer_app.window.look import icons
from explorer_app.window.look.icons import GLYPHS, icon
from tests.helpers.own_process import run_python


def test_every_icon_has_an_outline_which_packaging_make_icons_writes() -> None:
    for name in GLYPHS:
        picture = icon(name).pixmap(QSize(32, 32)).toImage()
        inked = {(x, y) for x in range(32) for y in range(32) if picture.pixelColor(x, y).alpha() > 128}
        assert inked, name
        assert all(1 <= x <= 30 and 1 <= y <= 30 for x, y in inked), f"{name} is cut off"


def test_a_disabled_icon_has_another_colour() -> None:
    made = icon("star-filled")
    normal, disabled = (made.pixmap(QSize(32, 32), mode).toImage() for mode in (QIcon.Mode.Normal, QIcon.Mode.Disabled))
    assert normal.pixelColor(16, 16) != disabled.pixelColor(16, 16)


def test_a_copy_of_an_icon_can_be_modified() -> None:
    done = run_python("""
        from PySide6.QtGui import QGuiApplication, QIcon, QPixmap
        from explorer_app.window.look.icons import icon
        app = QGuiApplication([])
        first = icon("star")
        second = QIcon(first)
        second.addPixmap(QPixmap(8, 8))
        print(second.pixmap(16, 16).width(), first.pixmap(16, 16).width())
    """)
    assert done.stdout.split() == ["16", "16"], done.stderr


def test_copied_engines_are_forgotten_once_their_icons_are_gone() -> None:
    first = icon("star")
    for _ in range(5):
        QIcon(first).addPixmap(QPixmap(8, 8))
    assert len(icons._clones) <= 2
