"""``latentloom farm``: many GPUs, here and on other machines, that render one sequence."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from explorer_app.cli.arguments import Parser, UsageError, add_device, count, gpu_list, positive_count, priority
from explorer_app.cli.console import Console
from explorer_app.exporting.writers import MAX_THREADS
from explorer_app.farm.address import DEFAULT_PORT, FarmAddress, farm_address, is_loopback
from explorer_app.farm.errors import FarmError, require_farm_extra
from explorer_app.farm.keys import default_keys_path, make_keys
from explorer_app.farm.link import DaskLink, connect
from explorer_app.farm.local_farm import LocalFarm, crew_of_this_machine
from explorer_app.farm.work import JobStatus, Order
from explorer_app.interrupts import handle_stops, restore
from explorer_app.rendering.device_choice import DeviceChoice

_Answer = TypeVar("_Answer")

_EXAMPLES = """examples:
  latentloom farm up                            every GPU of this machine, for programs of this machine
  latentloom farm keys                          make the keys that a farm of several machines needs
  latentloom farm up --address 192.168.1.20     a farm that other machines can join
  latentloom farm join 192.168.1.20             on another machine, which has a copy of the keys
  latentloom render --seeds 3-9 --path cubic --outdir out --farm 192.168.1.20
  latentloom farm status
  latentloom farm pause 3f2a"""

_LOOPBACK = "127.0.0.1"
_LOOK_S = 0.5
_CONNECT_S = 3.0


def parser() -> Parser:
    """Return the parser of this command."""
    made = Parser("latentloom farm", "Render sequences on many GPUs, of this machine and others.", _EXAMPLES)
    words = made.add_subparsers(dest="word", metavar="WORD", required=True, parser_class=_WordParser)
    up = words.add_parser("up", help="start a farm on this machine, and run it until Ctrl-C")
    up.add_argument(
        "--address",
        default=_LOOPBACK,
        metavar="HOST[:PORT]",
        help=f"where to listen (default: {_LOOPBACK}:{DEFAULT_PORT}, which only this machine reaches)",
    )
    _add_crew(up)
    _add_keys(up)
    join = words.add_parser("join", help="add the GPUs of this machine to a farm, until Ctrl-C")
    join.add_argument("host", metavar="HOST[:PORT]", help="where the farm listens")
    _add_crew(join)
    _add_keys(join)
    keys = words.add_parser("keys", help="make the keys of a farm of several machines")
    keys.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help=f"where to write the keys of a machine (default: {default_keys_path()})",
    )
    keys.add_argument(
        "--new-authority", action="store_true", help="make a new authority, which invalidates all former keys"
    )
    status = words.add_parser("status", help="print the workers and jobs of a farm")
    _add_farm(status)
    log = words.add_parser("log", help="print the latest log lines of a worker")
    log.add_argument("worker", metavar="WORKER", help="its name, as status prints it")
    _add_farm(log)
    for word, what in (
        ("pause", "pause a job: no more of its frames are handed out"),
        ("resume", "continue a paused job"),
        ("cancel", "cancel a job; finished frames stay"),
        ("priority", "change the priority of a job"),
    ):
        order = words.add_parser(word, help=what)
        order.add_argument("job", metavar="JOB", help="its number or the beginning of it, as status prints it")
        if word == "priority":
            order.add_argument(
                "number",
                type=priority,
                metavar="N",
                help="frames of jobs with a higher one come first; jobs start with 0",
            )
        _add_farm(order)
    worker = words.add_parser("worker", help="run one worker in this process, for a cluster's launcher")
    worker.add_argument("--name", default="", metavar="NAME", help="its name on the farm (default: host and device)")
    worker.add_argument("--threads", type=positive_count, default=2, metavar="N", help="pictures to encode at a time")
    add_device(worker)
    _add_farm(worker)
    _add_child(worker)
    scheduler = words.add_parser("scheduler", help="run the scheduler alone in this process, for a cluster's launcher")
    scheduler.add_argument("--address", default=_LOOPBACK, metavar="HOST[:PORT]", help="where to listen")
    _add_keys(scheduler)
    _add_child(scheduler)
    return made


class _WordParser(Parser):
    """The parser of one word, as argparse makes it."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, "")


