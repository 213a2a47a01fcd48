"""Which requests the picture in the window makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer_app.controller.preview_requests import PreviewRequests
from explorer_app.session.session import ModelReference, Position, Session
from gpu_backend import Tap
from tests.helpers.fake_controller import facts
from tests.helpers.fake_engine import fake_frame

FACTS = facts()
SESSION = Session(model=ModelReference(FACTS.path, FACTS.name, FACTS.model_id))
MOVED = replace(SESSION, position=Position(1.5, 0.0))


@pytest.fixture
def requests() -> PreviewRequests:
    made = PreviewRequests()
    made.show_device(is_gpu=True)
    made.show_model(FACTS, has_picture=True)
    return made


def test_without_a_model_or_for_another_one_there_is_no_request(requests: PreviewRequests) -> None:
    other = replace(SESSION, model=ModelReference("", "", "another"))
    assert requests.choose(other, live=False, by_hand=True) is None
    requests.show_no_model()
    assert requests.choose(SESSION, live=False, by_hand=True) is None


def test_what_is_under_way_or_on_the_screen_is_not_sent_again(requests: PreviewRequests) -> None:
    first = requests.choose(SESSION, live=False, by_hand=True)
    again = requests.choose(SESSION, live=False, by_hand=True)
    assert first is not None
    assert again is not None
    assert (first.is_full, first.is_new, again.is_new) == (True, True, False)
    requests.forget_newest()
    once_more = requests.choose(SESSION, live=False, by_hand=False)
    assert once_more is not None
    assert once_more.is_new


def test_the_first_picture_of_a_large_model_on_the_cpu_is_a_draft_until_its_frame_is_there(
    requests: PreviewRequests,
) -> None:
    requests.show_device(is_gpu=False)
    requests.show_model(facts(resolution=1024, draft_resolutions=(32, 64, 128, 256, 512)), has_picture=False)
    first = requests.choose(SESSION, live=False, by_hand=True)
    assert first is not None
    assert not first.is_full
    assert requests.awaits_first
    assert requests.frame_arrived(replace(fake_frame(first.request), is_draft=True))
    assert not requests.awaits_first
    full = requests.choose(SESSION, live=False, by_hand=False)
    assert full is not None
    assert full.is_full


def test_a_gesture_that_does_not_move_the_picture_requests_nothing(requests: PreviewRequests) -> None:
    assert requests.choose(MOVED, live=True, by_hand=True) is not None
    assert requests.choose(MOVED, live=True, by_hand=True) is None
    assert requests.choose(SESSION, live=True, by_hand=True) is not None
    assert requests.choose(MOVED, live=False, by_hand=False) is not None, "as of a search"
    assert requests.choose(SESSION, live=True, by_hand=True) is not None, "another picture came between"


def test_a_measurement_passes_to_newer_requests_until_a_measured_frame_arrives(requests: PreviewRequests) -> None:
    plain = requests.choose(SESSION, live=False, by_hand=True)
    assert plain is not None
    assert not plain.request.measure_steps
    assert requests.measure_next()
    for session in (MOVED, SESSION):
        measured = requests.choose(session, live=False, by_hand=True)
        assert measured is not None
        assert measured.request.measure_steps
        assert not requests.measure_next(), "the newest request is measured already"
        newest = measured.request
    assert requests.frame_arrived(fake_frame(newest))
    after = requests.choose(MOVED, live=False, by_hand=True)
    assert after is not None
    assert not after.request.measure_steps


def test_values_are_included_only_where_a_layer_is_shown(requests: PreviewRequests) -> None:
    requests.read_values(True)
    shown = replace(SESSION, tap=Tap("b8.conv0"))
    layer = requests.choose(shown, live=False, by_hand=True)
    picture = requests.choose(SESSION, live=False, by_hand=True)
    assert layer is not None
    assert picture is not None
    assert (layer.request.wants_tap_values, picture.request.wants_tap_values) == (True, False)


def test_a_frame_of_a_former_model_counts_for_nothing(requests: PreviewRequests) -> None:
    chosen = requests.choose(SESSION, live=False, by_hand=True)
    assert chosen is not None
    assert not requests.frame_arrived(fake_frame(replace(chosen.request, model_id="another")))
