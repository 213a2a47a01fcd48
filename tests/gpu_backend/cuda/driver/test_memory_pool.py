"""Freeing without waiting, on a GPU made of Python."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from gpu_backend.cuda.driver.interface import Event
from gpu_backend.cuda.driver.memory_pool import MemoryPool
from gpu_backend.errors import DeviceMemoryError
from tests.helpers.fake_gpu import FakeDriver


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(memory_nbytes=1000)


@pytest.fixture
def pool(driver: FakeDriver) -> MemoryPool:
    return MemoryPool(driver)


def work(driver: FakeDriver) -> None:
    """Keep the device busy until somebody waits."""
    driver.record(driver.make_event())


def test_an_idle_device_frees_at_once(driver: FakeDriver, pool: MemoryPool) -> None:
    pool.release(pool.reserve(100))
    assert not driver.device


def test_a_busy_device_frees_when_it_is_idle_again(driver: FakeDriver, pool: MemoryPool) -> None:
    device, pinned = pool.reserve(100), pool.reserve_pinned(50)
    work(driver)
    pool.release(device)
    pool.release_pinned(pinned)
    pool.tidy()
    assert (len(driver.device), len(driver.pinned), driver.queued) == (1, 1, 1)
    driver.wait(cast("Event", driver.events[0]))
    pool.tidy()
    assert not driver.device
    assert not driver.pinned
    assert driver.full_waits == 0


def test_a_released_block_is_reused_for_the_same_size(driver: FakeDriver, pool: MemoryPool) -> None:
    one, other = pool.reserve(100), pool.reserve(200)
    slot = pool.reserve_pinned(100)
    work(driver)
    for address in (one, other):
        pool.release(address)
    pool.release_pinned(slot)
    assert pool.reserve(200) == other
    assert pool.reserve_pinned(100) == slot
    assert pool.reserve(50) not in (one, other)
    assert pool.reserve(100) == one
    assert pool.reserve(100) != one


@pytest.mark.parametrize("released", [0, 1])
def test_where_memory_is_short_the_device_is_waited_for(driver: FakeDriver, pool: MemoryPool, released: int) -> None:
    blocks = [pool.reserve(400), pool.reserve(500)]
    work(driver)
    pool.release(blocks[released])
    assert pool.reserve(300)
    assert driver.full_waits == 1
    with pytest.raises(DeviceMemoryError):
        pool.reserve(700)


def test_pinned_memory_comes_back_on_any_thread_and_is_freed_by_the_one_that_works(
    driver: FakeDriver, pool: MemoryPool
) -> None:
    slots = [pool.reserve_pinned(8) for _ in range(20)]
    threads = [threading.Thread(target=pool.release_pinned, args=(slot,)) for slot in slots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(driver.pinned) == 20
    pool.tidy()
    assert not driver.pinned


def test_after_closing_everything_is_freed_when_it_comes_back(driver: FakeDriver, pool: MemoryPool) -> None:
    kept, late, spare = pool.reserve_pinned(8), pool.reserve(8), pool.reserve_pinned(8)
    pool.release_pinned(spare)
    pool.close()
    assert (list(driver.pinned), list(driver.device)) == ([kept], [late])
    pool.release_pinned(kept)
    pool.release(late)
    pool.close()
    assert not driver.pinned
    assert not driver.device
