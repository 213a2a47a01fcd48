"""The goals are held against the right numbers, and only where they were set."""

from dataclasses import replace
from typing import Any

import pytest

from gpu_backend.bench.report import OURS, Gesture, Report
from gpu_backend.bench.verdict import judge
from tests.gpu_backend.bench.made_up import RUN, made_up_report, measurement


def outcomes(report: Report) -> list[str]:
    return [line.outcome for line in judge(report)]


def test_each_goal_is_judged_by_its_own_number() -> None:
    lines = {line.name: line for line in made_up_report().verdict}
    assert lines["batch 1"].value == pytest.approx(0.4)
    assert lines["batch 1"].outcome == "met, aim too"
    assert lines["batch 8, an image"].value == pytest.approx(2.5 / 8)
    assert lines["batch 1, times as fast as torch.compile"].value == pytest.approx(3.0)
    assert lines["gesture to frame on the host, batch 1, p99"].outcome == "not met"
    assert lines["host time a frame"].outcome == "met, aim too"


def test_on_the_line_is_met_and_between_must_and_aim_is_met_without_the_aim() -> None:
    rows = (measurement(OURS, "fp16", 1, 0.8), measurement("compiled", "fp16", 1, 1.25))
    gesture = Gesture("fp16", 1000, 1.0, 2.0, 0.4, 0.3, 0.3, 1)
    met = outcomes(Report(RUN, rows, gestures=(gesture,)))
    assert met == ["met", "met", "not measured", "not measured", "met", "met"]


def test_a_slower_peer_and_another_precision_do_not_count() -> None:
    rows = (measurement(OURS, "fp32", 1, 0.1), measurement("eager", "fp16", 1, 99.0))
    assert set(outcomes(Report(RUN, rows))) == {"not measured"}


@pytest.mark.parametrize("change", [{"network": "ffhq256"}, {"device": "NVIDIA L4"}, {"device_kind": "cpu"}])
def test_another_network_or_gpu_is_not_judged(change: dict[str, Any]) -> None:
    report = made_up_report()
    assert judge(replace(report, run=replace(RUN, **change))) == ()
