import json
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.chrome_trace import TracedFrame, trace, write_trace
from explorer_app.exporting.errors import ExportError
from gpu_backend import FrameTimings, StepTime
from tests.helpers.failing_disk import FullDisk
from tests.helpers.kernel_costs import gpu_steps


def traced(arrived_s: float, total_ms: float = 2.0, steps: tuple[StepTime, ...] = ()) -> TracedFrame:
    timings = FrameTimings(total_ms, 0.5, total_ms - 0.5, steps, device_ms=0.4, host_ms=0.1)
    return TracedFrame(arrived_s, 256, 256, False, timings)


def slices(document: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == "X" and event["name"] == name]


def test_a_frame_is_a_slice_with_its_latent_and_its_synthesis_in_it() -> None:
    document = trace([traced(100.010), traced(100.020)], "Loom 9000")
    frames = slices(document, "frame 256 × 256")
    assert [round(frame["ts"]) for frame in frames] == [0, 10_000]
    assert [frame["dur"] for frame in frames] == [2000, 2000]
    assert frames[0]["args"]["device_ms"] == 0.4
    latent, synthesis = slices(document, "latent")[0], slices(document, "synthesis")[0]
    assert (latent["ts"], latent["dur"]) == (0, 500)
    assert (synthesis["ts"], synthesis["dur"]) == (500, 1500)
    assert latent["tid"] == synthesis["tid"] == frames[0]["tid"]


def test_kernels_of_a_measured_frame_lie_end_to_end_with_everything_that_is_known_of_them() -> None:
    document = trace([traced(100.010, steps=gpu_steps(3, fallback=1))], "Loom 9000")
    kernels = slices(document, "modulated_conv")
    assert [kernel["dur"] for kernel in kernels] == [20, 40, 60]
    assert [kernel["ts"] for kernel in kernels] == [500, 520, 560]
    assert kernels[1]["args"]["state"] == "fallback"
    assert kernels[1]["args"]["registers"] == 96
    assert kernels[0]["args"]["layer"] == "synthesis.b4.conv1"
    assert kernels[0]["tid"] != slices(document, "frame 256 × 256")[0]["tid"]


def test_steps_of_the_processor_of_which_nothing_else_is_known_are_slices_too() -> None:
    step = StepTime("synthesis.b4.conv1", "modulated_conv", 30.0, 1000, 200)
    document = trace([traced(100.010, steps=(step,))], "CPU")
    (kernel,) = slices(document, "modulated_conv")
    assert kernel["args"] == {"layer": "synthesis.b4.conv1", "frame": 0, "flops": 1000, "bytes": 200}


def test_frames_that_overlap_lie_in_lanes_of_their_own() -> None:
    document = trace([traced(1.002, 2.0), traced(1.003, 2.0), traced(1.0045, 2.0)], "Loom 9000")
    lanes = [frame["tid"] for frame in slices(document, "frame 256 × 256")]
    assert lanes[0] != lanes[1]
    assert lanes[2] == lanes[0]
    names = {event["tid"]: event["args"]["name"] for event in document["traceEvents"] if event["name"] == "thread_name"}
    assert {lanes[0], lanes[1]} <= set(names)


def test_no_slice_of_a_lane_overlaps_another_unless_it_lies_within_it() -> None:
    document = trace([traced(1 + i / 1000, 2.5) for i in range(50)], "Loom 9000")
    ends: dict[int, float] = {}
    for frame in slices(document, "frame 256 × 256"):
        assert frame["ts"] >= ends.get(frame["tid"], 0.0) - 0.01
        ends[frame["tid"]] = frame["ts"] + frame["dur"]


def test_a_trace_of_nothing_is_a_trace() -> None:
    assert trace([], "CPU")["otherData"]["device"] == "CPU"


def test_the_file_is_json_and_there_whole(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "trace.json"
    write_trace(path, [traced(1.0, steps=gpu_steps(2))], "Loom 9000 (fp16)")
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ms"
    assert [entry.name for entry in path.parent.iterdir()] == ["trace.json"]


def test_a_full_disk_is_reported_in_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="disk is full"):
        write_trace(tmp_path / "trace.json", [traced(1.0)], "CPU", FullDisk(0))
    assert list(tmp_path.iterdir()) == []
