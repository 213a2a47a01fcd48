"""Drawing on a GPU: captured, melted or not, the pictures are those that the parts give as they are."""

import contextlib
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch

from gpu_backend.training.data.world import WorldSource
from gpu_backend.training.world import draw, sample_factors
from gpu_backend.training.world.drawer import Drawer, to_bytes

pytestmark = [pytest.mark.gpu, pytest.mark.long, pytest.mark.usefixtures("gpu")]

SIDE = 32
MELTED = {"_over", "_not_behind", "_flooded", "_land_before_sky", "_finished"}
"""Parts that are quick to compile; all together take minutes, and what holds for some of them holds for the others."""


@pytest.fixture
def melted(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let few parts be compiled, the others run as they are; return what was compiled so far."""
    compiled: set[str] = set()
    compile_part = torch.compile

    def few(part: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        if part.__qualname__ not in MELTED:
            return part
        compiled.add(part.__qualname__)
        return compile_part(part, **options)

    monkeypatch.setattr(torch, "compile", few)
    return compiled


@pytest.fixture
def device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


def test_every_call_draws_the_requested_batch(device: torch.device, melted: set[str]) -> None:
    said: list[str] = []
    drawer = Drawer(SIDE, device, said.append)
    for seed, count in enumerate((4, 32, 33)):
        factors = sample_factors(count, torch.Generator().manual_seed(seed))
        seeds = torch.arange(count) + 100 * seed
        found = drawer.draw(factors, seeds).int()
        expected = to_bytes(draw(factors, seeds, SIDE, device=device)).int()
        difference = (found - expected).abs().float()
        assert difference.mean() < 0.5, said
        assert (difference > 8).float().mean() < 0.01, said
    assert melted == MELTED


def test_a_compiler_that_fails_is_reported_and_pictures_come_nevertheless(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_compiler(*arguments: object) -> None:
        raise RuntimeError("Failed to find C compiler.\nA long story follows.")

    monkeypatch.setattr(torch, "compile", lambda *arguments, **options: no_compiler)
    said: list[str] = []
    factors, seeds = sample_factors(2, torch.Generator().manual_seed(1)), torch.arange(2)
    found = Drawer(SIDE, device, said.append).draw(factors, seeds)
    expected = to_bytes(draw(factors, seeds, SIDE, device=device))
    assert (found.int() - expected.int()).abs().float().mean() < 0.5
    (sentence,) = said
    assert sentence.endswith("more: Failed to find C compiler.")


def test_without_compiling_the_pictures_are_the_eager_ones(
    device: torch.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", lambda *arguments, **options: pytest.fail("compiled"))
    factors, seeds = sample_factors(3, torch.Generator().manual_seed(1)), torch.arange(3)
    found = Drawer(SIDE, device, compiles=False).draw(factors, seeds)
    expected = to_bytes(draw(factors, seeds, SIDE, device=device))
    assert (found.int() - expected.int()).abs().max() <= 1


def test_pictures_depend_on_their_position_only(device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_backend.training.world.drawer._MOST_AT_ONCE", 4)
    monkeypatch.setattr(torch, "compile", lambda part, **options: part)
    with contextlib.closing(WorldSource(16, device)) as source:
        whole = torch.cat(list(islice(source.batches(6, 3, 0), 2)))
        assert torch.equal(whole[5:11], torch.cat(list(islice(source.batches(3, 3, 5), 2))))
    assert len({tuple(picture.flatten().tolist()) for picture in whole}) == 12
