from dataclasses import replace

import numpy as np
import pytest

from explorer_app.controller.drafts import DraftPolicy, shows_something
from gpu_backend import Frame, FrameTimings, RenderRequest, StepTime
from tests.helpers.fake_engine import fake_frame
from tests.helpers.networks import make_stylegan2

FACTS = replace(make_stylegan2().facts, resolution=1024, draft_resolutions=(4, 8, 16, 32, 64, 128, 256, 512))


def frame(total_ms: float, resolution: int | None = None, measured: bool = False) -> Frame:
    steps = (StepTime("a", "b", 1.0, 0, 0),) if measured else ()
    pixels = fake_frame(RenderRequest("x")).pixels
    timings = FrameTimings(total_ms, 0, total_ms, steps)
    return Frame(RenderRequest("x", resolution=resolution), pixels, timings, is_draft=resolution is not None)


def empty(item: Frame) -> Frame:
    return replace(item, pixels=np.full_like(item.pixels, 128))


def policy(*frames: Frame) -> DraftPolicy:
    made = DraftPolicy(33.0, 33.0)
    for item in frames:
        made.frame_arrived(item, FACTS)
    return made


def test_without_a_measured_time_the_picture_of_a_network_that_is_not_large_is_full() -> None:
    facts = replace(FACTS, resolution=512, draft_resolutions=FACTS.draft_resolutions[:-1])
    assert policy().resolution(facts) is None


def test_the_first_draft_of_a_large_network_is_small_and_waits_for_no_full_picture() -> None:
    assert policy().resolution(FACTS) == 64
    assert policy().resolution(replace(FACTS, draft_resolutions=(4, 8, 16, 32))) is None, "too pale"
    assert policy().resolution(replace(FACTS, draft_resolutions=(512,))) is None


@pytest.mark.parametrize(("draft_ms", "draft"), [(5.0, None), (15.0, 512), (30.0, 256), (50.0, 128), (1e6, 64)])
def test_drafts_alone_tell_what_other_sizes_take(draft_ms: float, draft: int | None) -> None:
    assert policy(frame(draft_ms, 256), frame(draft_ms, 256)).resolution(FACTS) == draft


def test_a_draft_is_not_too_slow_because_its_first_picture_paid_for_its_plan() -> None:
    assert policy(frame(90.0), frame(150.0, 256)).resolution(FACTS) == 256
    assert policy(frame(90.0), frame(150.0, 256), frame(30.0, 256)).resolution(FACTS) == 256
    assert policy(frame(150.0, 64)).resolution(FACTS) == 64


def test_a_draft_that_is_far_too_slow_is_not_tried_again() -> None:
    assert policy(frame(90.0), frame(400.0, 256)).resolution(FACTS) == 64
    assert policy(frame(400.0, 64)).resolution(FACTS) == 64


def test_drafts_in_which_nothing_was_to_be_seen_are_not_chosen_again() -> None:
    made = policy(frame(1e6), empty(frame(10.0, 64)))
    assert made.resolution(FACTS) == 128
    made.clear()
    made.frame_arrived(frame(1e6), FACTS)
    assert made.resolution(FACTS) == 64, "another model shows something earlier"


def test_where_no_draft_shows_anything_pictures_are_full() -> None:
    assert policy(frame(1e6), empty(frame(10.0, 512))).resolution(FACTS) is None


def test_a_full_picture_in_one_colour_is_a_picture() -> None:
    assert shows_something(empty(frame(10.0)))
    assert not shows_something(empty(frame(10.0, 64)))


def test_a_full_picture_within_the_budget_needs_no_draft() -> None:
    assert policy(frame(33.0)).resolution(FACTS) is None


@pytest.mark.parametrize(("full_ms", "draft"), [(50.0, 512), (90.0, 256), (150.0, 128), (1e6, 64)])
def test_the_largest_draft_that_is_expected_in_time_is_chosen(full_ms: float, draft: int) -> None:
    assert policy(frame(full_ms)).resolution(FACTS) == draft


def test_a_measured_time_replaces_the_estimate() -> None:
    assert policy(frame(50.0), frame(40.0, 512), frame(40.0, 512)).resolution(FACTS) == 256
    assert policy(frame(500.0), frame(20.0, 512)).resolution(FACTS) == 512


def test_the_first_frame_which_pays_for_its_plan_does_not_count_for_good() -> None:
    assert policy(frame(900.0), frame(20.0)).resolution(FACTS) is None


def test_frames_that_were_slowed_by_measuring_do_not_count() -> None:
    assert policy(frame(20.0), frame(90.0, measured=True)).resolution(FACTS) is None


def test_a_network_without_early_exits_is_always_full() -> None:
    assert policy(frame(500.0)).resolution(replace(FACTS, draft_resolutions=())) is None


def test_a_draft_may_take_longer_than_a_full_picture_since_a_sharper_one_is_worth_more() -> None:
    made = DraftPolicy(33.0, 50.0)
    for item in (frame(150.0), frame(45.0, 128), frame(45.0, 128)):
        made.frame_arrived(item, FACTS)
    assert made.resolution(FACTS) == 128


def test_a_size_stays_while_its_times_go_a_little_up_and_down() -> None:
    made = policy(frame(150.0), *[frame(30.0, 128)] * 3)
    chosen = []
    for ms in (30.0, 36.0, 32.0, 37.0, 35.0, 38.0, 37.0):
        made.frame_arrived(frame(ms, 128), FACTS)
        chosen.append(made.resolution(FACTS))
    assert set(chosen) == {128}
    for _ in range(5):
        made.frame_arrived(frame(45.0, 128), FACTS)
    assert made.resolution(FACTS) == 64


@pytest.mark.parametrize(("draft_ms", "stays"), [(47.0, True), (49.0, False)])
def test_a_size_stays_only_while_it_leaves_twenty_frames_a_second(draft_ms: float, stays: bool) -> None:
    made = DraftPolicy()
    for ms in (1e3, 30.0, 30.0):
        made.frame_arrived(frame(ms, 128 if ms < 1e3 else None), FACTS)
    assert made.resolution(FACTS) == 128
    for _ in range(5):
        made.frame_arrived(frame(draft_ms, 128), FACTS)
    assert (made.resolution(FACTS) == 128) is stays


def test_a_size_that_was_too_slow_long_ago_is_tried_again() -> None:
    made = policy(frame(80.0), *[frame(60.0, 256)] * 5)
    made.frame_arrived(frame(20.0, 128), FACTS)
    assert made.resolution(FACTS) == 128
    for _ in range(300):
        made.frame_arrived(frame(20.0, 128), FACTS)
    assert made.resolution(FACTS) == 256


def test_another_model_begins_without_times() -> None:
    made = policy(frame(20.0))
    made.clear()
    assert made.resolution(FACTS) == policy().resolution(FACTS)
