"""A worker's process: Dask's worker around a `Station`. It looks for its scheduler again whenever that is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from explorer_app.farm.address import FarmAddress, is_loopback
from explorer_app.farm.dask_setup import CONNECT_S, set_up_dask
from explorer_app.farm.station import Station
from explorer_app.farm.temporary_folder import new_temporary_folder
from gpu_backend import CancelledError, LoomError, dataclass

if TYPE_CHECKING:
    from distributed import Worker

CALLS = 3
"""Calls that run at a time: two chunks, so that files of one are written while the next renders, and a question."""

_RETRY_S = 0.5
_LOG_LINES = 500

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error of a station as it travels: exceptions of any type need not be known on the other side."""

    sentence: str
    details: str
    is_cancelled: bool


class RecentLog(logging.Handler):
    """Keeps the last lines that this process logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: deque[str] = deque(maxlen=_LOG_LINES)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.lines.append(self.format(record))


def on_station(method: str, *arguments: Any) -> Any:
    """Call a method of this worker's station; return what it returns, or a `Failure`. A Dask task."""
    from distributed import get_worker

    worker: Any = get_worker()
    station: Station = worker.station
    try:
        return getattr(station, method)(*arguments)
    except CancelledError as error:
        return Failure(error.sentence, error.details, True)
    except LoomError as error:
        _log.warning("%s", error.sentence, extra={"details": error.details})
        failure = Failure(error.sentence, error.details, False)
    except Exception as error:
        _log.exception("A call of %s failed.", method)
        failure = Failure(f"Something went wrong inside Latent Loom ({type(error).__name__}).", repr(error), False)
    if station.is_broken:
        worker.loop.add_callback(worker.leave.set)
    return failure


def cancel_on_station(job: str, dask_worker: Worker) -> None:
    """Give up the chunks of a job; runs beside the chunks."""
    station: Station = dask_worker.station  # type: ignore[attr-defined]
    station.cancel(job)


def recent_log(dask_worker: Worker) -> list[str]:
    """Return what a worker's process logged last."""
    recent: RecentLog | None = getattr(dask_worker, "recent_log", None)
    return [] if recent is None else list(recent.lines)


async def run_worker(
    address: FarmAddress, name: str, station: Station, stop: asyncio.Event, recent: RecentLog | None = None
) -> bool:
    """Serve a farm until `stop` is set. Return False if the device was lost, so that the process has to be replaced."""
    set_up_dask()
    with new_temporary_folder() as folder:
        while not stop.is_set() and not station.is_broken:
            await _serve_once(address, name, station, stop, recent, folder)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await stop.wait()
    return not station.is_broken


async def _serve_once(
    address: FarmAddress, name: str, station: Station, stop: asyncio.Event, recent: RecentLog | None, folder: str
) -> None:
    """Join the scheduler and serve until it is gone or `stop` is set."""
    from distributed import Security, Worker

    worker: Any = Worker(
        address.url,
        name=f"{name}#{os.getpid()}-{os.urandom(2).hex()}",
        nthreads=CALLS,
        memory_limit=0,
        host="127.0.0.1" if is_loopback(address.host) else None,
        protocol="tcp" if address.keys is None else "tls",
        security=Security() if address.keys is None else Security(**address.keys.as_security()),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
        local_directory=folder,
        death_timeout=CONNECT_S,
    )
    worker.station, worker.recent_log, worker.leave = station, recent, asyncio.Event()
    stopping = asyncio.ensure_future(stop.wait())
    leaving = asyncio.ensure_future(worker.leave.wait())
    finished = asyncio.ensure_future(_until_finished(worker))
    try:
        await asyncio.wait({stopping, leaving, finished}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (stopping, leaving, finished):
            task.cancel()
        await asyncio.gather(stopping, leaving, finished, return_exceptions=True)
        with contextlib.suppress(Exception):
            await worker.close(timeout=2, executor_wait=False)


async def _until_finished(worker: Any) -> None:
    try:
        await worker
    except (OSError, TimeoutError, RuntimeError, ValueError) as error:
        _log.info("The farm does not answer (%s).", str(error).splitlines()[0] if str(error) else error)
        return
    _log.info("Joined the farm as %s.", worker.name)
    await worker.finished()
    _log.info("Left the farm.")


def worker_name(device: str) -> str:
    """Return a name for a worker of this machine: "studio/gpu1"."""
    return f"{socket.gethostname()[:40]}/{device}"
