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
