"""Sessions as JSON; `test_storage` has whole files."""

from __future__ import annotations

from explorer_app.session.session import Session
from explorer_app.session.session_json import session_from_json, session_to_json
from gpu_backend import RowRange


def test_sliders_of_older_sessions_act_on_the_rows_that_these_name() -> None:
    named = [{"direction": direction, "amount": 1.0, "rows": [0, None]} for direction in ("sefa/0", "axis/3", "a/sun")]
    sliders = session_from_json({**session_to_json(Session()), "sliders": named}).sliders
    assert [slider.rows for slider in sliders] == [None, None, RowRange()]
    assert session_from_json(session_to_json(Session(sliders=sliders))).sliders == sliders
