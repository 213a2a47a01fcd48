"""What a farm's scheduler bears: fake workers without GPUs, and chunks that take no time or a given one.

    python packaging/farm_simulation.py --workers 1000 --chunk-s 0

The scheduler is a separate process, and so is each group of fake workers; this process calls them as a job does, two
lanes a worker. Printed: tasks a second, the scheduler's processor time a task and at rest, and what an exchange costs.
On a machine whose cores are fewer than these processes, the processor time counts: its inverse is what a scheduler with
a core to itself reaches.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import resource
import subprocess
import sys
import time
from typing import Any

from explorer_app.farm.address import FarmAddress
from explorer_app.farm.dask_setup import set_up_dask
from explorer_app.farm.foreman import LANES
from explorer_app.farm.link import DaskLink, connect
from explorer_app.farm.scheduler import run_scheduler
from explorer_app.farm.work import Chunk, ChunkReport, StoredUnit

_GROUP = 250
_START_S = 1200.0
_FRAMES = 16


class FakeStation:
    """A worker without a device: reports frames after a while."""

    is_broken = False

    def __init__(self, chunk_s: float) -> None:
        self._chunk_s = chunk_s

    def render(self, chunk: Chunk) -> ChunkReport:
        """Report the chunk's frames."""
        time.sleep(self._chunk_s)
        units = tuple(StoredUnit(unit, 1, 1_200_000) for unit in range(chunk.start, chunk.stop))
        return ChunkReport(units, self._chunk_s)


def scheduler_seconds(dask_scheduler: Any) -> tuple[float, float]:
    """Return processor seconds and peak memory (MB) of the scheduler's process. Runs there."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def _be_scheduler() -> None:
    await run_scheduler("127.0.0.1", 0, None, asyncio.Event(), lambda url: print(url, flush=True))  # noqa: T201


async def _be_workers(url: str, count: int, chunk_s: float) -> None:
    set_up_dask()
    from concurrent.futures import ThreadPoolExecutor

    from distributed import Worker

    threads = ThreadPoolExecutor(min(LANES * count, 256) if chunk_s else 8)
    workers: list[Any] = []
    for place in range(0, count, 10):
        made: list[Any] = [
            Worker(
                url,
                nthreads=LANES,
                memory_limit=0,
                host="127.0.0.1",
                dashboard=False,
                dashboard_address="127.0.0.1:0",
                executor={"default": threads, "actor": threads},
            )
            for _ in range(min(10, count - place))
        ]
        for worker in made:
            worker.station = FakeStation(chunk_s)
        await asyncio.gather(*made)
        workers += made
    await asyncio.Event().wait()


async def _measure(address: FarmAddress, count: int, seconds: float, chunk_s: float) -> list[str]:
    async with connect(address) as link:
        start_s = time.monotonic()
        while True:
            members, _ = await link.exchange(None)
            if len(members) >= count:
                break
            if time.monotonic() - start_s > _START_S:
                raise SystemExit(f"Only {len(members)} of {count} workers came.")
            await asyncio.sleep(1)
        lines = [f"{count} workers joined in {time.monotonic() - start_s:.0f} s"]
        await asyncio.sleep(5)
        before, _ = await _scheduler(link)
        await asyncio.sleep(10)
        after, memory = await _scheduler(link)
        idle = (after - before) / 10
        lines.append(f"scheduler at rest: {100 * idle:.1f} % of a core, {memory:.0f} MB")
        own = time.perf_counter()
        await link.exchange(None)
        lines.append(f"one exchange: {1e3 * (time.perf_counter() - own):.0f} ms")
        done = 0
        end_s = time.monotonic() + seconds

        async def lane(worker: str) -> None:
            nonlocal done
            start = 0
            while time.monotonic() < end_s:
                await link.call(worker, "render", Chunk("simulation", start, start + _FRAMES))
                done += 1
                start += _FRAMES

        before, _ = await _scheduler(link)
        own, start_s = time.process_time(), time.monotonic()
        await asyncio.gather(*(lane(member.address) for member in members for _ in range(LANES)))
        took = time.monotonic() - start_s
        own = time.process_time() - own
        after, memory = await _scheduler(link)
        each = (after - before - idle * took) / max(done, 1)
        lines.append(
            f"chunks of {chunk_s:g} s: {done} tasks in {took:.1f} s, {done / took:.0f} a second; the scheduler took "
            f"{1e3 * each:.2f} ms of its core for each (so at most {(1 - idle) / each:.0f} a second), the job "
            f"{1e3 * own / max(done, 1):.2f} ms; {memory:.0f} MB"
        )
    return lines


async def _scheduler(link: DaskLink) -> tuple[float, float]:
    found: tuple[float, float] = await link._client.run_on_scheduler(scheduler_seconds)
    return found


def main() -> None:
    """Run the processes and print what came."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long tasks are measured")
    parser.add_argument("--chunk-s", type=float, default=0.0, help="how long a chunk takes")
    parser.add_argument("--be", choices=("scheduler", "workers"), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be == "scheduler":
        asyncio.run(_be_scheduler())
        return
    if options.be == "workers":
        asyncio.run(_be_workers(options.url, options.workers, options.chunk_s))
        return
    again = [sys.executable, __file__, "--chunk-s", str(options.chunk_s)]
    with contextlib.ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen([*again, *words], stdout=subprocess.PIPE, text=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("--be", "scheduler")
        assert scheduler.stdout is not None
        url = scheduler.stdout.readline().strip()
        for first in range(0, options.workers, _GROUP):
            start("--be", "workers", "--url", url, "--workers", str(min(_GROUP, options.workers - first)))
        address = FarmAddress("127.0.0.1", int(url.rpartition(":")[2]), None)
        for line in asyncio.run(_measure(address, options.workers, options.seconds, options.chunk_s)):
            print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
