import pytest

from explorer_app.exporting.progress import Progress, ProgressMeter, time_text


def test_the_time_left_follows_the_pace() -> None:
    meter = ProgressMeter(10)
    assert meter.update(0, 0, 100.0).seconds_left is None
    assert meter.update(1, 0, 102.0).seconds_left == pytest.approx(18.0)
    assert meter.update(2, 0, 104.0).seconds_left == pytest.approx(16.0)


def test_frames_of_an_earlier_run_do_not_make_it_look_fast() -> None:
    meter = ProgressMeter(100)
    meter.update(90, 90, 0.0)
    assert meter.update(91, 90, 5.0).seconds_left == pytest.approx(45.0)


def test_what_comes_before_the_first_frame_does_not_count() -> None:
    meter = ProgressMeter(100)
    for now in (0.0, 50.0, 100.0):
        assert meter.update(90, 90, now).seconds_left is None
    assert meter.update(91, 90, 105.0).seconds_left == pytest.approx(45.0)


def test_the_time_left_runs_down_between_frames_and_never_below_zero() -> None:
    meter = ProgressMeter(3)
    meter.update(0, 0, 0.0)
    meter.update(1, 0, 10.0)
    assert meter.update(1, 0, 15.0).seconds_left == pytest.approx(15.0)
    assert meter.update(1, 0, 99.0).seconds_left == 0.0


def test_a_changed_pace_is_followed_within_the_window() -> None:
    meter = ProgressMeter(1000)
    now = 0.0
    for done in range(100):
        now += 1.0 if done < 50 else 0.1
        left = meter.update(done, 0, now).seconds_left
    assert left == pytest.approx(0.1 * 901)


def test_people_read_a_sentence() -> None:
    assert Progress(12, 48, 35.2).sentence == "12 of 48 frames, 35 s left"
    assert Progress(48, 48, 0.0).sentence == "48 of 48 frames"
    assert Progress(0, 1).sentence == "0 of 1 frame"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (59.4, "59 s"), (130, "2 min 10 s"), (3599.6, "1 h 00 min"), (3900, "1 h 05 min")],
)
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
