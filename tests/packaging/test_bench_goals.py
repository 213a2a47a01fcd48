"""The goals are held against the right numbers, and only where they were set."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpu_backend.bench.report import OURS, Gesture, Report, to_json
from tests.gpu_backend.bench.made_up import RUN, made_up_report, measurement

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "bench_goals.py"


@pytest.fixture(scope="module")
def goals() -> Any:
    spec = importlib.util.spec_from_file_location("bench_goals", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_goal_is_judged_by_its_own_number(goals: Any) -> None:
    lines = {line.name: line for line in goals.judge(made_up_report())}
    assert lines["fp16, batch 1, an image"].value == pytest.approx(0.4)
    assert lines["fp16, batch 1, an image"].outcome == "met"
    assert lines["fp16, batch 8, an image"].value == pytest.approx(2.5 / 8)
    assert lines["fp16, batch 1, times as fast as torch.compile"].value == pytest.approx(3.0)
    assert lines["gesture to frame on the host, batch 1, p50"].outcome == "not met"
    assert lines["host time a frame"].outcome == "met, aim too"


def test_on_the_line_is_met_and_what_was_not_measured_is_said(goals: Any) -> None:
    rows = (measurement(OURS, "fp16", 1, 0.42), measurement("compiled", "fp16", 1, 0.63))
    gesture = Gesture("fp16", 1000, 0.6, 2.0, 0.4, 0.3, 0.3, 1)
    met = [line.outcome for line in goals.judge(Report(RUN, rows, gestures=(gesture,)))]
    assert met == ["met", *["not measured"] * 3, "met", *["not measured"] * 2, "met", "met"]


def test_other_precisions_have_goals_of_their_own(goals: Any) -> None:
    rows = (
        measurement(OURS, "fp8", 8, 8 * 0.25),
        measurement(OURS, "tf32", 1, 1.7),
        measurement("compiled", "tf32", 1, 1.87),
    )
    outcomes = {line.name: line.outcome for line in goals.judge(Report(RUN, rows))}
    assert outcomes["fp8, batch 8, an image"] == "met"
    assert outcomes["tf32, batch 1, an image"] == "not met"
    assert outcomes["tf32, batch 1, times as fast as torch.compile"] == "met"


def test_another_precision_does_not_count(goals: Any) -> None:
    rows = (measurement(OURS, "fp32", 1, 0.1), measurement("eager", "fp16", 1, 99.0))
    assert {line.outcome for line in goals.judge(Report(RUN, rows))} == {"not measured"}


@pytest.mark.parametrize("change", [{"network": "ffhq256"}, {"device": "NVIDIA L4"}, {"device_kind": "cpu"}])
def test_another_network_or_gpu_is_not_judged(goals: Any, change: dict[str, Any]) -> None:
    report = made_up_report()
    assert goals.judge(replace(report, run=replace(RUN, **change))) == ()


def test_the_exit_status_says_whether_all_is_met(
    goals: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(to_json(made_up_report())))
    assert goals.main([str(file)]) == 1
    assert "not met" in capsys.readouterr().out
    file.write_text(json.dumps(to_json(replace(made_up_report(), gestures=()))))
    assert goals.main([str(file)]) == 0
    file.write_text("{}")
    assert goals.main([str(file)]) == 2
