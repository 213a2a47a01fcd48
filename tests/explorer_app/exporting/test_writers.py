import threading
from functools import partial

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.writers import WriterPool


def pool(threads: int = 2) -> WriterPool:
    return WriterPool(threads, lambda: None)


def test_every_task_has_run_when_the_pool_is_closed() -> None:
    done: list[int] = []
    writers = pool(3)
    for number in range(50):
        writers.submit(partial(done.append, number))
    writers.close(discard=False)
    writers.close(discard=False)
    assert sorted(done) == list(range(50))


def test_there_is_room_for_what_the_threads_need_and_submitting_never_waits() -> None:
    begun, gate = threading.Semaphore(0), threading.Event()
    writers = pool(2)
    taken = 2

    def wait() -> None:
        begun.release()
        gate.wait(30)

    for _ in range(taken):  # those that run count, too
        writers.submit(wait)
    for _ in range(taken):
        assert begun.acquire(timeout=30)
    while writers.has_room:
        writers.submit(wait)
        taken += 1
    assert taken == 6
    for _ in range(20):
        writers.submit(lambda: None)  # frames that were under way when the room was gone
    gate.set()
    writers.close(discard=False)
    assert writers.has_room


def test_the_caller_is_called_when_there_is_room_again() -> None:
    heard = threading.Event()
    writers = WriterPool(1, heard.set)
    writers.submit(lambda: None)
    assert heard.wait(30)
    writers.close(discard=False)


def test_the_first_failure_is_kept_and_stops_the_rest() -> None:
    ran: list[int] = []
    gate = threading.Event()

    def fail() -> None:
        gate.wait(30)
        raise ExportError("The disk is full.")

    writers = pool(1)
    writers.submit(fail)
    writers.submit(lambda: ran.append(1))
    gate.set()
    writers.close(discard=False)
    assert isinstance(writers.error, ExportError)
    assert ran == []


def test_pending_writes_are_discarded_on_request() -> None:
    ran: list[int] = []
    begun, gate = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        gate.wait(30)
        ran.append(0)

    writers = pool(1)
    writers.submit(first)
    writers.submit(lambda: ran.append(1))
    assert begun.wait(30)
    closing = threading.Thread(target=lambda: writers.close(discard=True))
    closing.start()
    gate.set()
    closing.join()
    assert ran == [0]


def test_a_closed_pool_leaves_no_thread_and_takes_nothing(threads_before: set[threading.Thread]) -> None:
    writers = pool(2)
    writers.submit(lambda: None)
    writers.close(discard=False)
    writers.submit(lambda: None)
    assert set(threading.enumerate()) <= threads_before
