"""How the rate of a private farm grows with its workers: to device bytes, to files, and with a worker killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.errors import FarmError, StationError
from explorer_app.farm.farm_model import FarmModel
from explorer_app.farm.foreman import LANES
from explorer_app.farm.job import FarmJob
from explorer_app.farm.link import FarmLink, connect
from explorer_app.farm.local_farm import CrewMember, LocalFarm
from explorer_app.farm.work import JobRecipe, Member
from explorer_app.rendering.device_choice import Precision
from explorer_app.session.session import ModelReference
from gpu_backend import Latent, ModelFacts, Noise, Point, Recipe, Truncation, dataclass

DEVICE_BYTES = "device bytes"
BATCH = 8

_CALL_S = 1.0
"""How long a call of the rendering benchmark should take."""
_START_S = 300.0
"""Patience with workers that start and compile kernels."""
_KEYS = 8
_WARM_FRAMES = 64

Measured = tuple[str, int, int, float]
"""What, workers, frames, seconds."""


@dataclass(frozen=True, slots=True)
class FarmBenchmark:
    """What to measure.

    Attributes
    ----------
    facts, model
        The model.
    crews
        Workers of each run.
    forms
        Files to write.
    seconds
        How long each measurement should take.
    folder
        Where the files go; they are deleted again.
    kills_worker
        Also kill a worker in the middle of a job of the largest crew, if it has two.
    """

    facts: ModelFacts
    model: FarmModel
    crews: Sequence[Sequence[CrewMember]]
    forms: Sequence[PictureFormat]
    seconds: float
    folder: Path
    precision: Precision = "fp16"
    kills_worker: bool = True


@dataclass(frozen=True, slots=True)
class FarmResults:
    """What came: rates, the devices, and what was found after a worker was killed (empty if none was)."""

    measured: tuple[Measured, ...]
    devices: tuple[str, ...]
    killed: str


def run_farm_benchmark(wanted: FarmBenchmark, say: Callable[[str], None]) -> FarmResults:
    """Measure crew by crew.

    Raises
    ------
    LoomError
        If a farm does not start, a frame cannot be rendered, or one is missing after a worker was killed.
    """
    measured: list[Measured] = []
    devices: tuple[str, ...] = ()
    paces: dict[str, float] = {}
    killed = ""
    for crew in wanted.crews:
        count = len(crew)
        with LocalFarm(None, crew, say=say) as farm:
            say(f"{count} worker{'' if count == 1 else 's'}: starting, opening the model")
            frames, seconds, devices = asyncio.run(_to_device_bytes(wanted, farm.address, count, say))
            measured.append((DEVICE_BYTES, count, frames, seconds))
            say(f"{count}: {DEVICE_BYTES}: {frames / seconds:,.1f} fps")
            for form in wanted.forms:
                if form.name not in paces:  # a short job gives the number of frames for a measurement
                    frames, seconds = _to_files(wanted, farm, form, _WARM_FRAMES * count)
                    paces[form.name] = frames / seconds / count
                frames, seconds = _to_files(wanted, farm, form, _WARM_FRAMES * count)
                paces[form.name] = max(paces[form.name], frames / seconds / count)
                frames, seconds = _to_files(wanted, farm, form, int(paces[form.name] * count * wanted.seconds))
                paces[form.name] = frames / seconds / count
                measured.append((form.name, count, frames, seconds))
                say(f"{count}: {form.name}: {frames / seconds:,.1f} fps")
            if wanted.kills_worker and crew is wanted.crews[-1] and count > 1 and hasattr(signal, "SIGKILL"):
                form = wanted.forms[0]
                killed = _with_a_kill(wanted, farm, form, int(paces[form.name] * count * wanted.seconds))
                say(killed)
    return FarmResults(tuple(measured), devices, killed)


async def _to_device_bytes(
    wanted: FarmBenchmark, address: FarmAddress, count: int, say: Callable[[str], None]
) -> tuple[int, float, tuple[str, ...]]:
    """Return frames and seconds of all workers together, and their devices."""
    settings = _settings(wanted, PictureFormat(), 2)
    recipe = JobRecipe(
        job=f"benchmark-{os.getpid()}",
        manifest=manifest_bytes(settings, "unfinished", None),
        name=settings.name,
        folder=str(wanted.folder),
        model_id=wanted.model.model_id,
        model_name=wanted.model.name,
        model_path=str(wanted.model.path),
        precision=wanted.precision,
    )
    async with connect(address) as link:
        members = await _members(link, count)
        opened = await asyncio.gather(*(link.call(member.address, "open", recipe) for member in members))
        await asyncio.gather(*(link.call(member.address, "render_to_device", recipe, 1, BATCH) for member in members))
        calls = await asyncio.gather(*(_calibrated(link, member, recipe) for member in members))
        start_s = time.monotonic()
        end_s = start_s + wanted.seconds

        async def lane(member: Member, call: int) -> int:
            frames = 0  # a lane's own: `+=` around an await would lose what other lanes add meanwhile
            while time.monotonic() < end_s:
                frames += await link.call(member.address, "render_to_device", recipe, call, BATCH)
            return frames

        lanes = (lane(member, call) for member, call in zip(members, calls, strict=True) for _ in range(LANES))
        frames = sum(await asyncio.gather(*lanes))
        seconds = time.monotonic() - start_s
        await asyncio.gather(*(link.call(member.address, "end_benchmark") for member in members))
    return frames, seconds, tuple(answer.device for answer in opened)


async def _members(link: FarmLink, count: int) -> list[Member]:
    """Wait until `count` workers have joined."""
    end_s = time.monotonic() + _START_S
    while time.monotonic() < end_s:
        members, _ = await link.exchange(None)
        if len(members) >= count:
            return members
        await asyncio.sleep(0.2)
    raise FarmError(f"Only some of {count} workers started; `latentloom doctor` says what is wrong with a device.")


async def _calibrated(link: FarmLink, member: Member, recipe: JobRecipe) -> int:
    """Return how many frames a call takes that is as long as it should be."""
    frames = BATCH
    while True:
        start_s = time.monotonic()
        done: int = await link.call(member.address, "render_to_device", recipe, frames, BATCH)
        seconds = time.monotonic() - start_s
        if seconds > 0.3 * _CALL_S or frames >= 1 << 20:
            return max(1, round(done / seconds * _CALL_S))
        frames *= 4


def _to_files(wanted: FarmBenchmark, farm: LocalFarm, form: PictureFormat, frames: int) -> tuple[int, float]:
    """Render a sequence and delete it; return its frames and how long it took."""
    settings = _settings(wanted, form, frames)
    job = FarmJob(settings, wanted.model, lambda: contextlib.nullcontext(farm.address), spot_checks=0)
    start_s = time.monotonic()
    job.start()
    job.wait(None)
    seconds = time.monotonic() - start_s
    _delete(settings)
    return job.total, seconds


def _with_a_kill(wanted: FarmBenchmark, farm: LocalFarm, form: PictureFormat, frames: int) -> str:
    """Kill a worker in the middle of a job, and check that every frame is there and was made once."""
    settings = _settings(wanted, form, frames)
    moved = threading.Event()
    job = FarmJob(settings, wanted.model, lambda: contextlib.nullcontext(farm.address), spot_checks=2)
    start_s = time.monotonic()
    job.start(moved.set)
    while job.done < 0.4 * job.total and not job.join(0):
        moved.wait(0.2)
        moved.clear()
    name = next(name for name in farm.processes if name != "scheduler")
    # Windows has no SIGKILL: there any other signal than the console's ends the process at once.
    os.kill(farm.processes[name], signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    done = job.done
    job.wait(None)
    seconds = time.monotonic() - start_s
    manifest = read_manifest(settings.manifest_path)
    made = sorted(frame for device in manifest.made_on for frame in device.frames)
    files = len(list(settings.folder.glob(f"{settings.name}_*{form.ending}")))
    _delete(settings)
    if manifest.state != "complete" or made != list(range(job.total)) or files != job.total:
        raise StationError(f"After worker {name} was killed, {files} of {job.total} frames were there.")
    check = "" if job.spot_check is None else f" {job.spot_check.sentence}"
    return (
        f"Worker {name} of {len(farm.starts) - 1} was killed after {done} of {job.total} frames: all are there, each "
        f"made once, after {seconds:.1f} s; it was started {farm.starts[name]} times.{check}"
    )


def _settings(wanted: FarmBenchmark, form: PictureFormat, frames: int) -> SequenceSettings:
    """Return a loop through random seeds with about `frames` frames."""
    keys = tuple(
        Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),), Noise(), None)
        for seed in range(_KEYS)
    )
    return SequenceSettings(
        keys=keys,
        folder=wanted.folder,
        name="benchmark",
        model=ModelReference("", wanted.facts.name, wanted.facts.model_id),
        kind="w-linear",
        frames_per_step=max(1, frames // _KEYS),
        loop=True,
        z_dim=wanted.facts.z_dim,
        form=form,
        overwrite=True,
    )


def _delete(settings: SequenceSettings) -> None:
    for path in settings.folder.glob(f"{settings.name}*"):
        path.unlink()
