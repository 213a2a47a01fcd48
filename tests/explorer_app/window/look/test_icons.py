from PySide6.QtCore import QSize
from PySide6.QtGui import QIcon

from explorer_app.window.look.icons import GLYPHS, icon


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
