"""A job's requests to a farm, carried out by Dask."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from explorer_app.farm.address import FarmAddress
from explorer_app.farm.dask_setup import CONNECT_S, set_up_dask
from explorer_app.farm.errors import ConnectionLostError, FarmError, StationError, WorkerLostError
from explorer_app.farm.scheduler import exchange, jobs_of, leave_order
from explorer_app.farm.work import PIECE_NBYTES, JobStatus, Member, Order
from explorer_app.farm.worker import Failure, cancel_on_station, on_station, recent_log

if TYPE_CHECKING:
    from distributed import Client

_ANSWER_S = 30.0
"""Patience with a scheduler that is there but does not answer."""

_PIECES_AT_A_TIME = 4
"""Pieces of a model that are under way: what a worker holds in memory of it."""


class FarmLink(Protocol):
    """A connection to a farm. Every method raises ConnectionLostError if the scheduler is gone."""

    async def exchange(self, status: JobStatus | None) -> tuple[list[Member], list[Order]]:
        """Publish a job's status; return the workers, and orders for the job."""
        ...

    async def call(self, worker: str, method: str, *arguments: Any, priority: int = 0) -> Any:
        """Call a method of the `Station` at an address.

        Raises
        ------
        WorkerLostError
            If it died or left meanwhile.
        StationError
            If the call failed there.
        """
        ...

    async def cancel(self, workers: Sequence[str], job: str) -> None:
        """Give up the chunks of a job."""
        ...

    async def log(self, worker: str) -> list[str]:
        """Return what the worker at an address logged last. Raises WorkerLostError."""
        ...

    async def bring_model(self, path: Path, model_id: str, suffix: str, workers: Sequence[str]) -> None:
        """Copy a model to workers, which pass it on to each other piece by piece. Raises as `call`, and OSError."""
        ...


class DaskLink:
    """Implements `FarmLink`. Made by `connect`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def exchange(self, status: JobStatus | None) -> tuple[list[Member], list[Order]]:
        """Run on the scheduler."""
        found: tuple[list[Member], list[Order]] = await self._on_scheduler(exchange, status)
        return found

    async def jobs(self) -> list[JobStatus]:
        """Return the jobs of the farm."""
        found: list[JobStatus] = await self._on_scheduler(jobs_of)
        return found

    async def order(self, job: str, order: Order) -> str:
        """Leave an order for a job; return the job's name, empty if there is none."""
        name: str = await self._on_scheduler(leave_order, job, order)
        return name

    async def log(self, worker: str) -> list[str]:
        """Return what a worker logged last. Raises WorkerLostError."""
        with _as_connection_loss():
            found: dict[str, list[str]] = await self._client.run(recent_log, workers=[worker])
        return found[worker]

    async def call(self, worker: str, method: str, *arguments: Any, priority: int = 0) -> Any:
        """Submit a task that only this worker may run."""
        from distributed.scheduler import KilledWorker

        future = self._client.submit(
            on_station,
            method,
            *arguments,
            key=f"{method}-{uuid.uuid4().hex}",
            workers=[worker],
            allow_other_workers=False,
            priority=priority,
            pure=False,
        )
        try:
            with _as_connection_loss():
                answer = await future
        except KilledWorker as error:
            raise WorkerLostError("A worker ended while it rendered.", has_died=True) from error
        finally:
            future.release()
        if isinstance(answer, Failure):
            raise StationError(answer.sentence, answer.details, is_cancelled=answer.is_cancelled)
        return answer

    async def cancel(self, workers: Sequence[str], job: str) -> None:
        """Run beside the chunks; workers that are gone do not matter."""
        with contextlib.suppress(WorkerLostError), _as_connection_loss():
            await self._client.run(cancel_on_station, job, workers=list(workers), on_error="ignore")

    async def bring_model(self, path: Path, model_id: str, suffix: str, workers: Sequence[str]) -> None:
        """Send each piece to one worker; the others fetch it from a worker that has it."""
        await asyncio.gather(*(self.call(worker, "begin_model") for worker in workers))

        async def bring(offset: int, data: bytes) -> None:
            with _as_connection_loss():
                [piece] = await self._client.scatter([data], workers=[workers[0]], hash=False, direct=True)
            await asyncio.gather(*(self.call(worker, "add_piece", offset, piece) for worker in workers))

        with await asyncio.to_thread(path.open, "rb") as file:
            count, offset = 1, 0  # the first piece makes the file that the others are written into
            while pieces := [data for _ in range(count) if (data := await asyncio.to_thread(file.read, PIECE_NBYTES))]:
                offsets = [offset + place * PIECE_NBYTES for place in range(len(pieces))]
                await asyncio.gather(*map(bring, offsets, pieces))
                offset += sum(map(len, pieces))
                count = _PIECES_AT_A_TIME
        await asyncio.gather(*(self.call(worker, "finish_model", model_id, suffix) for worker in workers))

    async def _on_scheduler(self, function: Any, *arguments: Any) -> Any:
        try:
            async with asyncio.timeout(_ANSWER_S):
                return await self._client.run_on_scheduler(function, *arguments)
        except (OSError, TimeoutError) as error:
            raise ConnectionLostError("The farm no longer answers.", str(error)) from error


@contextlib.asynccontextmanager
async def connect(address: FarmAddress) -> AsyncIterator[DaskLink]:
    """Connect to a farm.

    Raises
    ------
    FarmError
        If it does not answer, or does not accept these keys.
    """
    set_up_dask()
    await _check_listens(address)
    from distributed import Client, Security

    client: Any = Client(
        address.url,
        asynchronous=True,
        security=Security() if address.keys is None else Security(**address.keys.as_security()),
        timeout=CONNECT_S,
        direct_to_workers=True,
        set_as_default=False,
    )
    try:
        try:
            await client
        except (OSError, TimeoutError) as error:
            raise FarmError(
                f"What listens at {address.text} is no farm, or has other keys; see `latentloom farm keys`.", str(error)
            ) from error
        yield DaskLink(client)
    finally:
        with contextlib.suppress(Exception):
            await client.close(timeout=2)


async def _check_listens(address: FarmAddress) -> None:
    """Raise FarmError if no program listens: Dask would retry until its timeout."""
    try:
        async with asyncio.timeout(CONNECT_S):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except (OSError, TimeoutError) as error:
        raise FarmError(
            f"No farm answers at {address.text}; start one there with `latentloom farm up`.", str(error)
        ) from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@contextlib.contextmanager
def _as_connection_loss() -> Any:
    """Raise Dask's exceptions of a lost worker or scheduler as ours; those of a connection are OSErrors."""
    from distributed.client import FutureCancelledError

    try:
        yield
    except FutureCancelledError as error:
        raise WorkerLostError("A worker left while it rendered.") from error
    except OSError as error:
        raise WorkerLostError("A worker no longer answers.") from error
