"""Format, quality, size and frames per second of an export, as rows of the dialog's form."""

from __future__ import annotations

from fractions import Fraction
from typing import cast

from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QFormLayout, QWidget

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.formats.avif import has_avif
from explorer_app.exporting.formats.picture_format import MAX_DPI, FormatName, PictureFormat, Size
from explorer_app.exporting.sheet import MAX_COLUMNS, Paper, SheetLayout
from explorer_app.exporting.video.hardware import require_encoder
from explorer_app.exporting.video.video_format import (
    HARDWARE_LABELS,
    MAX_FPS,
    MIN_FPS,
    CodecName,
    HardwareName,
    VideoFormat,
)
from explorer_app.settings import Settings
from explorer_app.window.controls.number_field import SpinBox
from explorer_app.window.export.presets import (
    PRESETS,
    PRINT_DPI,
    PRINT_SIZES,
    SIZES,
    PresetName,
    format_about,
    format_label,
    parse_size,
)
from explorer_app.window.export.rate_box import RateBox, rate_of

_BACKGROUNDS = (("Transparent", ""), ("White", "white"), ("Black", "black"), ("Checkerboard", "checkerboard"))

_PAPERS = (("Black", "black"), ("White", "white"))

_COLUMNS = 4

_LICENCE = "PyAV, which encodes it, includes x264 and x265, which are under the GPL."