def _add_crew(made: argparse.ArgumentParser) -> None:
    made.add_argument("--gpus", type=gpu_list, default="all", metavar="LIST", help="such as 0,1,3 (default: all)")
    made.add_argument("--cpu-workers", type=count, default=0, metavar="N", help="workers on the CPU (default: 0)")


def _add_keys(made: argparse.ArgumentParser) -> None:
    made.add_argument("--keys", type=Path, metavar="FILE", help=f"keys of the farm (default: {default_keys_path()})")


def _add_farm(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--farm", default=_LOOPBACK, metavar="HOST[:PORT]", help=f"where the farm listens (default: {_LOOPBACK})"
    )
    _add_keys(made)


def _add_child(made: argparse.ArgumentParser) -> None:
    made.add_argument("--watch-stdin", action="store_true", help="end when standard input ends")


def run(words: Sequence[str], console: Console) -> int:
    """Run a subcommand."""
    options = parser().parse_args(words)
    require_farm_extra()
    run_word: Callable[[argparse.Namespace, Console], None] = _WORDS[options.word]
    run_word(options, console)
    return 0


def _up(options: argparse.Namespace, console: Console) -> None:
    address = farm_address(options.address, options.keys)
    crew = crew_of_this_machine(options.gpus, options.cpu_workers)
    with LocalFarm(address, crew, keys_path=_keys_path(options, address), say=console.note) as farm:
        console.note(f"The farm listens at {farm.address.text}, with {_workers(len(crew))} on this machine.")
        if is_loopback(address.host):
            console.note("Use it with --farm on this machine; to let others join, see latentloom farm keys.")
        else:
            console.note(f"On other machines: latentloom farm join {farm.address.text}")
        _until_stopped(console)


def _join(options: argparse.Namespace, console: Console) -> None:
    address = farm_address(options.host, options.keys)
    crew = crew_of_this_machine(options.gpus, options.cpu_workers)
    keys_path = _keys_path(options, address)
    with LocalFarm(address, crew, keys_path=keys_path, runs_scheduler=False, say=console.note):
        if _answers(address):
            console.note(f"The farm at {address.text} gets {_workers(len(crew))} of this machine.")
        else:
            console.note(
                f"No farm answers at {address.text}; {_workers(len(crew))} of this machine will join it once it is up."
            )
        _until_stopped(console)


def _answers(address: FarmAddress) -> bool:
    """Return whether a program listens at an address."""
    try:
        socket.create_connection((address.host, address.port), _CONNECT_S).close()
    except OSError:
        return False
    return True


def _keys(options: argparse.Namespace, console: Console) -> None:
    path = options.out or default_keys_path()
    make_keys(path, new_authority=options.new_authority)
    console.note(
        f"The keys are in {path}. Copy this file over a secure connection to {default_keys_path()} on every machine of "
        "the farm: anyone who has it can run programs on all of them. It is valid for two years."
    )


def _status(options: argparse.Namespace, console: Console) -> None:
    async def ask(link: DaskLink) -> list[str]:
        members, _ = await link.exchange(None)
        lines = [f"{_workers(len(members))}:"]
        jobs = await link.jobs()
        for member in sorted(members, key=lambda member: member.name):
            lines.append(f"  {member.name}, silent for {member.silent_s:.0f} s")
        lines.append(f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}{':' if jobs else '.'}")
        for job in jobs:
            lines += job_lines(job)
        return lines

    console.results(_answer_of(options, ask))


def job_lines(job: JobStatus) -> list[str]:
    """Return what is shown of a job and its workers, a line each; workers of a job that is done have no state."""
    is_done = job.done >= job.total
    lines = [f"  {job.job[:8]} {job.name}: {job.state}, priority {job.priority}: {job.progress}"]
    for worker in job.workers:
        state = "" if is_done else f"{worker.state}, "
        frames = f"{worker.frames} frame{'' if worker.frames == 1 else 's'}"
        failed = f", {worker.failures} failed" if worker.failures else ""
        lines.append(f"    {worker.name}: {state}{frames}, {worker.rate:.3g} fps{failed}; {worker.device}")
    return lines


