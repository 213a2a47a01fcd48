import threading

from explorer_app.rendering.mailbox import Mailbox


def test_the_newest_item_wins_and_the_others_are_counted_as_dropped() -> None:
    box: Mailbox[int] = Mailbox()
    assert [box.put(item) for item in range(5)] == [True, False, False, False, False]
    assert (box.take(), box.take(), box.dropped) == (4, None, 4)
    assert box.put(9)


def test_a_waiter_receives_an_item_put_later() -> None:
    box: Mailbox[str] = Mailbox()
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(box.wait()))
    thread.start()
    box.put("late")
    thread.join()
    assert got == ["late"]


def test_closing_wakes_waiters_and_accepts_nothing_more() -> None:
    box: Mailbox[str] = Mailbox()
    got: list[str | None] = []
    thread = threading.Thread(target=lambda: got.append(box.wait()))
    thread.start()
    box.close()
    box.close()
    thread.join()
    assert got == [None]
    assert not box.put("after")
    assert box.is_empty


def test_waiting_ends_with_its_time() -> None:
    assert Mailbox[int]().wait(0.0) is None


def test_mailboxes_with_one_condition_wake_the_same_waiter() -> None:
    condition = threading.Condition()
    first: Mailbox[int] = Mailbox(condition)
    second: Mailbox[int] = Mailbox(condition)
    seen: list[int | None] = []

    def wait() -> None:
        with condition:
            condition.wait_for(lambda: not (first.is_empty and second.is_empty))
            seen.append(second.take())

    thread = threading.Thread(target=wait)
    thread.start()
    second.put(2)
    thread.join()
    assert seen == [2]


def test_waiting_for_an_item_leaves_it_there_and_ends_when_the_mailbox_is_closed() -> None:
    box: Mailbox[str] = Mailbox()
    assert not box.wait_for_item(0.0)
    box.put("here")
    assert box.wait_for_item(0.0)
    assert box.take() == "here"
    box.close()
    assert box.wait_for_item(0.0)


def test_a_thread_that_waits_takes_the_item_without_a_signal() -> None:
    box: Mailbox[int] = Mailbox()
    assert box.put(1), "nobody waits"
    assert box.take() == 1
    got: list[int | None] = []
    thread = threading.Thread(target=lambda: got.append(box.take() if box.wait_for_item(30.0) else None))
    thread.start()
    while not box._is_awaited:
        threading.Event().wait(0.001)
    assert not box.put(2)
    thread.join()
    assert got == [2]
    assert box.put(3), "it waits no longer"


def test_an_item_that_comes_when_the_time_is_over_already_is_not_missed() -> None:
    box: Mailbox[int] = Mailbox()

    class Late:
        """A lock whose wait ends without success just before it is released."""

        def __init__(self, lock: threading.Lock) -> None:
            self._lock = lock

        def acquire(self, timeout: float | None = None) -> bool:
            if timeout is None:
                return self._lock.acquire()
            assert not box.put(5), "the waiting thread is responsible for it"
            return False

        def release(self) -> None:
            self._lock.release()

    lock = box._arrival
    box._arrival = Late(lock)  # type: ignore[assignment]
    assert box.wait_for_item(0.0)
    assert box.take() == 5
    assert lock.locked()


def test_an_item_is_put_back_unless_a_newer_one_has_come_and_neither_counts_as_dropped() -> None:
    box: Mailbox[int] = Mailbox()
    box.put_back(1)
    assert box.take() == 1
    box.put(2)
    box.put_back(1)
    assert (box.take(), box.dropped) == (2, 0)


def test_closing_wakes_a_thread_that_waits_for_the_condition_of_several_mailboxes() -> None:
    condition = threading.Condition()
    box: Mailbox[int] = Mailbox(condition)
    is_waiting = threading.Event()
    woken: list[bool] = []

    def wait() -> None:
        with condition:
            is_waiting.set()
            woken.append(condition.wait(30.0))

    thread = threading.Thread(target=wait)
    thread.start()
    is_waiting.wait(30.0)
    box.close()  # cannot begin before the thread waits, which holds the condition until then
    thread.join()
    assert woken == [True]
