"""Rows of w that actions wait for, until they arrive or another model is opened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from explorer_app.controller.row_fetches import RowFetches
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import RowsMade
from explorer_app.session.session import Session
from gpu_backend import RenderRequest, StoredLatent
from tests.helpers.fake_controller import facts

ROWS = StoredLatent(bytes(4), 1, 1)


class Renders:
    """Stands for the render thread and for the model."""

    def __init__(self) -> None:
        self.facts = facts()
        self.requested: dict[int, int] = {}

    def request_rows(self, number: int, requests: Sequence[Callable[[], RenderRequest]]) -> None:
        self.requested[number] = len(requests)
        assert requests[0]().model_id == self.facts.model_id

    def forget_rows(self) -> None:
        self.requested.clear()


def test_rows_go_to_the_action_that_waits_for_them_once() -> None:
    renders: Any = Renders()
    fetches = RowFetches(renders, renders, MessageLog())
    got: list[tuple[str, int]] = []
    fetches.fetch([Session()], lambda rows: got.append(("first", len(rows))))
    fetches.fetch([Session()] * 2, lambda rows: got.append(("second", len(rows))))
    assert renders.requested == {0: 1, 1: 2}
    for number, count in ((1, 2), (0, 1), (0, 1)):
        fetches.take_made(RowsMade(number, (ROWS,) * count))
    assert got == [("second", 2), ("first", 1)]


def test_a_model_that_is_opened_while_rows_are_computed_says_that_they_are_not() -> None:
    renders: Any = Renders()
    messages = MessageLog()
    fetches = RowFetches(renders, renders, messages)
    fetches.clear()
    assert not messages.messages
    fetches.fetch([Session()], lambda rows: None)
    fetches.clear()
    assert [item.sentence for item in messages.messages] == [
        "Latents were not computed, because another model was opened."
    ]
    fetches.clear()
    assert len(messages.messages) == 1
    assert not renders.requested
