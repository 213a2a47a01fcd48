"""Frames and their steps as a Chrome trace: JSON that chrome://tracing and ui.perfetto.dev open.

Overlapping frames are on separate tracks. The steps of a measured frame have no time of day, only a length: they
are laid end to end from where their frame began to be synthesised, in the order in which they ran.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorer_app.exporting.output_file import write_output
from gpu_backend import Disk, FrameTimings, StepTime, dataclass

_PROCESS = 1
_FIRST_LANE = 1
_STEPS_LANE = 100
"""Beyond the lane of any frame."""


@dataclass(frozen=True, slots=True)
class TracedFrame:
    """A frame as the trace knows it: when it arrived, in seconds from anywhere, its size and its times."""

    arrived_s: float
    width: int
    height: int
    is_draft: bool
    timings: FrameTimings

    @property
    def began_s(self) -> float:
        """When its request was taken."""
        return self.arrived_s - self.timings.total_ms / 1000.0


def write_trace(path: Path, frames: Iterable[TracedFrame], device: str, disk: Disk | None = None) -> None:
    """Write a trace in one piece.

    Raises
    ------
    ExportError
        If the disk is full or the system refuses; nothing of the new file is left, an older one is untouched.
    """
    write_output(path, json.dumps(trace(frames, device), separators=(",", ":")).encode(), disk)


def trace(frames: Iterable[TracedFrame], device: str) -> dict[str, Any]:
    """Return frames as the object of a trace; the first frame begins at 0."""
    frames = sorted(frames, key=lambda frame: frame.began_s)
    start_s = frames[0].began_s if frames else 0.0
    lanes: list[float] = []
    events: list[dict[str, Any]] = []
    for number, frame in enumerate(frames):
        lane = _free_lane(lanes, frame)
        at_us = (frame.began_s - start_s) * 1e6
        events.extend(_frame_events(frame, number, at_us, _FIRST_LANE + lane))
        if frame.timings.steps:
            events.extend(_step_events(frame.timings.steps, number, at_us + frame.timings.latent_ms * 1000.0))
    names = {_FIRST_LANE + lane: f"frames {lane + 1}" if lane else "frames" for lane in range(len(lanes))}
    names[_STEPS_LANE] = "steps of measured frames"
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "device": device,
            "steps": "laid end to end from the beginning of their frame's synthesis, in the order in which they ran",
        },
        "traceEvents": [*_names(names), *events],
    }


def _free_lane(lanes: list[float], frame: TracedFrame) -> int:
    """Return the first lane that is free when a frame begins, and keep it until the frame's end."""
    for lane, end_s in enumerate(lanes):
        if end_s <= frame.began_s:
            lanes[lane] = frame.arrived_s
            return lane
    lanes.append(frame.arrived_s)
    return len(lanes) - 1


def _names(lanes: dict[int, str]) -> list[dict[str, Any]]:
    """Return the events that name the process and its lanes."""
    named = [{"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": "Latent Loom"}}]
    for lane, name in lanes.items():
        about: dict[str, Any] = {"ph": "M", "pid": _PROCESS, "tid": lane}
        named.append({**about, "name": "thread_name", "args": {"name": name}})
        named.append({**about, "name": "thread_sort_index", "args": {"sort_index": lane}})
    return named


def _slice(name: str, category: str, at_us: float, long_us: float, lane: int, args: dict[str, Any]) -> dict[str, Any]:
    return {
        "ph": "X",
        "pid": _PROCESS,
        "tid": lane,
        "name": name,
        "cat": category,
        "ts": round(at_us, 3),
        "dur": round(long_us, 3),
        "args": args,
    }


def _frame_events(frame: TracedFrame, number: int, at_us: float, lane: int) -> list[dict[str, Any]]:
    """Return the events of a frame: the frame, its parts, and its time as a counter."""
    timings = frame.timings
    size = f"{frame.width} × {frame.height}"
    whole: dict[str, Any] = {"number": number, "draft": frame.is_draft, "measured": bool(timings.steps)}
    for name in ("device_ms", "host_ms"):
        if (value := getattr(timings, name)) is not None:
            whole[name] = value
    latent_us = timings.latent_ms * 1000.0
    return [
        _slice(f"frame {size}", "frame", at_us, timings.total_ms * 1000.0, lane, whole),
        _slice("latent", "frame", at_us, latent_us, lane, {}),
        _slice("synthesis", "frame", at_us + latent_us, timings.synthesis_ms * 1000.0, lane, {}),
        {
            "ph": "C",
            "pid": _PROCESS,
            "name": "frame time, ms",
            "ts": round(at_us, 3),
            "args": {"ms": timings.total_ms},
        },
    ]


def _step_events(steps: Sequence[StepTime], number: int, at_us: float) -> list[dict[str, Any]]:
    events = []
    for step in steps:
        args: dict[str, Any] = {"layer": step.layer, "frame": number, "flops": step.flops, "bytes": step.nbytes}
        if step.facts is not None:
            args |= asdict(step.facts)
        events.append(_slice(step.kernel, "step", at_us, step.time_us, _STEPS_LANE, args))
        at_us += step.time_us
    return events
