"""Results of a benchmark as frozen data, stored as JSON."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gpu_backend.errors import RequestError
from gpu_backend.frame import KernelCounters

FORMAT = 1
OURS = "latentloom"
NO_GRAPH = "latentloom, no graph"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Where, when and with what. `commit` ends in "+" where files differed from it."""

    date: str
    command: str
    commit: str
    device: str
    device_kind: Literal["cpu", "cuda"]
    driver: str
    reason: str
    versions: Mapping[str, str]
    network: str
    resolution: int
    parameters: int
    threads: int
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """A contender's network on one device.

    Attributes
    ----------
    latency_ms, least_ms
        Median and least time from w rows to the bytes of `batch` pictures.
    nbytes
        Peak device memory; None where it is not measured.
    prepare_s
        Building, compiling and tuning, before the first timed run.
    image_j
        Energy a picture of the whole GPU, in joules, idle power included; None where it is not measured.
    """

    who: str
    precision: str
    batch: int
    latency_ms: float
    least_ms: float
    nbytes: int | None
    warm_up: int
    runs: int
    prepare_s: float
    image_j: float | None = None

    @property
    def images_per_s(self) -> float:
        """Pictures a second at the median."""
        return self.batch / self.latency_ms * 1e3

    @property
    def image_ms(self) -> float:
        """Milliseconds a picture."""
        return self.latency_ms / self.batch


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was not measured, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Median time of one step; what is known of its kernel is 0 or empty on the processor.

    Attributes
    ----------
    limits
        What limits the theoretical occupancy.
    counters
        None unless they were measured.
    """

    batch: int
    layer: str
    kernel: str
    time_us: float
    share: float
    flops: int
    nbytes: int
    roofline_share: float | None
    state: str = ""
    reason: str = ""
    registers: int = 0
    shared_nbytes: int = 0
    spill_nbytes: int = 0
    occupancy: float = 0.0
    waves: float = 0.0
    limits: tuple[str, ...] = ()
    counters: KernelCounters | None = None


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The roofline: bytes a second of a copy, read and written both counted, and operations a second by precision."""

    copy_bytes_per_s: float
    flop_per_s: Mapping[str, float]
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Compiling:
    """Time until a model's kernels are ready, on a number of threads.

    Attributes
    ----------
    cold_s, cached_s
        With an empty cache, and with one that holds them.
    """

    precision: str
    kernels: int
    threads: int
    cold_s: float
    cached_s: float


@dataclass(frozen=True, slots=True)
class Gesture:
    """Latency of a gesture: from the request to the bytes on the host, one frame at a time.

    Attributes
    ----------
    device_ms
        Median time of the device's own work; None on the processor.
    host_ms
        Median of what this process itself did for a frame, waiting excluded; None where that is not measured.
    cpu_ms
        Processor time of the whole process a frame, all threads, busy waiting included.
    nbytes
        Memory that the renderer holds on the device: weights, buffers, and host memory that the device copies from.
    process_nbytes
        RAM that the whole process holds, with Python, torch and this benchmark; 0 if the system does not report it.
    """

    precision: str
    frames: int
    p50_ms: float
    p99_ms: float
    device_ms: float | None
    host_ms: float | None
    cpu_ms: float
    nbytes: int
    process_nbytes: int = 0


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far pictures in a precision are from those in fp32, as bytes.

    Attributes
    ----------
    psnr_db, least_psnr_db
        Peak signal-to-noise ratio of all pictures together, and of the worst one; None if all are equal.
    largest_difference
        Of a byte, 0 to 255.
    """

    precision: str
    pictures: int
    psnr_db: float | None
    least_psnr_db: float | None
    largest_difference: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything of one run."""

    run: RunFacts
    measurements: tuple[Measurement, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    kernels: tuple[KernelCost, ...] = ()
    ceiling: Ceiling | None = None
    gestures: tuple[Gesture, ...] = ()
    method: tuple[str, ...] = ()
    compiling: Compiling | None = None
    """None on the processor, and in files that are older than this."""
    accuracy: tuple[Accuracy, ...] = ()
    """Empty on the processor, and in files that are older than this."""
    format: int = field(default=FORMAT)

    def find(self, who: str, precision: str, batch: int) -> Measurement | None:
        """Return a measurement, if there is one."""
        wanted = (who, precision, batch)
        return next((m for m in self.measurements if (m.who, m.precision, m.batch) == wanted), None)

    def baseline(self, batch: int) -> Measurement | None:
        """Return what others are compared with: this renderer in its first precision, with its graph."""
        return next((m for m in self.measurements if m.who == OURS and m.batch == batch), None)

    def gain_over(self, row: Measurement) -> float | None:
        """Return how many times as fast the baseline is as a contender; None for the baseline, or without one."""
        ours = self.baseline(row.batch)
        return None if ours is None or ours is row else row.latency_ms / ours.latency_ms

    def memory_saved_over(self, row: Measurement) -> float | None:
        """Return the share of a contender's memory that the baseline does without; None where one is not measured."""
        ours = self.baseline(row.batch)
        if ours is None or ours is row or ours.nbytes is None or not row.nbytes:
            return None
        return 1.0 - ours.nbytes / row.nbytes


def to_json(report: Report) -> dict[str, Any]:
    """Return the content of the file; images per second are for users, reading ignores them."""
    fields = dataclasses.asdict(report)
    for row, measurement in zip(fields["measurements"], report.measurements, strict=True):
        row["images_per_s"] = measurement.images_per_s
    return fields


def from_json(fields: Mapping[str, Any]) -> Report:
    """Return the report of a file.

    Raises
    ------
    RequestError
        If it does not have this format.
    """
    if fields.get("format") != FORMAT:
        raise RequestError(f"Expected a benchmark's JSON of format {FORMAT}, not {fields.get('format')!r}.")
    try:
        report: Report = _read(Report, fields)
    except (KeyError, TypeError) as error:
        raise RequestError("The file must be JSON of a benchmark, but parts of it are missing.", str(error)) from None
    return report


def _read(kind: Any, value: Any) -> Any:
    """Rebuild a value of an annotated type from JSON's lists and dictionaries."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        names = [item.name for item in dataclasses.fields(kind)]
        return kind(**{name: _read(hints[name], value[name]) for name in names if name in value})
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(_read(arguments[0], item) for item in value)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _read(arguments[0], value)
    return value


def read_report(path: Path) -> Report:
    """Return the report of a JSON file.

    Raises
    ------
    RequestError
        If it is not a report.
    """
    try:
        fields = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RequestError(
            f"The file must be JSON of a benchmark, but {path.name} cannot be read.", str(error)
        ) from None
    if not isinstance(fields, dict):
        raise RequestError(f"The file must be JSON of a benchmark, but {path.name} holds something else.")
    return from_json(fields)
