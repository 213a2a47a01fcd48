import contextlib
import threading

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.writers import WriterPool


def test_every_task_has_run_when_the_pool_is_closed() -> None:
    done: list[int] = []
    pool = WriterPool(3)
    for number in range(50):
        pool.submit(lambda number=number: done.append(number))
    pool.close()
    pool.close()
    assert sorted(done) == list(range(50))


def test_no_more_tasks_are_held_than_allowed() -> None:
    gate = threading.Event()
    pool = WriterPool(2)
    submitted = threading.Semaphore(0)

    def submit_many() -> None:
        for _ in range(20):
            pool.submit(gate.wait)
            submitted.release()

    feeder = threading.Thread(target=submit_many)
    feeder.start()
    for _ in range(6):  # two run, four wait
        assert submitted.acquire(timeout=10)
    assert not submitted.acquire(timeout=0.1)
    gate.set()
    feeder.join()
    pool.close()


def test_the_first_failure_is_raised_to_the_next_caller_and_stops_the_rest() -> None:
    ran: list[int] = []
    pool = WriterPool(1)

    def fail() -> None:
        raise ExportError("The disk is full.")

    pool.submit(fail)
    for _ in range(3):  # as many as the pool holds: then the first has run
        with contextlib.suppress(ExportError):
            pool.submit(lambda: None)
    with pytest.raises(ExportError, match="full"):
        pool.submit(lambda: ran.append(1))
    pool.close()
    assert ran == []


def test_a_failure_that_nobody_was_told_of_is_raised_by_closing() -> None:
    def fail() -> None:
        raise ExportError("The disk is full.")

    pool = WriterPool(1)
    pool.submit(fail)
    with pytest.raises(ExportError, match="full"):
        pool.close()
    pool.close()


def test_a_closed_pool_leaves_no_thread() -> None:
    pool = WriterPool(2)
    pool.submit(lambda: None)
    pool.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("export-writer")]
