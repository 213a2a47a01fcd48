"""The list of exports on the disk, shared by all windows of a user.

::

    STATE/exports.json          the list: order and states; rewritten whole, under a lock
    STATE/exports/ID.json       the settings of a job: written once, before the list names it
    STATE/exports.lock          held while the list is read and rewritten
    FOLDER/export-owner.lock    held by a window while it lives; its jobs are taken over when it holds it no longer

A program that is killed at any moment loses no job: the list is replaced in one step, and the settings are there
before. A list that is damaged is rebuilt from the settings.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.export_list import MAX_JOBS, Change, ExportRecord, Jobs, new_record, record_of, taken_over
from explorer_app.exporting.manifest import manifest_bytes, manifest_of, read_manifest
from explorer_app.exporting.sequence import MANIFEST_SUFFIX, SequenceSettings
from explorer_app.file_lock import FileLock, HeldLock
from gpu_backend import (
    MANIFEST_LIMITS,
    SETTINGS_LIMITS,
    LimitError,
    LoomError,
    check_json_size,
    parse_json,
    read_regular_file,
    remove_leftovers,
    write_whole,
)

_FORMAT = "latent-loom-exports"
_OWNER_LOCK = "export-owner.lock"
_HEAD_NBYTES = 1 << 20
"""First line of a job's settings: folder, and whether files are replaced."""


