"""A window opens with the picture and the controls of the last start, before anything is read or rendered."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QColor, QImage

from explorer_app.controller.known_model import KnownModel, known_from_json, known_to_json
from explorer_app.controller.last_start import MODEL_NAME, PICTURE_NAME
from explorer_app.session.edits import GoToSeed
from explorer_app.session.session import Position
from gpu_backend import LayerFacts
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import Library


def known_of(harness: Harness) -> KnownModel:
    return known_from_json((harness.state / MODEL_NAME).read_bytes())


@pytest.fixture
def second(harness: Harness) -> Iterator[Harness]:
    """The second start, after a first one that ended on seed 7; nothing is opened yet."""
    harness.start()
    harness.controller.editing.edit(GoToSeed(7))
    harness.rest()
    again = harness.reopened()
    again.library = Library()
    again.engine.gate.shut()
    again.library.gate.shut()
    yield again
    again.close()


def test_session_facts_and_picture_are_there_before_any_file_is_read_or_renderer_made(second: Harness) -> None:
    second.controller.restore_last()
    assert second.controller.engine.model.facts is not None
    assert second.controller.engine.model.facts.name == "cats"
    assert second.controller.engine.model.directions is not None
    assert second.controller.engine.model.directions.names == known_of(second).directions.names
    assert second.x == 7.0
    picture = second.controller.engine.stored_picture
    assert picture is not None
    assert not picture.isNull()
    assert second.library.read == []
    assert second.engine.made == []


def test_gestures_before_the_renderer_is_ready_are_rendered_once_it_is(second: Harness) -> None:
    second.controller.restore_last()
    second.controller.editing.edit(GoToSeed(9))
    second.engine.gate.open()
    second.library.gate.open()
    second.start()
    assert second.x == 9.0
    assert second.labels[-1] == "Go to seed"
    assert second.controller.engine.stored_picture is None


def test_the_picture_is_requested_once_though_the_model_was_known_before(second: Harness) -> None:
    second.engine.gate.open()
    second.library.gate.open()
    second.start()
    QCoreApplication.processEvents()
    full = [request for request in second.engine.requests if request.resolution is None and request.tap is None]
    assert len([request for request in full if request == second.frames[-1].request]) == 1
    assert second.heard.count("model") == 1


def test_a_first_start_shows_the_picture_and_the_controls_that_lie_beside_the_bundled_model(harness: Harness) -> None:
    harness.start()
    harness.close()
    known = replace(known_of(harness), mtime_ns=0)
    harness.path("cats").with_suffix(".start.json").write_bytes(known_to_json(known))
    image = QImage(16, 16, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    image.save(str(harness.path("cats").with_suffix(".start.jpg")))
    first = Harness(harness.folder, harness._qtbot, harness.messages)
    first.state = harness.folder / "nothing yet"
    first.bundled_seed = 38
    first.controller.restore_last()
    first.close()
    assert first.controller.engine.stored_picture is not None
    assert first.controller.engine.stored_picture.pixelColor(8, 8).red() > 200
    assert first.controller.engine.model.facts is not None
    assert first.controller.editing.session.position == Position(38.0, 0.0)


def test_a_file_that_was_replaced_is_not_taken_for_the_one_that_is_known(second: Harness) -> None:
    path = second.path("cats")
    path.write_bytes(path.read_bytes() + b" ")
    second.controller.restore_last()
    assert second.controller.engine.model.facts is None
    assert second.controller.engine.stored_picture is None


def test_a_model_that_is_refused_after_all_takes_its_controls_and_picture_away(second: Harness) -> None:
    stat = second.path("cats").stat()
    second.path("cats").write_bytes(b"broken")
    known = replace(known_of(second), mtime_ns=0)
    known = replace(known, facts=replace(known.facts, nbytes=second.path("cats").stat().st_size))
    (second.state / MODEL_NAME).write_bytes(known_to_json(known))
    assert stat.st_size != known.facts.nbytes
    second.library.gate.open()
    second.controller.start()
    assert second.controller.engine.model.facts is not None
    second.until(lambda: second.controller.engine.model.loading is None)
    assert second.controller.engine.model.facts is None
    assert second.controller.engine.stored_picture is None
    assert "cats.pkl is broken." in second.said()[-1]


def test_another_file_on_the_command_line_gets_neither_facts_nor_picture_of_the_last_one(second: Harness) -> None:
    second.controller.restore_last(second.path("dogs"))
    assert second.controller.engine.model.facts is None
    assert second.controller.engine.stored_picture is None


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b'{"version": 1}', b"\xff", b'{"version": 99}', b"[" * 100_000])
def test_a_damaged_file_costs_nothing_but_a_moment(second: Harness, damage: bytes) -> None:
    (second.state / MODEL_NAME).write_bytes(damage)
    (second.state / PICTURE_NAME).write_bytes(b"no picture")
    before = second.said()
    second.controller.restore_last()
    assert second.controller.engine.model.facts is None
    assert second.said() == before


def test_the_last_start_is_restored_from_known_fields_only(harness: Harness, tmp_path: Path) -> None:
    harness.start()
    harness.close()
    known = known_of(harness)
    known = replace(known, facts=replace(known.facts, layers=(LayerFacts("b4.conv1", 8, 4),), conv_clamp=256.0))
    assert known_from_json(known_to_json(known)) == known
    document = json.loads(known_to_json(known))
    for change in (
        {"resolution": "256"},
        {"layers": [{"name": 1}]},
        {"more": 1},
        {"conv_clamp": "x"},
        {"warnings": "x"},
    ):
        broken = {**document, "facts": {**document["facts"], **change}}
        with pytest.raises(ValueError):  # noqa: PT011 - any of its words will do
            known_from_json(json.dumps(broken).encode())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_start_does_not_wait_for_a_pipe_in_place_of_the_picture(second: Harness) -> None:
    (second.state / PICTURE_NAME).unlink()
    os.mkfifo(second.state / PICTURE_NAME)
    second.controller.restore_last()
    assert second.controller.engine.stored_picture is None


def test_facts_with_a_number_that_no_float_holds_are_refused(second: Harness) -> None:
    data = json.loads(known_to_json(known_of(second)))
    assert known_from_json(json.dumps(data).encode()) == known_of(second)
    data["directions"] = {"names": ["a"], "reach": [10**400], "rows": [{}], "centre": [0.0]}
    with pytest.raises(ValueError, match="is no float"):
        known_from_json(json.dumps(data).encode())
