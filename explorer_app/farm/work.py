"""What travels between a job and a farm: small frozen values."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from explorer_app.rendering.device_choice import Precision
from gpu_backend import dataclass

PIECE_NBYTES = 8 << 20
"""A model travels in pieces of this size."""


@dataclass(frozen=True, slots=True)
class JobRecipe:
    """What a worker needs of a job, beside its model.

    Attributes
    ----------
    job
        Hexadecimal digits that identify the job.
    manifest
        The sequence's manifest: every frame follows from it.
    name
        The sequence's name.
    folder
        Where the job's files go, on the machine of the job.
    model_id, model_name, model_path
        SHA-256 of the model, its name, and its path on the machine of the job.
    directions
        Named directions of the model as a file; empty for none.
    precision
        Of the activations on GPUs.
    """

    job: str
    manifest: bytes = field(repr=False)
    name: str
    folder: str
    model_id: str
    model_name: str
    model_path: str
    directions: bytes = field(default=b"", repr=False)
    precision: Precision = "fp16"


Output = Literal["shared", "returned"]
"""Where files of a chunk go: into the job's folder, or back to the job."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Frames [start, stop) of a job. Of a video they are whole segments."""

    job: str
    start: int
    stop: int
    output: Output = "shared"


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A file that a chunk gave: a picture, or a segment of a video.

    Attributes
    ----------
    unit
        Number of the picture or segment.
    frames
        How many frames it holds.
    nbytes
        Its size.
    data
        Its content, empty if the worker wrote it.
    is_found
        It was there already.
    """

    unit: int
    frames: int
    nbytes: int
    data: bytes = field(default=b"", repr=False)
    is_found: bool = False


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """What became of a chunk.

    Attributes
    ----------
    units
        In no order; some are missing if the chunk was cancelled.
    seconds
        From the first request to the last file.
    """

    units: tuple[StoredUnit, ...]
    seconds: float
    warnings: tuple[str, ...] = ()
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """A worker's answer to a job.

    Attributes
    ----------
    has_model
        False if the model must be sent first.
    device
        What renders: name, driver, precision and version; equal texts promise equal bytes.
    answer
        Name of the file that the worker left in the job's folder; empty if it does not see that folder, or cannot
        write there.
    """

    has_model: bool
    device: str = ""
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Member:
    """A worker as the scheduler knows it."""

    address: str
    name: str
    host: str
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What a job says of a worker: frames that it made, frames a second, failures, and whether it was set aside."""

    name: str
    device: str
    frames: int
    rate: float
    failures: int
    state: str


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What a job says of itself to everyone on the farm."""

    job: str
    name: str
    state: str
    done: int
    total: int
    progress: str
    priority: int
    workers: tuple[WorkerStatus, ...] = ()


Order = tuple[str, int]
"""Sent to a job by another program: ("pause" | "resume" | "cancel" | "priority", number)."""
