"""Take the README's first picture again: ``python packaging/window_picture.py [file.png] [options]``.

Opens the window on the bundled model with nothing remembered, goes for a walk in it and writes what is to be seen then.
It needs a display with room for 1600 x 980; ``xvfb-run -s '-screen 0 1600x980x24'`` makes one. The times in the picture
are those of the machine, so nothing else should be at work. ``--workspace measure --only performance`` takes README's
picture of the kernels on a machine with a GPU, ``--workspace animate`` the one of the timeline, with ``--only library``
that of the guide, with ``--state controllers`` that of the guide to controllers; ``--size``, ``--theme`` and other
states show the window as a user may meet it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from PySide6.QtWidgets import QApplication

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from explorer_app.app import App, Places  # noqa: E402
from explorer_app.messages import MessageLog  # noqa: E402
from explorer_app.session.edits import PLACE, AddSources, Edit, GoToSeed, SetParameters  # noqa: E402
from explorer_app.session.history import KeptSession  # noqa: E402
from explorer_app.session.parameters import SetParameter  # noqa: E402
from explorer_app.session.patch_table import SetPatches  # noqa: E402
from explorer_app.session.patches import Patch  # noqa: E402
from explorer_app.session.resolve import resolve_blend  # noqa: E402
from explorer_app.session.session import Position, Session, Source, as_still, in_project_of  # noqa: E402
from explorer_app.session.timeline.edits import SetTimeline, with_key, with_state, with_track  # noqa: E402
from explorer_app.session.tracks import WALK, Timeline, Track  # noqa: E402
from explorer_app.window.controllers.controllers_panel import ControllersPanel  # noqa: E402
from explorer_app.window.docks.layouts import WORKSPACES, WorkspaceName  # noqa: E402
from explorer_app.window.look import theme  # noqa: E402
from explorer_app.window.shell.dock_table import DOCKS  # noqa: E402
from gpu_backend import Latent, Point, RowRange  # noqa: E402

DEFAULT = ROOT / "assets" / "pictures" / "window.png"
WIDTH_PX, HEIGHT_PX = 1600, 980
STEP_S = 0.016
WALK_STEPS = 300
PATIENCE_S = 120.0
THUMBNAILS_S = 8.0
ANIMATE_S = 30.0


def tour(rows: int) -> Iterator[tuple[Edit, bool]]:
    """What is done one after the other in a network with so many rows of w, and whether it gets a star."""
    yield SetParameter(PLACE, Position(38.6, 0.0)), False
    yield SetParameter(PLACE, Position(38.2, 0.9)), False
    yield GoToSeed(28), True
    yield GoToSeed(41), False
    yield GoToSeed(42), True
    yield GoToSeed(38), False
    yield SetParameter("truncation.psi", 0.76), False
    trees = {"slider": 1.4, "rows": RowRange(4, 6), "star": True}
    for name, values in {
        "world/tree density": trees,
        "world/sky hue": {"slider": -0.6, "rows": RowRange(4, 13)},
    }.items():
        yield (
            SetParameters(tuple(SetParameter(f"{field}/{name}", value) for field, value in values.items()), "Slider"),
            False,
        )
    yield AddSources((_source(42, [0.6 if row >= 6 else 0.0 for row in range(rows)]),)), False
    yield AddSources((_source(55, [max(0.0, (row - 9) / (rows - 4)) for row in range(rows)]),)), True


def library(session: Session) -> tuple[KeptSession, ...]:
    """What is in the library in Animate, besides the stars of the tour."""
    seeds = {
        3: "evening",
        8: "pines",
        11: "ridge",
        16: "lake",
        19: "orchard",
        23: "shore",
        27: "storm",
        31: "haze",
        47: "glow",
    }
    loop = (8, 31)
    return tuple(
        KeptSession(as_still(GoToSeed(seed).apply(session)), name, float(seed), ("loop",) if seed in loop else ())
        for seed, name in seeds.items()
    )


def piece(session: Session) -> Timeline:
    """A timeline of ten seconds: pictures, three curves, a walk."""
    timeline = Timeline(end=Fraction(10), loop=(Fraction(0), Fraction(10)))
    for seed, t in ((38, 0), (28, 3), (42, 7), (38, 10)):
        timeline = with_state(timeline, in_project_of(as_still(GoToSeed(seed).apply(session)), session), Fraction(t))
    for path, keys in {
        "slider/world/sun height": ((0, -1.0), (4, 1.6), (10, -1.0)),
        "truncation.psi": ((0, 0.6), (5, 0.9), (10, 0.6)),
        "slider/world/haze": ((1, 0.0), (3, 0.8), (6, -0.5), (9, 0.0)),
    }.items():
        for t, value in keys:
            timeline = with_key(timeline, path, Fraction(t), value)
    return with_track(timeline, Track(WALK, period=Fraction(10), radius=0.3))


CONTROLLERS = {
    Patch("osc/sun/0", "slider/world/sun height", -2.0, 2.0): 0.3,
    Patch("osc/fader/0", "slider/world/sun side", -2.0, 2.0, attack_s=0.1, release_s=0.4): 0.85,
    Patch("midi/nanoKONTROL2/cc/1/21", "truncation.psi", 0.0, 1.0, is_picked_up=True): 0.3,
    Patch("input/rms", "noise.gain", 0.0, 2.0): 0.55,
}
"""Controllers of the picture with the state "controllers", and what each sends."""


def _source(seed: int, strengths: list[float]) -> Source:
    return Source(Latent(Point(((seed, 1.0),))), tuple(strengths), f"seed {seed}")


class Visitor:
    """Waits for the window while it works, and does things in it."""

    def __init__(self, qt: QApplication, app: App) -> None:
        self._qt = qt
        self._controller, self._window = app.controller, app.window

    def until(self, is_so: Callable[[], object]) -> None:
        """Let the window work until something is so."""
        end = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > end:
                raise SystemExit("The window did not come to rest.")
            self._qt.processEvents()
            time.sleep(0.004)

    def pause(self, seconds: float) -> None:
        """Let the window work for a while."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end)

    def rest(self) -> None:
        """Wait until the full picture of the session is there."""
        self.until(self._is_answered)

    def walk(self, radius: float) -> None:
        """Go in a circle as a hand does, and end where it began."""
        start = self._controller.editing.session.position
        for step in range(WALK_STEPS):
            angle = 2.0 * math.pi * step / WALK_STEPS
            place = Position(start.x + radius * math.sin(angle), start.y + radius * (1.0 - math.cos(angle)))
            self._controller.editing.edit(SetParameter(PLACE, place), final=False)
            self.pause(STEP_S)
        self._controller.editing.edit(SetParameter(PLACE, start))

    def _is_answered(self) -> bool:
        frame = self._window.canvas.frame
        return (
            frame is not None
            and not frame.is_draft
            and frame.request.blend == resolve_blend(self._controller.editing.session)
        )


