"""Dask itself: a scheduler and two workers, in a process of its own, since Dask's threads outlive a test."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from explorer_app.farm import dask_setup, link
from explorer_app.farm.address import FarmAddress
from explorer_app.farm.errors import ConnectionLostError, FarmError, StationError, WorkerLostError
from explorer_app.farm.keys import make_keys
from explorer_app.farm.link import DaskLink, connect
from explorer_app.farm.scheduler import Board, exchange, jobs_of, run_scheduler
from explorer_app.farm.work import JobStatus, Member
from explorer_app.farm.worker import RecentLog, run_worker
from gpu_backend import CancelledError, LoomError
from tests.helpers.own_process import run_alone

_link_module: Any = link
STATUS = JobStatus("3f2a" * 6, "walk", "rendering", 1, 10, "1 of 10 frames", 0)


class TellingStation:
    """Answers calls without a model."""

    is_broken = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.pieces: dict[int, bytes] = {}
        self.finished: list[tuple[str, str]] = []
        self.cancelled: list[str] = []

    def echo(self, value: object) -> object:
        logging.getLogger("explorer_app.farm").info("echo of %s", value)
        return self.name, value

    def fail(self) -> None:
        raise LoomError("It does not work.", "because")

    def break_down(self) -> None:
        raise ZeroDivisionError

    def give_up(self) -> None:
        raise CancelledError("Cancelled.")

    def begin_model(self) -> None:
        self.pieces = {}

    def add_piece(self, offset: int, data: bytes) -> None:
        assert not offset or 0 in self.pieces
        self.pieces[offset] = bytes(data)

    def finish_model(self, model_id: str, suffix: str) -> None:
        self.finished.append((model_id, suffix))

    def cancel(self, job: str) -> None:
        self.cancelled.append(job)


async def members_of(farm: DaskLink, count: int) -> dict[str, Member]:
    """Wait until so many workers are there; return them by name."""
    while True:
        members, _ = await farm.exchange(None)
        if len(members) == count:
            return {member.name: member for member in members}
        await asyncio.sleep(0.02)


def speak(folder: str) -> None:
    """Go through all that a job asks of a farm."""
    logging.getLogger("explorer_app.farm").setLevel(logging.INFO)
    recent = RecentLog()
    logging.getLogger("explorer_app.farm").addHandler(recent)
    asyncio.run(asyncio.wait_for(_speak(Path(folder), recent), 90))


async def _speak(folder: Path, recent: RecentLog) -> None:
    keys = make_keys(folder / "farm.pem")
    stop, urls = asyncio.Event(), asyncio.Queue[str]()
    scheduler = asyncio.create_task(run_scheduler("127.0.0.1", 0, keys, stop, urls.put_nowait))
    url = await urls.get()
    address = FarmAddress("127.0.0.1", int(url.rpartition(":")[2]), keys)
    assert url.startswith("tls://127.0.0.1:")
    one: Any = TellingStation("one")
    two: Any = TellingStation("two")
    leave = asyncio.Event()
    workers = [
        asyncio.create_task(run_worker(address, "here/one", one, leave, recent)),
        asyncio.create_task(run_worker(address, "here/two", two, stop)),
    ]
    async with connect(address) as farm:
        members = await members_of(farm, 2)
        first, second = members["here/one"].address, members["here/two"].address
        assert await farm.call(first, "echo", 1) == ("one", 1)
        assert await farm.call(second, "echo", 2, priority=3) == ("two", 2)
        assert any("echo of 1" in line for line in await farm.log(first))
        assert await farm.log(second) == []
        with pytest.raises(StationError, match="does not work") as failed:
            await farm.call(first, "fail")
        assert (failed.value.details, failed.value.is_cancelled) == ("because", False)
        with pytest.raises(StationError) as cancelled:
            await farm.call(first, "give_up")
        assert cancelled.value.is_cancelled
        with pytest.raises(StationError, match="ZeroDivisionError"):
            await farm.call(first, "break_down")
        await farm.cancel([first, second], "ab")
        assert one.cancelled == two.cancelled == ["ab"]

        data = bytes(range(256)) * 1000
        (folder / "model").write_bytes(data)
        _link_module.PIECE_NBYTES = 50_000
        await farm.bring_model(folder / "model", "id", ".pkl", [first, second])
        for station in (one, two):
            assert b"".join(station.pieces[offset] for offset in sorted(station.pieces)) == data
            assert station.finished == [("id", ".pkl")]

        assert await farm.order("3f", ("pause", 0)) == ""
        await farm.exchange(STATUS)
        assert await farm.jobs() == [STATUS]
        assert await farm.order("3f", ("pause", 0)) == "walk"
        assert (await farm.exchange(STATUS))[1] == [("pause", 0)]
        assert (await farm.exchange(STATUS))[1] == []

        leave.set()
        await workers[0]
        await members_of(farm, 1)
        waiting = asyncio.create_task(farm.call(first, "echo", 3))
        with pytest.raises(TimeoutError):  # a job sees that the worker is gone, and gives its calls up
            await asyncio.wait_for(waiting, 0.2)

        await _check_strangers(address, folder)
        client: Any = farm._client
        client._timeout = client.rpc.timeout = 0.5  # patience with a scheduler that does not come back
        stop.set()
        await scheduler
        with pytest.raises((ConnectionLostError, WorkerLostError)):
            await farm.exchange(None)
    await workers[1]


async def _check_strangers(address: FarmAddress, folder: Path) -> None:
    """Who has no keys, or those of another authority, is not let in."""
    (folder / "other").mkdir()
    strangers = make_keys(folder / "other" / "farm.pem")
    _link_module.CONNECT_S = 1
    dask_setup._SETTINGS["distributed.comm.timeouts.connect"] = "1s"
    for keys in (strangers, None):
        with pytest.raises(FarmError, match="other keys"):
            async with connect(FarmAddress(address.host, address.port, keys)):
                pass


def test_a_link_carries_calls_failures_models_orders_and_refuses_strangers(tmp_path: Path) -> None:
    run_alone("tests.explorer_app.farm.test_link:speak", str(tmp_path))


def test_giving_chunks_up_passes_over_a_scheduler_that_is_gone() -> None:
    async def run(*arguments: object, **options: object) -> None:
        raise OSError("Timed out trying to connect")

    farm = DaskLink(cast("Any", SimpleNamespace(run=run)))
    asyncio.run(farm.cancel(["tcp://0"], "ab"))
    with pytest.raises(WorkerLostError):
        asyncio.run(farm.log("tcp://0"))


def test_the_board_forgets_jobs_that_are_silent() -> None:
    board = Board()
    board.note(STATUS, 0.0)
    board.order("3f", ("pause", 0))
    other = JobStatus("77" * 12, "other", "rendering", 0, 1, "", 0)
    board.note(other, 100.0)
    assert list(board.jobs) == [other.job]
    assert not board.orders
    assert board.order("3f", ("pause", 0)) == ""


def test_an_order_needs_a_number_that_fits_one_job() -> None:
    board = Board()
    board.note(STATUS, 0.0)
    board.note(JobStatus("3f00" * 6, "other", "rendering", 0, 1, "", 0), 0.0)
    assert board.order("3f", ("pause", 0)) == ""
    assert board.order("3f2", ("pause", 0)) == "walk"


def test_the_board_forgets_silent_jobs_whatever_happens_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(time=lambda: 1e9, monotonic=lambda: 500.0)
    monkeypatch.setattr("explorer_app.farm.scheduler.time", clock)
    dask_scheduler: Any = SimpleNamespace(workers={})
    exchange(STATUS, dask_scheduler)
    clock.time = lambda: 1e9 + 5 * 3600.0
    assert jobs_of(dask_scheduler) == [STATUS], "set forward"
    clock.time, clock.monotonic = lambda: 1e9 - 5 * 3600.0, lambda: 600.0
    assert jobs_of(dask_scheduler) == [], "set back"