def _log_of(options: argparse.Namespace, console: Console) -> None:
    async def ask(link: DaskLink) -> list[str]:
        members, _ = await link.exchange(None)
        for member in members:
            if member.name == options.worker:
                return await link.log(member.address)
        known = ", ".join(sorted(member.name for member in members)) or "none"
        raise UsageError(f"The farm has no worker named {options.worker}; it has {known}.")

    console.results(_answer_of(options, ask))


def _order(options: argparse.Namespace, console: Console) -> None:
    order: Order = (options.word, getattr(options, "number", 0))

    async def ask(link: DaskLink) -> str:
        return await link.order(options.job, order)

    name = _answer_of(options, ask)
    if not name:
        raise UsageError(
            f"No job, or more than one, has a number that begins with {options.job}; see latentloom farm status."
        )
    console.note(f"{name}: {options.word} was sent to the farm.")


def _answer_of(options: argparse.Namespace, ask: Callable[[DaskLink], Awaitable[_Answer]]) -> _Answer:
    """Connect, and return what `ask` returns."""
    address = farm_address(options.farm, options.keys)

    async def main() -> _Answer:
        async with connect(address) as link:
            return await ask(link)

    return asyncio.run(main())


def _worker(options: argparse.Namespace, console: Console) -> None:
    from explorer_app.farm.station import Station
    from explorer_app.farm.worker import RecentLog, run_worker, worker_name

    if options.threads > MAX_THREADS:
        raise UsageError(f"--threads must be at most {MAX_THREADS}, not {options.threads}.")
    address = farm_address(options.farm, options.keys)
    name = options.name or worker_name(options.device.replace(":", ""))
    recent = RecentLog()
    for package in ("explorer_app", "gpu_backend"):
        logging.getLogger(package).addHandler(recent)
    station = Station(DeviceChoice(options.device, options.precision), threads=options.threads)

    async def main(stop: asyncio.Event) -> None:
        if not await run_worker(address, name, station, stop, recent):
            raise FarmError(f"{name} lost its device, so this worker exits.")

    try:
        _run_until_stopped(main, options.watch_stdin)
    finally:
        for package in ("explorer_app", "gpu_backend"):
            logging.getLogger(package).removeHandler(recent)
        station.close()


def _scheduler(options: argparse.Namespace, console: Console) -> None:
    from explorer_app.farm.scheduler import run_scheduler

    address = farm_address(options.address, options.keys)

    async def main(stop: asyncio.Event) -> None:
        await run_scheduler(
            address.host, address.port, address.keys, stop, lambda url: console.results([f"Listening at {url}"])
        )

    _run_until_stopped(main, options.watch_stdin)


def _run_until_stopped(main: Callable[[asyncio.Event], Awaitable[None]], watches_stdin: bool) -> None:
    """Run `main` until SIGTERM, Ctrl-C, or the end of standard input; these set the event that it gets."""

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        former = handle_stops(lambda number, frame: loop.call_soon_threadsafe(stop.set))
        if watches_stdin:
            threading.Thread(target=_watch_stdin, args=(loop, stop), name="farm-stdin", daemon=True).start()
        try:
            await main(stop)
        finally:
            restore(former)

    asyncio.run(run())


def _watch_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    with contextlib.suppress(OSError, ValueError):
        number = sys.stdin.fileno()
        while os.read(number, 4096):  # not `sys.stdin.read`, whose lock a daemon thread would hold when Python ends
            pass
    with contextlib.suppress(RuntimeError):  # it has ended by itself
        loop.call_soon_threadsafe(stop.set)


def _until_stopped(console: Console) -> None:
    """Wait for Ctrl-C or SIGTERM."""
    with contextlib.suppress(KeyboardInterrupt):
        while not console.stopped_by:
            threading.Event().wait(_LOOK_S)
    console.note("The farm ends.")


def _keys_path(options: argparse.Namespace, address: FarmAddress) -> Path | None:
    return None if address.keys is None else options.keys or default_keys_path()


def _workers(number: int) -> str:
    return f"{number} worker{'' if number == 1 else 's'}"


_WORDS: dict[str, Callable[[argparse.Namespace, Console], None]] = {
    "up": _up,
    "join": _join,
    "keys": _keys,
    "status": _status,
    "log": _log_of,
    **dict.fromkeys(("pause", "resume", "cancel", "priority"), _order),
    "worker": _worker,
    "scheduler": _scheduler,
}
