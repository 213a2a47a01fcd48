import pytest

from explorer_app.rendering.frame_statistics import RING_SIZE, FrameStatistics
from gpu_backend import Frame, FrameTimings, RenderRequest, StepTime
from tests.helpers.fake_engine import fake_frame


def frame(total_ms: float, *steps: StepTime) -> Frame:
    plain = fake_frame(RenderRequest("model"))
    return Frame(plain.request, plain.pixels, FrameTimings(total_ms, 1.0, total_ms - 1, steps))


def test_before_the_first_frame_every_figure_is_zero():
    statistics = FrameStatistics()
    assert (statistics.fps, statistics.p50_ms, statistics.p99_ms, statistics.newest_ms) == (0, 0, 0, 0)
    assert statistics.gesture_to_screen_ms == 0
    assert statistics.steps == ()


def test_percentiles_are_those_of_the_frame_times():
    statistics = FrameStatistics()
    for index in range(101):
        statistics.frame_arrived(frame(float(index)), index * 0.01)
    assert (statistics.p50_ms, statistics.p95_ms, statistics.p99_ms) == (50, 95, 99)
    assert statistics.newest_ms == 100


def test_only_the_newest_frames_are_looked_back_on():
    statistics = FrameStatistics()
    for index in range(RING_SIZE + 10):
        statistics.frame_arrived(frame(float(index)), index * 0.01)
    assert list(statistics.frame_times_ms) == list(range(10, RING_SIZE + 10))


def test_a_pause_between_two_gestures_is_not_a_slow_frame_rate():
    statistics = FrameStatistics()
    for now_s in (0.0, 0.05, 0.10, 9.0, 9.05):
        statistics.frame_arrived(frame(5.0), now_s)
    assert statistics.fps == pytest.approx(20.0)


def test_a_measured_frame_gives_the_shares_and_is_left_out_of_the_times():
    statistics = FrameStatistics()
    statistics.frame_arrived(frame(5.0), 0.0)
    statistics.frame_arrived(frame(50.0, StepTime("a", "conv", 30, 1, 2), StepTime("b", "fir", 10, 3, 4)), 0.1)
    assert list(statistics.frame_times_ms) == [5.0]
    assert [(step.layer, step.share, step.nbytes) for step in statistics.steps] == [("a", 0.75, 2), ("b", 0.25, 4)]


def test_latency_runs_from_the_gesture_to_the_screen():
    statistics = FrameStatistics()
    for asked_s in (1.0, 2.0, 3.0):
        statistics.frame_painted(asked_s, asked_s + 0.02)
    assert statistics.gesture_to_screen_ms == pytest.approx(20.0)


def test_another_model_begins_with_empty_figures():
    statistics = FrameStatistics()
    statistics.frame_arrived(frame(5.0, StepTime("a", "conv", 30, 1, 2)), 0.0)
    statistics.dropped = 3
    statistics.clear()
    assert (statistics.p50_ms, statistics.dropped, statistics.steps) == (0, 0, ())
