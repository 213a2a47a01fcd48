"""The list of blends in the panel of local edits: second latents that show under painted masks."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QImage, QPixmap
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QVBoxLayout, QWidget

from explorer_app.session.edits import RemoveBlend
from explorer_app.session.local_blends import LocalBlend
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.window.controls.ask_popup import AskPopup
from explorer_app.window.controls.menu_text import menu_text
from explorer_app.window.controls.plain_tip import plain_tip
from explorer_app.window.controls.row_range_picker import RowRangeButton, RowRangePicker
from explorer_app.window.controls.slider_row import SliderRow, below
from explorer_app.window.controls.switch import Switch
from explorer_app.window.controls.wrapped_label import WrappedLabel
from explorer_app.window.edits.edit_rows import LABEL_PX, EditRow
from explorer_app.window.look import icons, ink, theme
from gpu_backend import MASK_SIDE, MAX_BLENDS, PictureMask, Point, Recipe

if TYPE_CHECKING:
    from gpu_backend import ModelFacts

_NO_BLENDS = "A blend shows a part of another picture: the sky of one, the ground of another. Paint where it shows."
_PAINT = "Paint where it shows."
_TAPPED = "A layer is shown without blends; go back to the picture (L) to see them."
_THUMB_PX, _PENCIL_SHARE = 40, 0.45
_LEAST_LABEL_PX = 64
_KEPT_PICTURES = 32
_MOST_NAMES = 20
"""Kept pictures in a menu, the newest first; any other can be dropped on the panel."""
_RANDOM_SEEDS = 100_000


class BlendRow(EditRow):
    """A blend: a switch, its picture, its mask, its rows, and sliders of strength and soft edge.

    Signals
    -------
    latent_menu_requested(object)
        The place of a menu that chooses the second latent, on the screen.
    paint_requested(bool)
        The mask is to be painted, or no longer.
    rows_requested(object)
        The place of a popup that chooses the rows.
    """

    latent_menu_requested = Signal(object)
    paint_requested = Signal(bool)
    rows_requested = Signal(object)

    def __init__(self, blend: LocalBlend, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.number = blend.number
        self._mask: PictureMask | None = None
        self.switch = Switch("")
        self.switch.setToolTip("Turn the blend on or off.")
        self.picture_button = self._thumb("The second picture: click to choose another.")
        self.mask_button = self._thumb("Where it shows, in white: click to paint.")
        self.mask_button.setCheckable(True)
        self.hint = WrappedLabel(_PAINT)
        theme.set_role(self.hint, "dim")
        self.rows = RowRangeButton()
        path = f"blend/{self.number}"
        self.sliders = (
            self._slider(blend.name, 1.0, True, "how much of the second picture shows under the mask."),
            self._slider("soft edge", 0.0, False, "width of the mask's edges, in widths of the picture."),
        )
        for slider, field in zip(self.sliders, ("strength", "softness"), strict=True):
            self._connect(slider, f"{path}/{field}")
        head = QHBoxLayout()
        head.setSpacing(theme.px(4))
        centred = Qt.AlignmentFlag.AlignVCenter  # without it the lowest button limits the height of the line
        for widget in (self.switch, self.picture_button, self.mask_button):
            head.addWidget(widget, 0, centred)
        head.addWidget(self.hint, 1)
        head.addStretch()  # takes the room while the hint is hidden
        head.addWidget(self.rows, 0, centred)
        head.addWidget(self.remove, 0, centred)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.px(2), 0, theme.px(4))
        column.setSpacing(0)
        column.addLayout(head)
        sliders = QVBoxLayout()
        sliders.setContentsMargins(*self._inset(self.switch))
        sliders.setSpacing(0)
        for slider in self.sliders:
            sliders.addWidget(slider)
        column.addLayout(sliders)
        self.switch.clicked.connect(lambda on: self.edited.emit(SetParameter(f"{path}/on", on), True))
        self.remove.clicked.connect(lambda: self.edited.emit(RemoveBlend(self.number), True))
        self.sliders[0].renamed.connect(lambda name: self.edited.emit(SetParameter(f"{path}/name", name), True))
        self.picture_button.clicked.connect(lambda: self.latent_menu_requested.emit(below(self.picture_button)))
        self.mask_button.clicked.connect(self.paint_requested)
        self.rows.clicked.connect(lambda: self.rows_requested.emit(below(self.rows)))

    @staticmethod
    def _thumb(tip: str) -> QToolButton:
        button = QToolButton()
        theme.set_role(button, "thumb")
        button.setToolTip(tip)
        button.setIconSize(QSize(theme.px(_THUMB_PX), theme.px(_THUMB_PX)))
        button.setFixedSize(theme.px(_THUMB_PX + 6), theme.px(_THUMB_PX + 6))
        return button

    @staticmethod
    def _slider(name: str, rest: float, editable: bool, tip: str) -> SliderRow:
        return SliderRow(
            name,
            0.0,
            1.0,
            neutral=0.0,
            reset=rest,
            widest="0.00",
            editable=editable,
            label_px=LABEL_PX,
            least_label_px=_LEAST_LABEL_PX,
            tip=tip,
        )

    def show_blend(self, blend: LocalBlend, resolutions: Sequence[int]) -> None:
        """Show its values without emitting."""
        name = blend.name
        self.switch.setChecked(blend.is_on)
        self.switch.setAccessibleName(f"{name} acts")
        self.picture_button.setAccessibleName(f"Picture of {name}")
        self.mask_button.setAccessibleName(f"Mask of {name}")
        self.remove.setToolTip(plain_tip(f"Remove {name}."))
        self.remove.setAccessibleName(f"Remove {name}")
        if self.sliders[0].label.full_text != name:
            self.sliders[0].describe(name)
        for slider, amount in zip(self.sliders, (blend.strength, blend.softness), strict=True):
            slider.setEnabled(blend.is_on)
            slider.show_amount(amount)
        if resolutions:
            self.rows.show_rows(blend.rows, resolutions, name)
        self.hint.setVisible(blend.mask is None)
        if blend.mask != self._mask or self.mask_button.icon().isNull():
            self._mask = blend.mask
            self._show_mask(blend.mask)

    def _show_mask(self, mask: PictureMask | None) -> None:
        """Show a mask; before it is painted, an empty tile with a pencil."""
        theme.set_role(self.mask_button, "empty-thumb" if mask is None else "thumb")
        if mask is None:
            self.mask_button.setIcon(icons.icon("rename", "dim", share=_PENCIL_SHARE))
        else:
            self.mask_button.setIcon(QIcon(ink.rounded_picture(mask_pixmap(mask), theme.px(_THUMB_PX))))

    def show_picture(self, picture: QPixmap | None) -> None:
        """Show the second picture; None for one that is not rendered yet."""
        if picture is not None:
            self.picture_button.setIcon(QIcon(ink.rounded_picture(picture, theme.px(_THUMB_PX))))


def mask_pixmap(mask: PictureMask) -> QPixmap:
    """Return a mask in grey, black where it covers nothing."""
    image = QImage(mask.values, MASK_SIDE, MASK_SIDE, MASK_SIDE, QImage.Format.Format_Grayscale8)
    side = theme.px(_THUMB_PX)
    smooth = Qt.TransformationMode.SmoothTransformation
    return QPixmap.fromImage(image.scaled(side, side, Qt.AspectRatioMode.IgnoreAspectRatio, smooth))


class BlendList(QWidget):
    """Rows of blends; `add` opens the menu of another one.

    Signals
    -------
    edited(object, bool)
        An Edit; True for the last one of a gesture.
    gesture_cancelled()
        Escape ended a drag.
    paint_requested(int)
        Number of the blend whose mask is to be painted; 0 to stop.
    seed_requested(int, int), shown_requested(int), kept_requested(int, int)
        The latent of a seed, of what is shown, of a kept entry is to be the second one of a blend; the blend's number
        comes last, 0 for a new one.
    thumbnail_wanted(object, object)
        A key and the `Session` to render; the result arrives in `show_thumbnail`.
    """

    edited = Signal(object, bool)
    gesture_cancelled = Signal()
    paint_requested = Signal(int)
    seed_requested = Signal(int, int)
    shown_requested = Signal(int)
    kept_requested = Signal(int, int)
    thumbnail_wanted = Signal(object, object)

    def __init__(self, add: QToolButton, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = Session()
        self._resolutions: tuple[int, ...] = ()
        self._pictures: OrderedDict[object, QPixmap] = OrderedDict()
        self._painted = 0
        self.kept_names: Callable[[], Sequence[tuple[int, str]]] = lambda: ()
        """Numbers and names of the kept entries, the newest first."""
        self.rows: list[BlendRow] = []
        self.add = add
        self.empty = WrappedLabel(_NO_BLENDS)
        theme.set_role(self.empty, "dim")
        self.ask = AskPopup(self)
        self.picker = RowRangePicker(self)
        self._picking = 0
        self.picker.rows_chosen.connect(
            lambda rows: self.edited.emit(SetParameter(f"blend/{self._picking}/rows", rows), True)
        )
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.px(2))
        self._column.addWidget(self.empty)
        self.add.clicked.connect(lambda: self.open_menu(0, below(self.add)))

    def show_model(self, facts: ModelFacts | None) -> None:
        """Take the rows of another model."""
        self._resolutions = () if facts is None else facts.row_resolutions

    def show_session(self, session: Session) -> None:
        """Show a session without emitting; rows are made anew only if there are others."""
        self._session = session
        if [row.number for row in self.rows] != [blend.number for blend in session.blends]:
            for row in self.rows:
                self._column.removeWidget(row)
                row.hide()
                row.deleteLater()
            self.rows = [self._row(blend) for blend in session.blends]
        for row, blend in zip(self.rows, session.blends, strict=True):
            row.show_blend(blend, self._resolutions)
            row.mask_button.setChecked(row.number == self._painted)
        is_tapped = session.tap is not None and bool(session.blends)
        self.empty.setText(_TAPPED if is_tapped else _NO_BLENDS)
        self.empty.setVisible(is_tapped or not session.blends)
        self.add.setEnabled(len(session.blends) < MAX_BLENDS)
        self.request_pictures()

    def show_painting(self, number: int) -> None:
        """Show whose mask is painted; 0 for none."""
        self._painted = number
        for row in self.rows:
            row.mask_button.setChecked(row.number == number)

    def request_pictures(self) -> None:
        """Show the second pictures, and request those that are missing."""
        for row, blend in zip(self.rows, self._session.blends, strict=True):
            key, session = self._picture_key(blend)
            picture = self._pictures.get(key)
            row.show_picture(picture)
            if picture is None and self._resolutions:
                self.thumbnail_wanted.emit(key, session)

    def show_thumbnail(self, key: object, image: QImage) -> None:
        """Show a requested picture."""
        self._pictures[key] = QPixmap.fromImage(image)
        while len(self._pictures) > _KEPT_PICTURES:
            self._pictures.popitem(last=False)
        for row, blend in zip(self.rows, self._session.blends, strict=True):
            row.show_picture(self._pictures.get(self._picture_key(blend)[0]))

    def open_menu(self, number: int, place: QPoint) -> None:
        """Open the menu that chooses the second latent of a blend; 0 for a new one."""
        self.menu_of(number, place).popup(place)

    def menu_of(self, number: int, place: QPoint) -> QMenu:
        """Return that menu; closing deletes it."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(icons.icon("random", "dim"), "A seed…", partial(self._ask_seed, number, place))
        menu.addAction("The picture that is shown", partial(self.shown_requested.emit, number))
        names = self.kept_names()[:_MOST_NAMES]
        if names:
            menu.addSection("Kept pictures")
            for kept, name in names:
                menu.addAction(menu_text(name), partial(self.kept_requested.emit, kept, number))
        return menu

    def _ask_seed(self, number: int, place: QPoint) -> None:
        blend = self._session.blend(number)
        point = None if blend is None else blend.latent.point
        seeds = point.seeds if isinstance(point, Point) else ()
        seed = seeds[0][0] if len(seeds) == 1 else random.randrange(_RANDOM_SEEDS)
        self.ask.ask_seed(
            "Seed of the second picture", seed, "Take", place, lambda seed: self.seed_requested.emit(seed, number)
        )

    def _row(self, blend: LocalBlend) -> BlendRow:
        row, number = BlendRow(blend), blend.number
        row.edited.connect(self.edited)
        row.gesture_cancelled.connect(self.gesture_cancelled)
        row.latent_menu_requested.connect(lambda place: self.open_menu(number, place))
        row.paint_requested.connect(lambda on: self.paint_requested.emit(number if on else 0))
        row.rows_requested.connect(lambda place: self._pick_rows(number, place))
        self._column.addWidget(row)
        return row

    def _pick_rows(self, number: int, place: QPoint) -> None:
        blend = self._session.blend(number)
        if blend is not None and self._resolutions:
            self._picking = number
            self.picker.open_for(blend.name, blend.rows, self._resolutions, place)

    def _picture_key(self, blend: LocalBlend) -> tuple[object, Session]:
        """Return the key and the session of a second latent alone, with the truncation that it gets."""
        pinned = ((Recipe(blend.latent, self._session.truncation), 1.0),)
        session = Session(model=self._session.model, pinned_blend=pinned, noise=self._session.noise)
        return ("blend", session), session