def take_picture(
    qt: QApplication,
    target: Path,
    *,
    size: tuple[int, int] = (WIDTH_PX, HEIGHT_PX),
    mode: theme.Mode = "system",
    workspace: WorkspaceName = "explore",
    only: str = "",
    state: str = "",
) -> None:
    """Show the window, go for a walk, and write its picture to a file.

    Parameters
    ----------
    size
        Width and height of the window in px.
    mode, workspace
        Theme and workspace of the picture.
    only
        Key of a dock to show alone; empty for the whole window.
    state
        "loading", "error" or "message" for a window that says so; "controllers" for Animate with some mapped; empty for
        none.
    """
    messages = MessageLog()
    app = App(qt, messages, Places(None, None))
    controller, visitor = app.controller, Visitor(qt, app)
    try:
        app.start()
        app.window.resize(*size)
        app.window.actions_by_key[f"theme-{mode}"].trigger()
        visitor.rest()
        assert controller.engine.model.facts is not None
        for edit, star in tour(controller.engine.model.facts.num_ws):
            controller.editing.edit(edit)
            visitor.rest()
            if star and (entry := controller.editing.history.current) is not None:
                controller.editing.kept.star(entry.number, True)
        visitor.walk(0.4)
        visitor.rest()
        controller.engine.compare()
        visitor.until(lambda: controller.engine.comparison is not None)
        app.window.workspace.switch_to(workspace)
        if workspace == "animate":
            controller.editing.kept.add(library(controller.editing.session))
            controller.editing.edit(SetTimeline(piece(controller.editing.session), "Piece"))
            controller.playback.seek(Fraction(5), True)
        visitor.pause(THUMBNAILS_S if workspace != "animate" else ANIMATE_S)
        if state == "loading":
            app.window.message_strip.show_progress("portraits-1024.pkl", "Reading 43 %", 0.43)
        elif state == "error":
            messages.error(
                "This file is not a model: it begins with a web page; download the model itself, not the page.",
                "portraits-1024.pkl: 18,302 bytes",
            )
        elif state == "controllers":
            controller.editing.edit(SetPatches(tuple(CONTROLLERS)))
            app.window.docks["model"].raise_()
            app.window.docks["sliders"].raise_()
            visitor.pause(1.0)
            controller.live.inputs.set_on("osc", True)
            for patch, value in CONTROLLERS.items():
                controller.live.inputs.board.put(patch.source, value)
            visitor.pause(3.0)
            panel = app.window.docks["controllers"].findChild(ControllersPanel)
            assert panel is not None
            panel.select(1)
        elif state == "message":
            messages.info("Saved seed0038.png.")
        visitor.pause(0.2)
        target.parent.mkdir(parents=True, exist_ok=True)
        shown = app.window.docks[only] if only else app.window
        if not shown.grab().save(str(target)):
            raise SystemExit(f"{target} could not be written.")
    finally:
        app.close()
        app.window.deleteLater()


def main() -> None:
    """Read the command line and take the picture."""
    parser = argparse.ArgumentParser(description="Take a picture of the window.")
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT)
    parser.add_argument("--size", default=f"{WIDTH_PX}x{HEIGHT_PX}", help="width and height in px: 1280x720")
    parser.add_argument("--theme", default="system", choices=("system", "dark", "light"))
    parser.add_argument("--workspace", default="explore", choices=WORKSPACES)
    parser.add_argument("--only", default="", choices=("", *(spec.key for spec in DOCKS)), help="one dock alone")
    parser.add_argument("--state", default="", choices=("", "loading", "error", "message", "controllers"))
    calls = parser.parse_args()
    width, height = map(int, calls.size.split("x"))
    take_picture(
        QApplication(sys.argv[:1]),
        calls.file,
        size=(width, height),
        mode=calls.theme,
        workspace=calls.workspace,
        only=calls.only,
        state=calls.state,
    )


if __name__ == "__main__":
    main()
