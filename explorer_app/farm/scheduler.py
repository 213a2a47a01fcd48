"""The scheduler's process: Dask's scheduler, and the board on which jobs are known to everyone on the farm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from explorer_app.farm.address import bracketed
from explorer_app.farm.dask_setup import set_up_dask
from explorer_app.farm.errors import FarmError
from explorer_app.farm.keys import FarmKeys
from explorer_app.farm.work import JobStatus, Member, Order

if TYPE_CHECKING:
    from distributed import Scheduler

_FORGET_S = 60.0
"""A job that says nothing for so long has ended without saying so."""

_NUMBER_MARK = "#"


@dataclass
class Board:
    """What jobs say of themselves, and the orders that wait for them."""

    jobs: dict[str, tuple[float, JobStatus]] = field(default_factory=dict)
    orders: dict[str, list[Order]] = field(default_factory=dict)

    def note(self, status: JobStatus, now_s: float) -> list[Order]:
        """Record a job at a monotonic time, drop silent jobs, and return its pending orders."""
        self.jobs[status.job] = now_s, status
        for job in [job for job, (seen_s, _) in self.jobs.items() if now_s - seen_s > _FORGET_S]:
            del self.jobs[job]
            self.orders.pop(job, None)
        return self.orders.pop(status.job, [])

    def order(self, job: str, order: Order) -> str:
        """Leave an order for the only job whose number begins so, and return its name; empty if it is not unique."""
        found = [known for known in self.jobs if known.startswith(job)]
        if len(found) != 1:
            return ""
        self.orders.setdefault(found[0], []).append(order)
        return self.jobs[found[0]][1].name


def exchange(status: JobStatus | None, dask_scheduler: Scheduler) -> tuple[list[Member], list[Order]]:
    """Publish a job's status; return the workers, and the orders that wait for the job. Runs on the scheduler."""
    clock_s = time.time()  # of `last_seen`
    members = [
        Member(state.address, str(state.name).partition(_NUMBER_MARK)[0], state.host, clock_s - state.last_seen)
        for state in dask_scheduler.workers.values()
        if state.status.name == "running"
    ]
    orders = [] if status is None else _board(dask_scheduler).note(status, time.monotonic())
    return members, orders


def jobs_of(dask_scheduler: Scheduler) -> list[JobStatus]:
    """Return the jobs that said something in the last minute. Runs on the scheduler."""
    now_s = time.monotonic()
    return [status for seen_s, status in _board(dask_scheduler).jobs.values() if now_s - seen_s <= _FORGET_S]


def leave_order(job: str, order: Order, dask_scheduler: Scheduler) -> str:
    """Leave an order for a job; return the job's name, empty if there is none. Runs on the scheduler."""
    return _board(dask_scheduler).order(job, order)


def _board(scheduler: Any) -> Board:
    if not hasattr(scheduler, "latentloom_board"):
        scheduler.latentloom_board = Board()
    board: Board = scheduler.latentloom_board
    return board


async def run_scheduler(
    host: str, port: int, keys: FarmKeys | None, stop: asyncio.Event, started: Callable[[str], None]
) -> None:
    """Run a scheduler until `stop` is set.

    Parameters
    ----------
    started
        Gets the address, once the scheduler listens.

    Raises
    ------
    FarmError
        If the system refuses the address.
    """
    set_up_dask()
    from distributed import Scheduler, Security

    protocol = "tcp" if keys is None else "tls"
    scheduler = Scheduler(
        host=bracketed(host),
        port=port,
        protocol=protocol,
        security=Security() if keys is None else Security(**keys.as_security()),
        dashboard=False,
        dashboard_address="127.0.0.1:0",
    )
    try:
        await scheduler
    except (OSError, RuntimeError) as error:  # Dask wraps the system's error
        problem = error if isinstance(error, OSError) else error.__cause__
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem or error)
        raise FarmError(f"A farm cannot listen on {host}:{port} ({reason}); choose another --address.") from error
    try:
        started(scheduler.address)
        await stop.wait()
    finally:
        await scheduler.close()
