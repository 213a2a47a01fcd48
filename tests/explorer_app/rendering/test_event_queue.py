from __future__ import annotations

from explorer_app.rendering.event_queue import EventQueue
from explorer_app.rendering.render_events import KernelsCompiling


def test_news_come_in_order_and_are_announced_only_if_there_was_nothing_to_take() -> None:
    announced: list[int] = []
    box = EventQueue(lambda: announced.append(1))
    event = [KernelsCompiling(done, 3) for done in range(3)]
    for item in event:
        box.put(item)
    assert announced == [1]
    assert box.take() == event
    assert box.take() == []
    box.put(event[0])
    assert announced == [1, 1]


def test_a_closed_box_is_silent_and_can_still_be_emptied() -> None:
    announced: list[int] = []
    box = EventQueue(lambda: announced.append(1))
    box.close()
    box.put(KernelsCompiling(0, 3))
    assert announced == []
    assert box.take() == [KernelsCompiling(0, 3)]
