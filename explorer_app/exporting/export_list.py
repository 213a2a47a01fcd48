"""The list of exports: what is to be made, in which order, and how far it is. Pure functions over frozen jobs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, Literal, get_args

from explorer_app.exporting.sequence import SequenceSettings
from gpu_backend import dataclass

JobState = Literal["waiting", "running", "paused", "failed", "cancelled", "done"]

Where = Literal["here", "gpus", "farm"]
"""What renders an export: the window's device, all GPUs of this machine, or a farm."""

UNFINISHED: frozenset[JobState] = frozenset({"waiting", "running", "paused"})
"""States of jobs that a user still expects to end well."""

MAX_FINISHED = 50
"""Jobs that have ended and stay in the list; the oldest go first."""

MAX_JOBS = 1000

MAX_PRIORITY = 999_999
"""Of a job on a farm, above and below 0."""


@dataclass(frozen=True, slots=True)
class ExportPlace:
    """Where an export is rendered.

    Attributes
    ----------
    address, keys
        Of a farm: HOST or HOST:PORT, and the file of its keys; empty for the usual one.
    priority
        On a farm, frames of jobs with a higher one come first.
    """

    where: Where = "here"
    address: str = ""
    keys: str = ""
    priority: int = 0


HERE = ExportPlace()


@dataclass(frozen=True, slots=True)
class ExportRecord:
    """A job as the list knows it; its keyframes are in a separate file.

    Attributes
    ----------
    job_id
        16 hexadecimal digits.
    state
        "running" in a window that is alive; "paused" and "cancelled" by a user.
    folder, name
        Of `SequenceSettings`.
    file
        What "Show in folder" shows: the name of the video or of the first picture.
    kind
        For people: the label of the format.
    model, model_id
        The model that renders it.
    total, done
        Frames. `done` is brought up to date when the state changes.
    owner
        The window that runs it, as `StateFolder` names its folder; see `export_store`.
    error
        The sentence of a failed job.
    where, address, keys, priority
        Of `ExportPlace`.
    """

    job_id: str
    state: JobState
    folder: str
    name: str
    file: str
    kind: str
    model: str
    model_id: str
    total: int
    done: int = 0
    owner: str = ""
    error: str = ""
    where: Where = "here"
    address: str = ""
    keys: str = ""
    priority: int = 0

    @property
    def place(self) -> ExportPlace:
        """Where it is rendered."""
        return ExportPlace(self.where, self.address, self.keys, self.priority)

    @property
    def is_unfinished(self) -> bool:
        """Whether it waits, runs or is paused."""
        return self.state in UNFINISHED


Jobs = tuple[ExportRecord, ...]
Change = Callable[[Jobs], Jobs]
"""Changes the list. Pure, since it is applied in memory at once and to the file later."""


def _kind_of(settings: SequenceSettings) -> str:
    """Return what an export is, for people."""
    if settings.video is not None:
        return settings.video.facts.label
    label = settings.form.facts.label
    return label if settings.sheet is None else f"Sheet, {label}"


def new_record(settings: SequenceSettings, owner: str, place: ExportPlace = HERE) -> ExportRecord:
    """Return a job that waits."""
    return ExportRecord(
        job_id=os.urandom(8).hex(),
        state="waiting",
        folder=str(settings.folder.absolute()),
        name=settings.name,
        file=(settings.single_path or settings.frame_path(0)).name,
        kind=_kind_of(settings),
        model=settings.model.name,
        model_id=settings.model.model_id,
        total=settings.frame_count,
        owner=owner,
        where=place.where,
        address=place.address,
        keys=place.keys,
        priority=place.priority,
    )


def find(jobs: Jobs, job_id: str) -> ExportRecord | None:
    """Return a job, None if it is no longer in the list."""
    return next((job for job in jobs if job.job_id == job_id), None)


def with_job(jobs: Jobs, job: ExportRecord) -> Jobs:
    """Add a job at the end, in place of stopped and ended ones for its files; drop the oldest of many ended ones."""

    def stays(item: ExportRecord) -> bool:
        if item.job_id == job.job_id:
            return False
        return item.state in ("running", "waiting") or (item.folder, item.file) != (job.folder, job.file)

    return trimmed((*filter(stays, jobs), job))


def with_changes(jobs: Jobs, job_id: str, **changes: Any) -> Jobs:
    """Change fields of a job; a list without that job is unchanged."""
    return trimmed(tuple(replace(job, **changes) if job.job_id == job_id else job for job in jobs))


def without(jobs: Jobs, job_ids: Collection[str]) -> Jobs:
    """Remove jobs."""
    return tuple(job for job in jobs if job.job_id not in job_ids)


def moved(jobs: Jobs, job_id: str, step: Literal[-1, 1]) -> Jobs:
    """Exchange a waiting job with the waiting one before (-1) or after it (1)."""
    waiting = [place for place, job in enumerate(jobs) if job.state == "waiting"]
    places = [order for order, place in enumerate(waiting) if jobs[place].job_id == job_id]
    if not places or not 0 <= places[0] + step < len(waiting):
        return jobs
    here, there = waiting[places[0]], waiting[places[0] + step]
    changed = list(jobs)
    changed[here], changed[there] = changed[there], changed[here]
    return tuple(changed)


def trimmed(jobs: Jobs) -> Jobs:
    """Drop the oldest of more than `MAX_FINISHED` jobs that have ended."""
    ended = [job.job_id for job in jobs if not job.is_unfinished]
    return without(jobs, frozenset(ended[: max(0, len(ended) - MAX_FINISHED)])) if len(ended) > MAX_FINISHED else jobs


def taken_over(jobs: Jobs, owner: str, is_alive: Callable[[str], bool]) -> Jobs:
    """Give a window the jobs of windows that are not alive, and its own former ones.

    Jobs that ran or waited there are paused until the user resumes them.
    """

    def taken(job: ExportRecord) -> ExportRecord:
        if job.owner != owner and is_alive(job.owner):
            return job
        return replace(job, owner=owner, state="paused" if job.is_unfinished else job.state)

    return tuple(taken(job) for job in jobs)


def record_of(fields: Any) -> ExportRecord | None:
    """Return the job of a JSON object; None if the object is invalid."""
    if not isinstance(fields, dict):
        return None
    texts = ("job_id", "folder", "name", "file", "kind", "model", "model_id", "owner", "error")
    numbers = ("total", "done")
    if not all(isinstance(fields.get(name), str) for name in (*texts, "state")):
        return None
    if not all(type(fields.get(name)) is int and fields[name] >= 0 for name in numbers):
        return None
    if fields["state"] not in get_args(JobState) or not re.fullmatch("[0-9a-f]{16}", fields["job_id"]):
        return None
    if not re.fullmatch(r"(windows/\d{1,3})?", fields["owner"]):
        return None
    where, *farm = (fields.get(name, "") for name in ("where", "address", "keys"))  # missing in older lists
    if where not in ("", *get_args(Where)) or not all(isinstance(text, str) for text in farm):
        return None
    priority = fields.get("priority", 0)
    if type(priority) is not int or abs(priority) > MAX_PRIORITY:
        return None
    return ExportRecord(
        state=fields["state"],
        where=where or "here",
        address=farm[0],
        keys=farm[1],
        priority=priority,
        **{name: fields[name] for name in (*texts, *numbers)},
    )
