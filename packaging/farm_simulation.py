"""What a farm's scheduler bears: a thousand fake workers in one process, and chunks that take no time or a given one.

    python packaging/farm_simulation.py --workers 1000 --chunk-s 0 [--csv FILE]

The scheduler is a process of its own and the real one; this process calls workers as a job does, two lanes a worker. A
fake worker is a connection to the scheduler that registers, sends heartbeats with the metrics of a real worker and
answers each task with the report of a rendered chunk; it has an address of its own on the loopback network, where the
job fetches results. It runs no task, so a thousand of them take a process.

Printed: tasks a second, the scheduler's processor time a task and at rest, and what an exchange costs. On a machine
whose cores are fewer than these processes, the processor time counts: its inverse is what a scheduler with a core to
itself reaches. Linux only: elsewhere loopback has one address.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import os
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from explorer_app.farm.address import FarmAddress
from explorer_app.farm.dask_setup import set_up_dask
from explorer_app.farm.foreman import LANES
from explorer_app.farm.link import DaskLink, connect
from explorer_app.farm.scheduler import run_scheduler
from explorer_app.farm.work import Chunk, ChunkReport, Member, StoredUnit

_START_S = 600.0
_FRAMES = 16
_REST_S = 20.0
_MOST_CALLS = 200
"""Calls under way: on a few cores, two for each of a thousand workers would wait for each other until they time out."""

_AT_A_TIME = 20
"""Workers that register at the same time."""


def scheduler_state(dask_scheduler: Any) -> tuple[float, int, float]:
    """Return processor seconds, heartbeats since the first call, and peak memory (MB) of the scheduler. Runs there."""
    handlers = dask_scheduler.handlers
    if not hasattr(dask_scheduler, "latentloom_beats"):
        dask_scheduler.latentloom_beats = 0
        former = handlers["heartbeat_worker"]

        def count(**fields: Any) -> Any:
            dask_scheduler.latentloom_beats += 1
            return former(**fields)

        handlers["heartbeat_worker"] = count
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return time.process_time(), dask_scheduler.latentloom_beats, memory


async def _be_scheduler() -> None:
    await run_scheduler("127.0.0.1", 0, None, asyncio.Event(), lambda url: print(url, flush=True))  # noqa: T201


class FakeWorkers:
    """Connections to a scheduler, each of which it takes for a worker.

    Parameters
    ----------
    chunk_s
        How long a chunk takes; a worker has as many under way as it is sent.
    """

    def __init__(self, url: str, chunk_s: float) -> None:
        from distributed.core import Server, rpc

        self._url = url
        self._chunk_s = chunk_s
        self._scheduler = rpc(url)
        self._results = Server({"get_data": self._get_data})
        self._metrics: dict[str, Any] = {}
        self._extra: dict[str, Any] = {}
        self._heartbeat_s = 5.0
        self._addresses: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        units = tuple(StoredUnit(unit, 1, 1_200_000) for unit in range(_FRAMES))
        self._report = ChunkReport(units, max(chunk_s, 1e-3))

    async def start(self, count: int) -> None:
        """Register workers until there are as many, and answer from now on."""
        from distributed import Worker

        await self._results.listen("tcp://0.0.0.0:0")
        async with Worker(self._url, nthreads=LANES, memory_limit=0, host="127.0.0.1", dashboard=False) as real:
            self._metrics = await real.get_metrics()
            self._extra = await real.get_startup_information()
        self._start(self._beat())
        for first in range(0, count, _AT_A_TIME):
            await asyncio.gather(*(self._register(place) for place in range(first, min(first + _AT_A_TIME, count))))

    async def _register(self, place: int) -> None:
        from distributed.batched import BatchedSend
        from distributed.comm import connect
        from distributed.versions import get_versions

        address = f"tcp://127.0.{1 + place // 250}.{1 + place % 250}:{self._results.port}"
        comm = await connect(self._url)
        await comm.write(
            {
                "op": "register-worker",
                "reply": False,
                "address": address,
                "status": "running",
                "nthreads": LANES,
                "name": f"worker {place}",
                "now": time.time(),
                "resources": {},
                "memory_limit": 0,
                "local_directory": "",
                "services": {},
                "nanny": None,
                "pid": os.getpid(),
                "versions": get_versions(),
                "metrics": self._metrics,
                "extra": self._extra,
                "stimulus_id": f"worker-connect-{time.time()}",
                "server_id": f"fake-{place}",
            },
            serializers=["msgpack"],
        )
        response = await comm.read(deserializers=["msgpack"])
        if response["status"] != "OK":
            raise SystemExit(response.get("message", "The scheduler takes no worker."))
        self._heartbeat_s = response["heartbeat-interval"]
        stream = BatchedSend(interval="2ms")
        stream.start(comm)
        self._start(self._answer(comm, stream))
        self._addresses.append(address)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _beat(self) -> None:
        """Send the heartbeats of all workers, one after the other, so that they take one connection."""
        while True:
            start_s = time.monotonic()
            for address in list(self._addresses):
                with contextlib.suppress(OSError):  # a busy machine: the next one may come through
                    answer = await self._scheduler.heartbeat_worker(
                        address=address, now=time.time(), metrics=self._metrics, executing={}, extensions={}
                    )
                    self._heartbeat_s = answer.get("heartbeat-interval", self._heartbeat_s)
            await asyncio.sleep(max(0.1, self._heartbeat_s - (time.monotonic() - start_s)))

    async def _answer(self, comm: Any, stream: Any) -> None:
        """Say of every task that it is done."""
        kind = pickle.dumps(ChunkReport)
        while True:
            for message in await comm.read():
                if message.get("op") == "compute-task":
                    self._start(self._finish(stream, message, kind))

    async def _finish(self, stream: Any, message: dict[str, Any], kind: bytes) -> None:
        if self._chunk_s:
            await asyncio.sleep(self._chunk_s)
        now_s = time.time()
        stream.send(
            {
                "op": "task-finished",
                "status": "OK",
                "key": message["key"],
                "run_id": message["run_id"],
                "stimulus_id": f"task-finished-{now_s}",
                "nbytes": 1000,
                "type": kind,
                "typename": "explorer_app.farm.work.ChunkReport",
                "metadata": {},
                "thread": 1,
                "startstops": [{"action": "compute", "start": now_s - self._chunk_s, "stop": now_s}],
            }
        )

    async def _get_data(self, comm: Any, keys: Any, **_: Any) -> Any:
        """Answer as a worker does, which waits until the other side has what it asked for."""
        from distributed.core import Status
        from distributed.protocol import to_serialize

        await comm.write({"status": "OK", "data": {key: to_serialize(self._report) for key in keys}})
        await comm.read()
        return Status.dont_reply


async def _be_workers(url: str, count: int, chunk_s: float) -> None:
    set_up_dask()
    await FakeWorkers(url, chunk_s).start(count)
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Findings:
    """What a simulation measured; processor times in ms a chunk, memory in MB.

    Heartbeats are counted apart, by what one of them takes at rest: on a busy machine fewer of them come through.
    """

    workers: int
    chunk_s: float
    joined_s: float
    rest_share: float
    exchange_ms: float
    chunks: int
    seconds: float
    scheduler_ms: float
    job_ms: float
    scheduler_mb: float

    def lines(self) -> str:
        """Return them in words."""
        most = (1 - self.rest_share) / self.scheduler_ms * 1e3
        return (
            f"{self.workers} workers joined in {self.joined_s:.0f} s\n"
            f"scheduler at rest: {100 * self.rest_share:.1f} % of a core, {self.scheduler_mb:.0f} MB; one exchange: "
            f"{self.exchange_ms:.0f} ms\n"
            f"chunks of {self.chunk_s:g} s: {self.chunks} in {self.seconds:.1f} s, {self.chunks / self.seconds:.0f} a "
            f"second; the scheduler took {self.scheduler_ms:.2f} ms of its core for each (so at most {most:.0f} a "
            f"second), the job {self.job_ms:.2f} ms"
        )


async def _measure(address: FarmAddress, count: int, seconds: float, chunk_s: float) -> Findings:
    from distributed.scheduler import heartbeat_interval

    async with connect(address) as link:
        start_s = time.monotonic()
        while len(members := (await link.exchange(None))[0]) < count:
            if time.monotonic() - start_s > _START_S:
                raise SystemExit(f"Only {len(members)} of {count} workers came.")
            await asyncio.sleep(1)
        joined_s = time.monotonic() - start_s
        await asyncio.sleep(5)
        await _scheduler(link)
        before, first, _ = await _scheduler(link)
        await asyncio.sleep(_REST_S)
        after, last, _ = await _scheduler(link)
        beat_s = (after - before) / max(last - first, 1)
        rest_share = beat_s * count / heartbeat_interval(count)
        start_s = time.perf_counter()
        members, _ = await link.exchange(None)
        exchange_ms = 1e3 * (time.perf_counter() - start_s)
        done = 0
        end_s = time.monotonic() + seconds

        async def lane(workers: Sequence[Member]) -> None:
            nonlocal done
            start = 0
            while time.monotonic() < end_s:
                worker = workers[start // _FRAMES % len(workers)].address
                await link.call(worker, "render", Chunk("simulation", start, start + _FRAMES))
                done += 1
                start += _FRAMES

        before, first, _ = await _scheduler(link)
        own_s, start_s = time.process_time(), time.monotonic()
        lanes = min(LANES * count, _MOST_CALLS)
        await asyncio.gather(*(lane(members[place % count :: lanes] or members) for place in range(lanes)))
        took = time.monotonic() - start_s
        own_s = time.process_time() - own_s
        after, last, memory = await _scheduler(link)
    return Findings(
        count,
        chunk_s,
        joined_s,
        rest_share,
        exchange_ms,
        done,
        took,
        1e3 * (after - before - beat_s * (last - first)) / max(done, 1),
        1e3 * own_s / max(done, 1),
        memory,
    )


async def _scheduler(link: DaskLink) -> tuple[float, int, float]:
    found: tuple[float, int, float] = await link._client.run_on_scheduler(scheduler_state)
    return found


def main() -> None:
    """Run the processes and print what came."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[1000], help="one simulation a number")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long tasks are measured")
    parser.add_argument("--chunk-s", type=float, default=0.0, help="how long a chunk takes")
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--be", choices=("scheduler", "workers"), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be == "scheduler":
        asyncio.run(_be_scheduler())
        return
    if options.be == "workers":
        asyncio.run(_be_workers(options.url, options.workers[0], options.chunk_s))
        return
    found = [simulate(workers, options.seconds, options.chunk_s) for workers in options.workers]
    if options.csv is not None:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(field.name for field in fields(Findings))
            for one in found:
                values = (getattr(one, field.name) for field in fields(Findings))
                writer.writerow(f"{value:.4g}" if isinstance(value, float) else value for value in values)


def simulate(workers: int, seconds: float, chunk_s: float) -> Findings:
    """Run a scheduler with so many workers, measure it, and print what came."""
    again = [sys.executable, __file__, "--chunk-s", str(chunk_s)]
    with contextlib.ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen([*again, *words], stdout=subprocess.PIPE, text=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("--be", "scheduler")
        assert scheduler.stdout is not None
        url = scheduler.stdout.readline().strip()
        start("--be", "workers", "--url", url, "--workers", str(workers))
        address = FarmAddress("127.0.0.1", int(url.rpartition(":")[2]), None)
        found = asyncio.run(_measure(address, workers, seconds, chunk_s))
    sys.stdout.write(found.lines() + "\n")
    sys.stdout.flush()
    return found


if __name__ == "__main__":
    main()
