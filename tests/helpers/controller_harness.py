"""A controller over a fake renderer and fake model files, with a clock that a test sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer_app.controller import Controller
from explorer_app.messages import Level, MessageLog
from explorer_app.rendering.likely_device import preferred_choice
from explorer_app.rendering.model_loader import ModelLoader
from explorer_app.rendering.render_thread import RenderThread
from explorer_app.session.edits import PLACE
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position
from explorer_app.settings import Settings
from gpu_backend import Frame
from tests.helpers.fake_renderer import Engine, Library
from tests.helpers.live_inputs import FakeMidiPorts, ScriptedPads
from tests.helpers.patience import PATIENCE_MS


class Harness:
    """A controller's dependencies, and the signals that it emitted."""

    def __init__(self, folder: Path, qtbot: Any, messages: MessageLog) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.engine = Engine()
        self.library = Library()
        self.messages = messages
        self.midi = FakeMidiPorts()
        self.pads = ScriptedPads()
        self.make_drag_maker: Callable[[], Any] | None = None
        self.make_projection: Any = None
        self.now_s = 0.0
        self._qtbot = qtbot
        for name in ("cats", "dogs", "birds"):
            if not self.path(name).exists():  # one that is written again is another file
                self.path(name).write_text("a model")
        self.bundled: Path | None = self.path("cats")
        self.bundled_seed = 0
        self.settings = Settings(folder / "settings.json", messages)
        self.frames: list[Frame] = []
        self.heard: list[str] = []
        self._controller: Controller | None = None
        self._successors: list[Harness] = []

    @property
    def controller(self) -> Controller:
        if self._controller is None:
            self._controller = Controller(
                RenderThread(self.engine, preferred_choice(self.settings), thumbnail_rest_s=0.0),
                ModelLoader(self.library),
                self.settings,
                self.messages,
                state_folder=self.state,
                bundled_model=self.bundled,
                bundled_seed=self.bundled_seed,
                clock=lambda: self.now_s,
                midi_ports=lambda: self.midi,
                make_pads=lambda: self.pads,
                make_drag_maker=self.make_drag_maker,
                make_projection=self.make_projection,
            )
            controller = self._controller
            for name, signal in {
                "session": controller.editing.session_changed,
                "history": controller.editing.history_changed,
                "drifting": controller.editing.drifting_changed,
                "model": controller.engine.model_changed,
                "loading": controller.engine.model.loading_changed,
                "export": controller.export.changed,
                "thumbnails": controller.thumbnails.changed,
            }.items():
                signal.connect(lambda name=name: self.heard.append(name))
            controller.engine.preview.frame_changed.connect(self._take_frame)
        return self._controller

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.pkl"

    def start(self, **arguments: Any) -> None:
        self.settings.change(performance_visible=False)
        self.controller.start(**arguments)
        self.until(lambda: self.frames)
        self.rest()

    def close(self) -> None:
        """Close this harness and those that `reopened` made, also after a failed test."""
        self.engine.gate.open()
        self.library.gate.open()
        self.controller.close()
        for harness in self._successors:
            harness.close()

    def reopened(self) -> Harness:
        """Close, and return a harness over the same files."""
        self.close()
        harness = Harness(self.folder, self._qtbot, self.messages)
        harness.engine, harness.library, harness.bundled = Engine(), self.library, self.bundled
        self._successors.append(harness)
        return harness

    def _take_frame(self) -> None:
        assert self.controller.engine.preview.frame is not None
        self.frames.append(self.controller.engine.preview.frame)

    def until(self, is_so: Callable[[], object]) -> None:
        self._qtbot.waitUntil(lambda: bool(is_so()), timeout=PATIENCE_MS)

    def rest(self) -> None:
        """Wait for the full picture of the session."""
        from explorer_app.session.resolve import resolve

        wanted = resolve(self.controller.editing.session)
        self.until(lambda: self.frames and replace(self.frames[-1].request, measure_steps=False) == wanted)

    def draft(self, since: int = 0) -> Frame:
        """Return the newest draft after frame number `since`, once there is one. The full picture may have followed."""

        def drafts() -> list[Frame]:
            return [frame for frame in self.frames[since:] if frame.is_draft]

        self.until(drafts)
        return drafts()[-1]

    def open(self, name: str) -> None:
        self.controller.files.open_model(self.path(name))
        self.until(lambda: self.controller.engine.model.facts and self.controller.engine.model.facts.name == name)

    def drag(self, *xs: float, release: bool = True) -> None:
        """Drag along the plane to each x in turn."""
        for x in xs[:-1] if release else xs:
            self.controller.editing.edit(SetParameter(PLACE, Position(x, 0.0)), False)
        if release:
            self.controller.editing.edit(SetParameter(PLACE, Position(xs[-1], 0.0)), True)

    @property
    def x(self) -> float:
        return self.controller.editing.session.position.x

    @property
    def labels(self) -> list[str]:
        """Labels of the history."""
        return [entry.label for entry in self.controller.editing.history.entries]

    def said(self, level: Level = Level.INFO) -> list[str]:
        """Sentences at a level or above."""
        return [message.sentence for message in self.messages.messages if message.level >= level]

    def has_said(self, part: str) -> bool:
        """Whether a sentence contains this."""
        return any(part in sentence for sentence in self.said())
