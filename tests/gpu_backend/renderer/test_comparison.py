"""The fast picture beside the reference one, on the CPU."""

from collections.abc import Iterator

import pytest

from gpu_backend import Noise, Renderer, RenderOptions, RequestError
from tests.helpers.networks import make_stylegan2
from tests.helpers.requests import request_for


@pytest.fixture(scope="module")
def renderer() -> Iterator[Renderer]:
    renderer = Renderer(make_stylegan2(resolution=64, channel_base=4096, channel_max=64), "cpu")
    yield renderer
    renderer.close()


@pytest.mark.parametrize("resolution", [None, 16])
def test_both_ways_give_one_picture_and_have_times(renderer: Renderer, resolution: int | None) -> None:
    found = renderer.compare(request_for(renderer, resolution=resolution, noise=Noise("random", 5)))
    assert (found.graph_ms, found.no_graph_ms) == (None, None)
    assert found.fused_ms > 0
    assert found.reference_ms > 0
    assert 0 <= found.mean_difference <= found.largest_difference <= 1


def test_a_difference_shows(renderer: Renderer, monkeypatch: pytest.MonkeyPatch) -> None:
    import gpu_backend.cpu.reference_steps as reference_steps

    def half_grey(step, around):  # type: ignore[no-untyped-def]
        pixels, flags = right(step, around)
        pixels[:, :32, :, 0] ^= 2
        return pixels, flags

    right = reference_steps.STEPS["to_display"]
    monkeypatch.setitem(reference_steps.STEPS, "to_display", half_grey)
    found = renderer.compare(request_for(renderer))
    assert 2 <= found.largest_difference <= 3
    assert found.mean_difference == pytest.approx(2 / 6, abs=0.01)


def test_the_reference_can_be_what_is_shown(renderer: Renderer) -> None:
    fast = renderer.render(request_for(renderer)).pixels.astype(int)
    renderer.options = RenderOptions(use_fused=False)
    slow = renderer.render(request_for(renderer)).pixels.astype(int)
    renderer.options = RenderOptions()
    assert abs(fast - slow).max() <= 1


def test_comparing_keeps_no_memory(renderer: Renderer) -> None:
    renderer.render(request_for(renderer))
    before = renderer.memory
    renderer.compare(request_for(renderer))
    assert renderer.memory == before
    assert (before.pinned, before.weights > 0, before.plans > 0) == (0, True, True)


def test_a_request_that_does_not_fit_is_refused(renderer: Renderer) -> None:
    with pytest.raises(RequestError):
        renderer.compare(request_for(renderer, resolution=12))