class FileChoices(QObject):
    """The file rows of the form, which depend on the preset.

    Parameters
    ----------
    rendered
        Width and height of the network's pictures.
    has_alpha
        Whether the network's pictures have transparent parts.

    Signals
    -------
    changed()
        A choice changed.
    """

    changed = Signal()

    def __init__(self, rendered: Size, settings: Settings, parent: QWidget, *, has_alpha: bool = False) -> None:
        super().__init__(parent)
        self._rendered = rendered
        self._has_alpha = has_alpha
        self._settings = settings
        self._preset: PresetName = "sequence"
        self._rows: QFormLayout | None = None
        self.format = QComboBox(parent)
        self.format.setAccessibleName("Format")
        self.quality = SpinBox(1, 100, parent)
        self.quality.setAccessibleName("Quality")
        self.quality.setToolTip("1 to 100; a higher quality makes larger files.")
        self.smaller = QCheckBox("Smaller files, slower", parent)
        self.smaller.setToolTip("About 15 % smaller; each picture takes about 30 times as long to compress.")
        self.size = QComboBox(parent)
        self.size.setEditable(True)
        self.size.setInsertPolicy(QComboBox.InsertPolicy.NoInsert)
        self.size.setAccessibleName("Size")
        self.columns = SpinBox(1, MAX_COLUMNS, parent)
        self.columns.setAccessibleName("Columns")
        self.columns.setToolTip(f"Pictures per row of the sheet, 1 to {MAX_COLUMNS}.")
        self.columns.setValue(_number(settings.choice("export.columns"), _COLUMNS))
        self.paper = QComboBox(parent)
        self.paper.setAccessibleName("Paper")
        self.paper.setToolTip("Colour between the pictures of the sheet.")
        for label, value in _PAPERS:
            self.paper.addItem(label, value)
        self.paper.setCurrentIndex(max(0, self.paper.findData(settings.choice("export.paper"))))
        self.encoder = QComboBox(parent)
        self.encoder.setAccessibleName("Encoder")
        self.encoder.setToolTip("Hardware encodes faster; its files are larger at the same quality.")
        self._hardware: frozenset[tuple[CodecName, HardwareName]] = frozenset()
        self.dpi = SpinBox(0, MAX_DPI, parent)
        self.dpi.setAccessibleName("Pixels per inch")
        self.dpi.setSpecialValueText("Not stated")
        self.dpi.setToolTip(f"For print: stored in the file; sizes in mm or inches default to {PRINT_DPI}.")
        self.dpi.setValue(_number(settings.choice("export.dpi"), 0))
        self.background = QComboBox(parent)
        self.background.setAccessibleName("Background")
        self.background.setToolTip("Background of the transparent parts of the picture.")
        for label, value in _BACKGROUNDS:
            self.background.addItem(label, value)
        self.background.setCurrentIndex(max(0, self.background.findData(settings.choice("export.background"))))
        self.fps = RateBox(parent)
        self.fps.setAccessibleName("Frames per second")
        self.fps.setToolTip("How fast the video plays: 24 is film, 30 is usual on the web.")
        self._timeline_rate: Fraction | None = None
        """Rate of the timeline that is exported; None for a path."""
        self._rate = rate_of(settings.choice("export.fps"))
        """The rate that is wanted; a format that cannot have it takes its own highest."""
        self._show_rate()
        self.format.currentIndexChanged.connect(self._format_changed)
        self.quality.valueChanged.connect(self.changed)
        self.smaller.toggled.connect(self.changed)
        self.size.editTextChanged.connect(self.changed)
        self.size.activated.connect(self._show_start_of_size)
        self.fps.valueChanged.connect(self._rate_changed)
        self.encoder.currentIndexChanged.connect(self.changed)
        self.dpi.valueChanged.connect(self.changed)
        self.columns.valueChanged.connect(self.changed)
        self.paper.currentIndexChanged.connect(self.changed)
        self.background.currentIndexChanged.connect(self.changed)

    @property
    def is_video(self) -> bool:
        """Whether the export writes a video."""
        return PRESETS[self._preset].is_video

    @property
    def picture_format(self) -> PictureFormat:
        """Format of the pictures; the default format for a video."""
        if self.is_video:
            return PictureFormat()
        name = cast("FormatName", self.format.currentData())
        facts = PictureFormat(name).facts
        quality = None if facts.default_quality is None else self.quality.value()
        is_small = name.startswith("png") and self.smaller.isChecked()
        dpi = self.dpi.value() or (PRINT_DPI if self._is_in_print else None)
        background = str(self.background.currentData()) or None
        return PictureFormat(
            name, quality, "small" if is_small else "fast", dpi, background if self._has_alpha else None
        )

    @property
    def video_format(self) -> VideoFormat | None:
        """Format of the video; None for pictures."""
        if not self.is_video:
            return None
        name = cast("CodecName", self.format.currentData())
        facts = VideoFormat(name).facts
        fps = min(self._rate, facts.max_fps)
        quality = None if facts.default_quality is None else self.quality.value()
        return VideoFormat(name, "", fps, quality, cast("HardwareName | None", self.encoder.currentData()))

    @property
    def makes_white(self) -> bool:
        """Whether the format has no transparency, so that transparent parts of the pictures are white in it."""
        if not self._has_alpha or self.sheet is not None:  # a sheet's paper shows there
            return False
        if self.video_format is not None:
            return not self.video_format.facts.keeps_alpha
        return self.picture_format.name == "jpeg" and self.picture_format.background is None

    @property
    def sheet(self) -> SheetLayout | None:
        """Layout of a sheet's pictures; None for other exports."""
        if self._preset != "sheet":
            return None
        return SheetLayout(self.columns.value(), paper=cast("Paper", self.paper.currentData()))

    @property
    def shown_size(self) -> Size:
        """Width and height of the files in px; the network's resolution if the text is not a valid size."""
        try:
            return self.wanted_size or self._rendered
        except ValueError:
            return self._rendered

    @property
    def wanted_size(self) -> Size | None:
        """Width and height in px to scale to; None for the network's resolution. Raises ValueError with a sentence."""
        if self.is_video and self._is_in_print:
            raise ValueError("A video's size is in pixels, such as 1920 × 1080.")
        return parse_size(self.size.currentText(), self.dpi.value() or PRINT_DPI)

    @property
    def _is_in_print(self) -> bool:
        return self.size.currentText().strip().endswith(("mm", "cm", "in"))

    @property
    def objection(self) -> str:
        """A sentence that explains why the choices are invalid; empty if they are valid."""
        try:
            size = self.wanted_size
            if self.video_format is not None:
                require_encoder(self.video_format)
        except ValueError as error:
            return str(error)
        except ExportError as error:
            return error.sentence
        if not self.is_video and self.format.currentData() == "avif" and not has_avif():
            return "This Pillow was built without AVIF; install one of its wheels, or choose WebP."
        is_too_small = self.is_video and size is not None and min(size) < 2
        return "A video is at least 2 pixels wide and high." if is_too_small else ""

    def add_rows(self, form: QFormLayout) -> None:
        """Add the rows to the dialog's form."""
        self._rows = form
        form.addRow("Format", self.format)
        form.addRow("Quality", self.quality)
        form.addRow("", self.smaller)
        form.addRow("Columns", self.columns)
        form.addRow("Paper", self.paper)
        form.addRow("Size", self.size)
        form.addRow("Encoder", self.encoder)
        form.addRow("Pixels per inch", self.dpi)
        form.addRow("Background", self.background)
        form.addRow("Frames per second", self.fps)

    def show_preset(self, preset: PresetName) -> None:
        """Show the formats of a preset, and select the format that was last used with it."""
        if "sheet" in (preset, self._preset) and preset != self._preset:
            self.size.setCurrentText("")  # a sheet's size is that of all its pictures together
        self._preset = preset
        of_what = "of the whole sheet" if preset == "sheet" else "of the files"
        self.size.setToolTip(
            f"Width × height {of_what}, such as 1920 × 1080 or 210 × 297 mm; "
            + ("the pictures are fitted into it." if preset == "sheet" else "scaled, and cropped to fit.")
        )
        wanted = PRESETS[preset]
        with QSignalBlocker(self.format):
            self.format.clear()
            for name in wanted.formats:
                tip = format_about(name, is_video=wanted.is_video)
                if wanted.is_video and VideoFormat(cast("CodecName", name)).facts.needs_extra:
                    tip = f"{tip} {_LICENCE}"
                self.format.addItem(format_label(name, is_video=wanted.is_video), name)
                self.format.setItemData(self.format.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
            self.format.setCurrentIndex(max(0, self.format.findData(self._settings.choice(f"export.format.{preset}"))))
        self._offer_sizes()
        self._format_changed()

    def follow_timeline(self, fps: Fraction | None) -> None:
        """Offer the rate of the timeline that is exported; of a path (None), the rate of the last video."""
        if fps != self._timeline_rate:
            self._timeline_rate = fps
            usual = rate_of(self._settings.choice("export.fps")) if fps is None else fps
            self._rate = min(max(usual, MIN_FPS), MAX_FPS)
            self._show_rate()

    def _show_rate(self, most: float | None = None) -> None:
        """Show the wanted rate, or the highest that the format can have."""
        with QSignalBlocker(self.fps):
            self.fps.setMaximum(self.fps.maximum() if most is None else most)
            self.fps.setValue(float(self._rate))

    def _rate_changed(self) -> None:
        self._rate = self.fps.rate
        self.changed.emit()

    @Slot()
    def _show_start_of_size(self) -> None:
        """Show how a size begins, which a narrow field would scroll out of sight."""
        edit = self.size.lineEdit()
        if edit is not None:
            edit.home(False)

    def _offer_sizes(self) -> None:
        """Offer sizes in print for pictures, and keep what is chosen."""
        with QSignalBlocker(self.size):
            text = self.size.currentText()
            rendered = f"As rendered ({self._rendered[0]} × {self._rendered[1]})"
            if self._preset == "sheet":
                rendered = f"Pictures as rendered ({self._rendered[0]} × {self._rendered[1]})"
            self.size.clear()
            self.size.addItems([rendered, *SIZES, *(() if self.is_video else PRINT_SIZES)])
            self.size.setCurrentText(text or self._settings.choice(self._size_key) or rendered)
        self._show_start_of_size()

    def show_hardware(self, found: frozenset[tuple[CodecName, HardwareName]]) -> None:
        """Offer the hardware encoders of this machine."""
        self._hardware = found
        self._format_changed()

    def _offer_encoders(self) -> bool:
        """Show the encoders of the chosen codec; return whether there is a choice."""
        codec = self.format.currentData()
        names = [name for name in HARDWARE_LABELS if self.is_video and (codec, name) in self._hardware]
        chosen = self.encoder.currentData() or self._settings.choice("export.encoder")
        with QSignalBlocker(self.encoder):
            self.encoder.clear()
            self.encoder.addItem("CPU", None)
            for name in names:
                self.encoder.addItem(HARDWARE_LABELS[name], name)
            self.encoder.setCurrentIndex(max(0, self.encoder.findData(chosen or None)))
        return bool(names)

    def remember(self) -> None:
        """Store the choices in the settings."""
        name = str(self.format.currentData())
        self._settings.choose(f"export.format.{self._preset}", name)
        self._settings.choose(f"export.quality.{self._key(name)}", str(self.quality.value()))
        if self._timeline_rate is None:
            self._settings.choose("export.fps", self.fps.textFromValue(float(self._rate)))
        if self.encoder.count() > 1:
            self._settings.choose("export.encoder", str(self.encoder.currentData() or ""))
        if self._preset == "sheet":
            self._settings.choose("export.columns", str(self.columns.value()))
            self._settings.choose("export.paper", str(self.paper.currentData()))
        self._settings.choose("export.dpi", str(self.dpi.value() or ""))
        self._settings.choose("export.background", str(self.background.currentData()))
        self._settings.choose(self._size_key, "" if self.wanted_size is None else self.size.currentText())

    def _format_changed(self) -> None:
        """Show the rows that apply to the format."""
        name = str(self.format.currentData())
        self.format.setToolTip(str(self.format.currentData(Qt.ItemDataRole.ToolTipRole)))
        video = VideoFormat(cast("CodecName", name)) if self.is_video else None
        usual = video.facts.default_quality if video else PictureFormat(cast("FormatName", name)).facts.default_quality
        with QSignalBlocker(self.quality):
            remembered = self._settings.choice(f"export.quality.{self._key(name)}")
            self.quality.setValue(_number(remembered, usual or 100))
        if video is not None:
            self._show_rate(float(video.facts.max_fps))
        has_choice = self._offer_encoders()
        if self._rows is not None:
            self._rows.setRowVisible(self.encoder, has_choice)
            self._rows.setRowVisible(self.quality, usual is not None)
            self._rows.setRowVisible(self.smaller, not self.is_video and name.startswith("png"))
            self._rows.setRowVisible(self.fps, self.is_video)
            self._rows.setRowVisible(self.columns, self._preset == "sheet")
            self._rows.setRowVisible(self.paper, self._preset == "sheet")
            self._rows.setRowVisible(self.dpi, not self.is_video)
            self._rows.setRowVisible(self.background, not self.is_video and self._has_alpha)
        self.changed.emit()

    @property
    def _size_key(self) -> str:
        return "export.sheet_size" if self._preset == "sheet" else "export.size"

    def _key(self, name: str) -> str:
        return f"video.{name}" if self.is_video else name


def _number(text: str, default: int) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else default
