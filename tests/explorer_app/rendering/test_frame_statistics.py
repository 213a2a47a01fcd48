import pytest

from explorer_app.rendering.frame_statistics import RING_SIZE, TRACE_S, FrameStatistics
from gpu_backend import Frame, FrameTimings, RenderRequest, StepTime
from tests.helpers.fake_engine import fake_frame
from tests.helpers.kernel_costs import gpu_statistics, gpu_steps, timed_frame


def frame(total_ms: float, *steps: StepTime) -> Frame:
    plain = fake_frame(RenderRequest("model"))
    return Frame(plain.request, plain.pixels, FrameTimings(total_ms, 1.0, total_ms - 1, steps))


def test_before_the_first_frame_every_figure_is_zero() -> None:
    statistics = FrameStatistics()
    assert (statistics.fps, statistics.percentiles_ms(50, 99), statistics.newest_ms) == (0, (0, 0), 0)
    assert statistics.gesture_to_screen_ms == 0
    assert statistics.steps == ()


def test_percentiles_are_those_of_the_frame_times() -> None:
    statistics = FrameStatistics()
    for index in range(101):
        statistics.frame_arrived(frame(float(index)), index * 0.01)
    assert statistics.percentiles_ms(50, 95, 99) == (50, 95, 99)
    assert statistics.newest_ms == 100


def test_only_the_newest_frames_are_looked_back_on() -> None:
    statistics = FrameStatistics()
    for index in range(RING_SIZE + 10):
        statistics.frame_arrived(frame(float(index)), index * 0.01)
    assert list(statistics.frame_times_ms) == list(range(10, RING_SIZE + 10))


def test_a_pause_between_two_gestures_is_not_a_slow_frame_rate() -> None:
    statistics = FrameStatistics()
    for now_s in (0.0, 0.05, 0.10, 9.0, 9.05):
        statistics.frame_arrived(frame(5.0), now_s)
    assert statistics.fps == pytest.approx(20.0)


def test_the_rate_of_a_picture_is_told_only_while_it_moves() -> None:
    statistics = FrameStatistics()
    assert statistics.moving_fps(0.0) is None
    for now_s in (0.0, 0.05, 0.10):
        statistics.frame_arrived(frame(5.0), now_s)
    assert statistics.moving_fps(0.2) == pytest.approx(20.0)
    assert statistics.moving_fps(1.2) is None


def test_a_measured_frame_gives_the_shares_and_is_left_out_of_the_times() -> None:
    statistics = FrameStatistics()
    statistics.frame_arrived(frame(5.0), 0.0)
    statistics.frame_arrived(frame(50.0, StepTime("a", "conv", 30, 1, 2), StepTime("b", "fir", 10, 3, 4)), 0.1)
    assert list(statistics.frame_times_ms) == [5.0]
    assert [(step.layer, step.share, step.nbytes) for step in statistics.steps] == [("a", 0.75, 2), ("b", 0.25, 4)]


def test_latency_runs_from_the_gesture_to_the_screen() -> None:
    statistics = FrameStatistics()
    for requested_s in (1.0, 2.0, 3.0):
        statistics.frame_painted(requested_s, requested_s + 0.02)
    assert statistics.gesture_to_screen_ms == pytest.approx(20.0)


def test_another_model_begins_with_empty_figures() -> None:
    statistics = FrameStatistics()
    statistics.frame_arrived(frame(5.0, StepTime("a", "conv", 30, 1, 2)), 0.0)
    statistics.dropped = 3
    statistics.clear()
    assert (statistics.percentiles_ms(50), statistics.dropped, statistics.steps) == ((0,), 0, ())


def test_on_a_gpu_the_graphs_time_and_the_hosts_are_medians_of_plain_frames() -> None:
    statistics = FrameStatistics()
    for device_ms in (0.4, 0.5, 0.9):
        statistics.frame_arrived(timed_frame(1.0, device_ms=device_ms, host_ms=device_ms / 10), 0.0)
    statistics.frame_arrived(timed_frame(9.0, gpu_steps(2), device_ms=8.0), 0.1)
    assert statistics.device_ms == pytest.approx(0.5)
    assert statistics.host_ms == pytest.approx(0.05)


def test_on_the_processor_there_is_no_device_time() -> None:
    statistics = FrameStatistics()
    statistics.frame_arrived(frame(5.0, StepTime("a", "conv", 30, 1, 2)), 0.0)
    assert (statistics.device_ms, statistics.host_ms, statistics.idle_ms) == (None, None, None)


def test_gaps_are_what_the_kernels_leave_of_the_device_time() -> None:
    statistics = FrameStatistics()
    statistics.frame_arrived(timed_frame(1.0, gpu_steps(2), device_ms=0.075), 0.0)  # kernels: 20 and 40 us
    assert statistics.idle_ms == pytest.approx(0.015)
    statistics.frame_arrived(timed_frame(1.0, gpu_steps(2), device_ms=0.05), 0.1)
    assert statistics.idle_ms == 0.0


def test_gaps_are_unknown_where_events_include_them_in_kernels() -> None:
    statistics = FrameStatistics()
    statistics.frame_arrived(timed_frame(1.0, gpu_steps(2), device_ms=0.06, source="events"), 0.0)
    assert statistics.idle_ms is None


def test_a_step_has_its_rates_and_keeps_what_is_known_of_its_kernel() -> None:
    step = gpu_statistics(fallback=0).steps[0]
    assert step.flop_per_s == pytest.approx(8e9 / 20e-6)
    assert step.bytes_per_s == pytest.approx(4e6 / 20e-6)
    assert step.facts is not None
    assert step.facts.state == "fallback"


def test_a_trace_looks_back_on_the_last_seconds_and_no_further() -> None:
    statistics = FrameStatistics()
    for second in range(30):
        statistics.frame_arrived(timed_frame(1.0), float(second))
    assert [round(item.arrived_s) for item in statistics.traced] == list(range(29 - round(TRACE_S), 30))
    statistics.clear()
    assert statistics.traced == ()
