"""A cancelled picture is not rendered to its end, and leaves no trace."""

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest

from gpu_backend import CancelledError, Latent, Noise, Renderer, plane_point
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(make_stylegan2(resolution=32), "cpu")
    yield renderer
    renderer.close()


@pytest.mark.parametrize("steps", [0, 1, 7, 11])
def test_after_a_picture_was_cancelled_the_next_has_the_bytes_of_a_fresh_renderer(steps: int) -> None:
    model = make_stylegan2(resolution=32)
    renderer, fresh = Renderer(model, "cpu"), Renderer(model, "cpu")
    before = request_for(renderer, noise=Noise("random", seed=1))
    given_up = request_for(renderer, Latent(plane_point(9, 9)), noise=Noise("random", seed=2))
    expected = {request: fresh.render(request).pixels for request in (before, given_up)}
    for wanted in (before, given_up):
        renderer.render(before)
        answers = iter([False] * steps + [True])
        with pytest.raises(CancelledError):
            renderer.render(given_up, should_cancel=partial(next, answers))
        np.testing.assert_array_equal(renderer.render(wanted).pixels, expected[wanted])
    renderer.close()
    fresh.close()


def test_cancellation_is_checked_at_every_step(renderer: Renderer) -> None:
    calls: list[bool] = []
    request = request_for(renderer, measure_steps=True)

    def note() -> bool:
        calls.append(False)
        return False

    frame = renderer.render(request, should_cancel=note)
    assert len(calls) == len(frame.timings.steps) > 11
