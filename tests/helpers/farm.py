"""Shared by farm tests: a small model, stations that paint, and a farm without Dask."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer_app.exporting.job import SequenceJob
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.errors import ConnectionLostError, FarmError, StationError, WorkerLostError
from explorer_app.farm.farm_model import FarmModel, farm_model_of
from explorer_app.farm.job import FarmJob
from explorer_app.farm.model_store import ModelStore
from explorer_app.farm.station import Station
from explorer_app.farm.work import JobStatus, Member, Order
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.session.session import ModelReference
from gpu_backend import (
    CancelledError,
    Disk,
    Frame,
    Latent,
    LoomError,
    ModelFacts,
    Noise,
    Point,
    Recipe,
    RenderRequest,
    Truncation,
    read_model,
    write_safetensors,
)
from tests.helpers.fake_engine import fake_frame
from tests.helpers.fake_renderer import FakeDevice
from tests.helpers.networks import make_stylegan2

PATIENCE_S = 60.0
PLACE = FarmAddress("127.0.0.1", 8786, None)


def farm_settings(folder: Path, facts: ModelFacts, *, frames: int, **fields: Any) -> SequenceSettings:
    """Return a loop of three keys through a model, with about `frames` frames."""
    keys = tuple(
        Keyframe(((Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7)), 1.0),), Noise(), None) for seed in (1, 2, 3)
    )
    return SequenceSettings(
        keys=keys,
        folder=folder,
        name="walk",
        model=ModelReference("", facts.name, facts.model_id),
        kind="w-linear",
        frames_per_step=frames // 3,
        loop=True,
        z_dim=facts.z_dim,
        **fields,
    )


def small_model(folder: Path) -> tuple[ModelFacts, FarmModel]:
    """Write a small model into a folder."""
    write_safetensors(make_stylegan2(seed=47), folder / "small.safetensors")  # no other test has it
    model = read_model(folder / "small.safetensors")
    return model.facts, farm_model_of(model)


Painter = Callable[[RenderRequest], Frame]


class PaintingRenderer:
    """Renders requests by a paint function."""

    def __init__(self, painter: Painter) -> None:
        self._painter = painter
        self.device = FakeDevice()

    def render(self, request: RenderRequest, *, should_cancel: Callable[[], bool] | None = None) -> Frame:
        if should_cancel is not None and should_cancel():
            raise CancelledError("Cancelled.")
        return self._painter(request)

    def close(self) -> None:
        """Release nothing."""


class PaintingBackend:
    """Makes `PaintingRenderer`s."""

    def __init__(self, painter: Painter = fake_frame) -> None:
        self.painter = painter

    def make_renderer(self, model: object, choice: DeviceChoice) -> PaintingRenderer:
        return PaintingRenderer(self.painter)


def station(folder: Path, painter: Painter = fake_frame, disk: Disk | None = None) -> Station:
    """Return a station whose models are kept in a folder."""
    backend: Any = PaintingBackend(painter)
    return Station(DeviceChoice("cpu"), ModelStore(folder), threads=2, backend=backend, disk=disk)


@dataclass
class FakeFarm:
    """Implements `FarmLink` over stations in this process, and connects jobs to itself.

    Attributes
    ----------
    stations, names
        By address.
    killed
        Addresses of workers that died: calls under way fail too.
    orders
        For the next exchange.
    is_gone
        The scheduler does not answer.
    """

    stations: dict[str, Station] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)
    orders: list[Order] = field(default_factory=list)
    statuses: list[JobStatus] = field(default_factory=list)
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    """Address, method, priority."""
    brought: list[list[str]] = field(default_factory=list)
    connections: int = 0
    is_gone: bool = False

    def add(self, name: str, station: Station) -> str:
        """Let a worker join; return its address."""
        address = f"tcp://{len(self.stations)}"
        self.names[address] = name
        self.stations[address] = station
        return address

    @contextlib.asynccontextmanager
    async def connect(self, address: FarmAddress) -> AsyncIterator[FakeFarm]:
        self.connections += 1
        if self.is_gone:
            self.is_gone = False
            raise FarmError("No farm answers.")
        yield self

    async def exchange(self, status: JobStatus | None) -> tuple[list[Member], list[Order]]:
        if self.is_gone:
            raise ConnectionLostError("The farm no longer answers.")
        if status is not None:
            self.statuses.append(status)
        orders, self.orders = self.orders, []
        return [
            Member(address, name, "here") for address, name in list(self.names.items()) if address not in self.killed
        ], orders

    async def call(self, worker: str, method: str, *arguments: Any, priority: int = 0) -> Any:
        self.calls.append((worker, method, priority))
        try:
            answer = await asyncio.to_thread(getattr(self.stations[worker], method), *arguments)
        except CancelledError as error:
            self._check(worker)
            raise StationError(error.sentence, is_cancelled=True) from error
        except LoomError as error:
            self._check(worker)
            raise StationError(error.sentence, error.details) from error
        self._check(worker)
        return answer

    def _check(self, worker: str) -> None:
        if worker in self.killed:
            raise WorkerLostError("A worker ended while it rendered.", has_died=True)
        if self.is_gone:
            raise WorkerLostError("A worker left while it rendered.")

    async def cancel(self, workers: Sequence[str], job: str) -> None:
        for worker in workers:
            self.stations[worker].cancel(job)

    async def log(self, worker: str) -> list[str]:
        self._check(worker)
        return [f"{self.names[worker]} opened the job"]

    async def bring_model(self, path: Path, model_id: str, suffix: str, workers: Sequence[str]) -> None:
        self.brought.append(list(workers))
        for worker in workers:
            await self.call(worker, "begin_model")
            await self.call(worker, "add_piece", 0, path.read_bytes())
            await self.call(worker, "finish_model", model_id, suffix)

    def close(self) -> None:
        for station in self.stations.values():
            station.close()

    def job(self, settings: SequenceSettings, model: FarmModel, **options: Any) -> FarmJob:
        """Return a job for this farm."""
        options = {"spot_checks": 0, **options}
        return FarmJob(settings, model, lambda: contextlib.nullcontext(PLACE), connect=self.connect, **options)


@contextlib.contextmanager
def running(job: FarmJob) -> Iterator[Progress]:
    """Start a job; stop it on exit if it still runs."""
    progress = Progress(job)
    job.start(progress.changed.set)
    try:
        yield progress
    finally:
        job.stop(cancelled=False)
        assert job.join(PATIENCE_S)


class Progress:
    """Waits for a job."""

    def __init__(self, job: FarmJob) -> None:
        self._job = job
        self.changed = threading.Event()

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until a condition holds."""
        while not is_so():
            assert self.changed.wait(PATIENCE_S)
            self.changed.clear()


def exported(settings: SequenceSettings, painter: Painter = fake_frame) -> dict[str, bytes]:
    """Return the files that a one-process export writes, except the manifest."""
    job = SequenceJob(settings)
    job.start()
    while job.wait():
        request = job.next_request()
        if request is not None:
            job.deliver(painter(request))
    assert job.join(PATIENCE_S)
    return files_of(settings)


def files_of(settings: SequenceSettings) -> dict[str, bytes]:
    """Return the files of a folder, with hidden ones, except the manifest."""
    return {
        path.name: path.read_bytes()
        for path in settings.folder.iterdir()
        if path != settings.manifest_path and path.is_file()
    }
