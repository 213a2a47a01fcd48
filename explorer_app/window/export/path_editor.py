"""The path of an export: a list of latents, and what adds them to it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer_app.session.adapting import adapt
from explorer_app.session.history import History, HistoryEntry, place_name
from explorer_app.session.session import Session, as_still
from explorer_app.window.controls.fitting_row import FittingRow
from explorer_app.window.export.export_key_list import ExportKeyList
from explorer_app.window.export.export_keys import ExportKey, parse_seeds, seed_key
from explorer_app.window.look import theme
from gpu_backend import SEED_COUNT, ModelFacts

RECENT_STEPS = 8
"""Number of history steps that "Recent" adds."""

_RANDOM_SEEDS = 3
"""With the current latent they make a path that is worth looking at."""

_MAX_OFFERED = 64
"""Largest number of kept latents that the initial path includes; a larger collection is not a path."""

_CURRENT = "current"
"""Label of a key: what the window shows."""


class PathEditor(QWidget):
    """Puts a path together from the current latent, kept ones, steps and seeds, all fitted to the open model.

    Parameters
    ----------
    last_path
        Path of the last export, if the user put it together; empty to offer the current and the kept latents.

    Signals
    -------
    changed()
        Other latents, or another order.
    seeds_refused(str)
        Why the seeds that were typed cannot be added.
    """

    changed = Signal()
    seeds_refused = Signal(str)

    def __init__(
        self,
        session: Session,
        history: History,
        facts: ModelFacts,
        last_path: Sequence[ExportKey],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._history = history
        self._facts = facts
        self._last_path = [self._key_of_last(key) for key in last_path]
        self.keys = ExportKeyList(self)
        self.empty = QLabel("No latent yet: add kept ones, recent steps or seeds.", self.keys)
        self.empty.setWordWrap(True)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        theme.set_role(self.empty, "dim")
        inside = QVBoxLayout(self.keys)
        inside.addWidget(self.empty)
        kept = len(history.kept)
        recent = min(RECENT_STEPS, len(history.entries))
        self.add_current = self._adder("+ Current", "Add the current latent.", self._add_current)
        self.add_kept = self._adder(f"+ Kept ({kept:,})", "Add every step that has a star.", self._add_kept)
        self.add_kept.setEnabled(kept > 0)
        self.add_recent = self._adder(f"+ Recent ({recent})", f"Add the newest {recent} steps.", self._add_recent)
        self.add_recent.setEnabled(recent > 0)
        self.remove = self._adder(
            "Remove", "Remove the selected latents from the path (Delete).", self.keys.remove_selected
        )
        self.seeds = QLineEdit(self)
        self.seeds.setPlaceholderText("Seeds, such as 0,1,4-6")
        self.seeds.setAccessibleName("Seeds")
        self.seeds.setToolTip("Whole numbers from 0 to 4294967295 and ranges; Enter adds them.")
        self.seeds.installEventFilter(self)
        self.add_seeds = self._adder("Add", "Add these seeds with all other current settings.", self._add_seeds)
        self.add_random = self._adder("+ Random", f"Add {_RANDOM_SEEDS} random seeds.", self._add_random)
        self._lay_out()
        self.keys.keys_changed.connect(self._keys_changed)

    def _lay_out(self) -> None:
        adders = FittingRow(
            (self.add_current, self.add_kept, self.add_recent, None, self.remove),
            (self.remove, self.add_recent, self.add_kept),
            self,
            edge_px=0,
        )
        seeds = QHBoxLayout()
        seeds.setSpacing(theme.px(6))
        seeds.addWidget(self.seeds, 1)
        seeds.addWidget(self.add_seeds)
        seeds.addWidget(self.add_random)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.px(8))
        layout.addWidget(self.keys, 1)
        layout.addWidget(adders)
        layout.addLayout(seeds)

    def _adder(self, text: str, tip: str, ask: object) -> QPushButton:
        button = QPushButton(text, self)
        button.setAccessibleName(text.lstrip("+ "))
        button.setToolTip(tip)
        button.setAutoDefault(False)
        button.clicked.connect(ask)
        return button

    @property
    def has_last(self) -> bool:
        """Whether `offer` brings back the path of the last export."""
        return bool(self._last_path)

    def offer(self) -> None:
        """Fill the initial path."""
        self.keys.add(self._last_path or self._usual_path())

    def current_key(self) -> ExportKey:
        """Return what the window shows as a key."""
        return ExportKey(_CURRENT, self._session)

    @property
    def own_path(self) -> Sequence[ExportKey]:
        """The path, if the user put it together; empty if it is what is offered first."""
        keys = self.keys.keys
        return () if list(keys) == self._usual_path() else keys

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        """Add the seeds on Enter in their field, instead of starting the export."""
        is_enter = isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if watched is self.seeds and is_enter and event.type() == QEvent.Type.KeyPress:
            self._add_seeds()
            return True
        return super().eventFilter(watched, event)

    def _keys_changed(self) -> None:
        self.empty.setVisible(not self.keys.count())
        self.changed.emit()

    def _add_current(self) -> None:
        self.keys.add([self.current_key()])

    def _add_kept(self) -> None:
        self.keys.add(self._kept_keys())

    def _kept_keys(self) -> list[ExportKey]:
        return [self._key("kept", entry) for entry in self._history.kept]

    def _add_recent(self) -> None:
        recent = self._history.entries[-RECENT_STEPS:]
        self.keys.add([self._key("step", entry) for entry in recent])

    def _key(self, word: str, entry: HistoryEntry) -> ExportKey:
        return ExportKey(f"{word} {entry.number} · {entry.label}", adapt(entry.session, self._facts).session)

    def _add_seeds(self) -> None:
        try:
            seeds = parse_seeds(self.seeds.text())
        except ValueError as error:
            self.seeds_refused.emit(str(error))
            return
        self.keys.add([seed_key(self._session, seed) for seed in seeds])
        self.seeds.clear()

    def _add_random(self) -> None:
        seeds = (random.randrange(SEED_COUNT) for _ in range(_RANDOM_SEEDS))
        self.keys.add([seed_key(self._session, seed) for seed in seeds])

    def _key_of_last(self, key: ExportKey) -> ExportKey:
        """Return a key of the last path for the present model; what was current then has its place for a name."""
        session = adapt(key.session, self._facts).session
        if key.label == _CURRENT and session != self._session:
            return ExportKey(place_name(session), session)
        return ExportKey(key.label, session)

    def _usual_path(self) -> list[ExportKey]:
        """Return the current and the kept latents."""
        path = [self.current_key()]
        if len(self._history.kept) <= _MAX_OFFERED:
            path += [key for key in self._kept_keys() if key.session != as_still(self._session)]
        return path