class ExportStore:
    """The list, and the settings of its jobs. Every method may wait for a disk, and raises OSError if that refuses.

    Parameters
    ----------
    shared
        The user's state folder.
    folder
        The folder that this window alone writes into.
    """

    def __init__(self, shared: Path, folder: Path) -> None:
        self._shared = shared
        self._path = shared / "exports.json"
        self._jobs = shared / "exports"
        self._owner_lock = FileLock(folder / _OWNER_LOCK)
        self.owner = "" if folder == shared else folder.relative_to(shared).as_posix()
        """How this window is named in the list."""

    def claim(self) -> tuple[Jobs, frozenset[str]]:
        """Start to hold this window's jobs, and take over jobs of closed windows.

        Returns
        -------
        The list, in which what ran or waited there is "paused" now, or "done" if its manifest says that it is complete;
        and the jobs that were interrupted so.
        """
        interrupted: set[str] = set()

        def take(jobs: Jobs) -> Jobs:
            taken = taken_over(jobs, self.owner, self._is_alive)
            before = {job.job_id: job.state for job in jobs}
            looked_at = tuple(map(self._looked_at, taken))
            interrupted.update(
                job.job_id for job in looked_at if job.state == "paused" and before[job.job_id] != "paused"
            )
            return looked_at

        self._shared.mkdir(parents=True, exist_ok=True)
        self._owner_lock.try_acquire()
        with self._locked():
            remove_leftovers(self._shared, lambda name: name == self._path.name)
            remove_leftovers(self._jobs, lambda name: True)
            jobs = self._update(take)
            named = {job.job_id for job in jobs}
            self._forget({path.stem for path in self._jobs.glob("*.json")} - named)  # killed before the list named it
        return jobs, frozenset(interrupted)

    def add(self, record: ExportRecord, settings: SequenceSettings, change: Change) -> Jobs:
        """Write the settings of a job, then the list that `change` has put it into.

        Raises
        ------
        ExportError
            If the job has more keyframes than a manifest may hold.
        """
        head = {"folder": record.folder, "overwrite": settings.overwrite}
        data = json.dumps(head).encode("ascii") + b"\n" + manifest_bytes(settings, "unfinished", None)
        self._jobs.mkdir(parents=True, exist_ok=True)
        with self._locked():
            write_whole(self._settings_path(record.job_id), data)
            return self._update(change)

    def update(self, change: Change) -> Jobs:
        """Change the list as other windows have left it, and return it."""
        self._shared.mkdir(parents=True, exist_ok=True)
        with self._locked():
            return self._update(change)

    def settings(self, record: ExportRecord) -> SequenceSettings:
        """Return what a job makes.

        Raises
        ------
        ExportError
            If the file is missing or damaged.
        """
        try:
            return self._settings_at(self._settings_path(record.job_id))[0]
        except FileNotFoundError:
            raise ExportError(
                f"The settings of the export “{record.name}” are gone; resume it by the manifest beside its files."
            ) from None
        except (LimitError, ValueError, KeyError, TypeError) as error:
            raise ExportError(
                f"The settings of the export “{record.name}” are damaged; resume it by the manifest beside its files.",
                details=str(error),
            ) from error

    def close(self) -> None:
        """Let other windows take over the jobs. May be called twice."""
        self._owner_lock.release()

    def _locked(self) -> HeldLock:
        return HeldLock(self._shared / "exports.lock")

    def _update(self, change: Change) -> Jobs:
        former = self._read()
        jobs = change(former)
        if jobs != former:
            data = json.dumps({"format": _FORMAT, "jobs": [asdict(job) for job in jobs]}, indent=0).encode("ascii")
            check_json_size(data, SETTINGS_LIMITS, "the list of exports")
            write_whole(self._path, data)
            self._forget({job.job_id for job in former} - {job.job_id for job in jobs if job.state != "done"})
        return jobs

    def _forget(self, job_ids: set[str]) -> None:
        """Delete settings that no job needs."""
        for job_id in job_ids:
            with contextlib.suppress(OSError):
                self._settings_path(job_id).unlink(missing_ok=True)

    def _settings_path(self, job_id: str) -> Path:
        return self._jobs / f"{job_id}.json"

    def _settings_at(self, path: Path) -> tuple[SequenceSettings, str]:
        data = read_regular_file(path, MANIFEST_LIMITS.nbytes + _HEAD_NBYTES, "an export")
        head, _, manifest = data.partition(b"\n")
        fields = parse_json(head, SETTINGS_LIMITS, "an export")
        named = parse_json(manifest, MANIFEST_LIMITS, "an export")
        folder = Path(str(fields["folder"]))
        settings = manifest_of(manifest, folder / f"{named['name']}{MANIFEST_SUFFIX}").settings
        return replace(settings, overwrite=fields["overwrite"] is True), path.stem

    def _is_alive(self, owner: str) -> bool:
        """Return whether the window of that name holds its lock."""
        lock = FileLock(self._shared / owner / _OWNER_LOCK)
        try:
            return not lock.try_acquire()
        except OSError:
            return False
        finally:
            lock.release()

    def _looked_at(self, job: ExportRecord) -> ExportRecord:
        """Return a job that was interrupted as done if the manifest beside its files says that it is complete."""
        if job.owner != self.owner or not job.is_unfinished:
            return job
        try:
            manifest = read_manifest(Path(job.folder) / f"{job.name}{MANIFEST_SUFFIX}")
            if manifest.state == "complete" and manifest.settings.makes_the_same_as(self.settings(job)):
                return replace(job, state="done", done=job.total)
        except (LoomError, OSError):
            pass
        return job

    def _read(self) -> Jobs:
        try:
            data = read_regular_file(self._path, SETTINGS_LIMITS.nbytes, "the list of exports")
            fields = parse_json(data, SETTINGS_LIMITS, "the list of exports")
            items = fields["jobs"] if isinstance(fields, Mapping) and fields.get("format") == _FORMAT else None
            if not isinstance(items, list):
                raise ValueError("no list of exports")
        except FileNotFoundError:
            return self._rebuilt()
        except (LimitError, ValueError, KeyError):
            os.replace(self._path, self._path.with_name(f"{self._path.name}.broken"))
            return self._rebuilt()
        return tuple(job for job in map(record_of, items) if job is not None)

    def _rebuilt(self) -> Jobs:
        """Return the jobs with stored settings, paused: the list itself is lost."""
        jobs = []
        for path in sorted(self._jobs.glob("*.json"))[:MAX_JOBS]:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, LoomError):
                settings, job_id = self._settings_at(path)
                jobs.append(replace(new_record(settings, self.owner), job_id=job_id, state="paused"))
        return tuple(job for job in jobs if record_of(asdict(job)) is not None)
