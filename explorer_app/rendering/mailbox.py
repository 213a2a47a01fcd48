"""A mailbox of one item: the newest wins. An item that is replaced before it is taken is dropped and counted.

Requests go down and frames come up through mailboxes, so that a gesture never queues: a signal that carried frames
would be an unbounded queue. No Qt.
"""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Mailbox(Generic[Item]):
    """Holds at most one item. Safe to use from every thread.

    Parameters
    ----------
    condition
        Notified whenever something is put or the mailbox closes; several mailboxes may share one, so that one thread
        can wait for all of them.
    """

    def __init__(self, condition: threading.Condition | None = None) -> None:
        self._condition = condition or threading.Condition()
        self._item: Item | None = None
        self._dropped = 0
        self._is_closed = False
        self._arrival = threading.Lock()
        """Held, except for a moment when what `wait_for_item` waits for has come. A lock alone wakes a thread for less
        than a condition does, and the GUI thread waits several times a screen refresh."""
        self._arrival.acquire()
        self._is_awaited = False

    @property
    def dropped(self) -> int:
        """How many items were replaced before they were taken."""
        with self._condition:
            return self._dropped

    @property
    def is_empty(self) -> bool:
        """Whether there is no item."""
        with self._condition:
            return self._item is None

    def put(self, item: Item) -> bool:
        """Replace the item.

        Returns
        -------
        Whether the receiver needs a signal: the mailbox was empty, and no thread is in `wait_for_item`, which takes the
        item itself. A closed mailbox accepts nothing.
        """
        with self._condition:
            if self._is_closed:
                return False
            was_empty = self._item is None
            self._dropped += not was_empty
            self._item = item
            self._condition.notify_all()
            return not self._wake() and was_empty

    def take(self) -> Item | None:
        """Take the item, None if there is none."""
        with self._condition:
            item, self._item = self._item, None
            return item

    def peek(self) -> Item | None:
        """Return the item without taking it, None if there is none."""
        with self._condition:
            return self._item

    def put_back(self, item: Item) -> None:
        """Put a taken item back unless a newer one has arrived; neither is counted as dropped."""
        with self._condition:
            if self._item is None:
                self.put(item)

    def wait(self, timeout_s: float | None = None) -> Item | None:
        """Wait for an item and take it; None if the mailbox was closed or the time is over."""
        self.wait_for_item(timeout_s)
        return self.take()

    def wait_for_item(self, timeout_s: float | None) -> bool:
        """Wait until there is an item to take, or the mailbox is closed; return False if the time is over.

        One thread at a time may wait. After True it takes the item, because `put` asks for no signal meanwhile.
        """
        with self._condition:
            if self._item is not None or self._is_closed:
                return True
            self._is_awaited = True
        has_come = self._arrival.acquire(timeout=-1 if timeout_s is None else timeout_s)
        if not has_come:
            with self._condition:
                has_come = not self._is_awaited  # it came when the time was over already
                self._is_awaited = False
                if has_come:
                    self._arrival.acquire()
        return has_come

    def _wake(self) -> bool:
        """Wake the thread in `wait_for_item`; return whether there is one. The caller holds the condition."""
        is_awaited, self._is_awaited = self._is_awaited, False
        if is_awaited:
            self._arrival.release()
        return is_awaited

    def clear(self) -> None:
        """Drop the item without counting it."""
        self.take()

    def close(self) -> None:
        """Drop the item, accept no more and wake waiting threads. May be called twice."""
        with self._condition:
            self._is_closed = True
            self._item = None
            self._condition.notify_all()
            self._wake()
