"""Parts that cannot be compiled run as they are."""

import pytest
import torch

from gpu_backend.training.world import sample_factors
from gpu_backend.training.world.parts import CompiledParts, as_is
from gpu_backend.training.world.picture import scene


def test_only_the_part_that_fails_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def compile_one(part, **options: object):  # type: ignore[no-untyped-def]
        def run(*arguments: object) -> object:
            calls.append(part.__name__)
            if part.__name__ == "sky":
                raise RuntimeError("In a subprocess:\n  deep inside\nCompilationError: no such thing\n  more")
            return part(*arguments)

        return run

    monkeypatch.setattr(torch, "compile", compile_one)
    factors, seeds, melted = sample_factors(2, torch.Generator().manual_seed(1)), torch.arange(2), CompiledParts()
    for _ in range(2):
        assert torch.equal(scene(factors, seeds, 16, melted).picture, scene(factors, seeds, 16, as_is).picture)
    assert melted.problems == {"sky": "CompilationError: no such thing"}
    assert calls.count("sky") == 1
    assert calls.count("tree_row") == 8


def test_an_error_that_no_line_names_is_reported_by_its_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("Failed to find C compiler.\nA long story follows.")

    monkeypatch.setattr(torch, "compile", lambda part, **options: fail)
    melted = CompiledParts()
    assert melted(int, "7") == 7
    assert melted.problems == {"int": "Failed to find C compiler."}
