"""The picture follows the hand and never queues, however slow the engine is: counted, not timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint

from explorer_app.controller import preview
from explorer_app.session.resolve import resolve_blend
from gpu_backend import Frame
from tests.helpers import mouse
from tests.helpers.fake_renderer import Engine, Library
from tests.helpers.patience import PATIENCE_MS
from tests.helpers.person import Person

EVENTS = 3000
EVENTS_PER_FRAME = 100
"""A thousand events a second, and a frame that takes 100 ms."""


def _have_more_passed(engine: Engine, count: int) -> bool:
    return len(engine.requests) + len(engine.given_up) > count


def test_after_three_thousand_moves_the_last_gesture_is_two_frames_away(
    sit_down: Callable[..., Person], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "cats.pkl"
    model.write_text("a model")
    engine = Engine(full_ms=100.0)
    monkeypatch.setattr(preview, "REST_MS", 10 * PATIENCE_MS)  # a machine that pauses is no hand that rests
    person = sit_down(read=Library(), backend=engine, bundled=model)
    person.start()
    painted: list[Frame] = []
    person.canvas.painted.connect(painted.append)

    engine.gate.shut()
    begun = len(engine.requests)
    at = person.canvas.rect().center()
    mouse.press(person.canvas, at)
    for number in range(1, EVENTS + 1):
        # A hand that goes to and fro, and one pixel further each time.
        at += QPoint(2, 1) if number % 2 else QPoint(-1, -1)
        mouse.move(person.canvas, at)
        if number % EVENTS_PER_FRAME == 0:
            rendered = len(engine.requests)
            while len(engine.requests) == rendered:  # a request at rest, from before the drag, gives way at the gate
                passed = rendered + len(engine.given_up)
                engine.gate.let_through()
                person.until(partial(_have_more_passed, engine, passed))

    person.until(lambda: not person.canvas._way.is_ticking)  # the end of the way is followed with the next refresh
    last = resolve_blend(person.session)
    before = len(engine.requests)
    assert before - begun == EVENTS // EVENTS_PER_FRAME, "every frame was taken by one request; none waits in a queue"
    engine.gate.open()
    person.until(lambda: painted and painted[-1].request.blend == last)
    rendered_since = [request.blend for request in engine.requests[before - 1 :]]
    assert rendered_since.index(last) < 3, "the frame under way at the last move, one that waited, and the answer"

    mouse.release(person.canvas, at)
    assert not person.look().is_draft
    assert painted[-1].request.blend == last
