"""Work that is shared out among cores."""

import threading

import pytest

from gpu_backend.cuda.launches import shared_work
from gpu_backend.cuda.launches.shared_work import core_count, parallel_for


@pytest.fixture(params=[1, 2, 40])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(shared_work, "core_count", lambda: request.param)
    return int(request.param)


@pytest.mark.parametrize("count", [0, 1, 2, 100])
def test_every_part_is_done_once(cores: int, count: int) -> None:
    done: list[int] = []
    parallel_for(done.append, count)
    assert sorted(done) == list(range(count))


def test_several_cores_work_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_work, "core_count", lambda: 3)
    all_there = threading.Barrier(3, timeout=20)

    def wait(number: int) -> None:
        all_there.wait()

    parallel_for(wait, 3)
    assert not all_there.broken


def test_one_part_needs_no_other_thread(cores: int) -> None:
    threads: list[threading.Thread] = []
    parallel_for(lambda number: threads.append(threading.current_thread()), 1)
    assert threads == [threading.current_thread()]


def test_an_error_comes_out_and_nothing_new_is_begun(cores: int) -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        raise MemoryError(str(number))

    with pytest.raises(MemoryError):
        parallel_for(work, 100)
    assert len(begun) <= min(cores, 16)


def test_no_thread_stays(cores: int) -> None:
    before = threading.active_count()
    parallel_for(lambda number: None, 50)
    assert threading.active_count() == before


def test_there_is_a_core() -> None:
    assert core_count() >= 1
