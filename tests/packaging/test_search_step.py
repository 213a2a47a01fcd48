"""The script that times a step of a search: what it times, on the CPU, and its list of launches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpu_backend import open_gradients, random_model
from gpu_backend.bench.random_discriminator import discriminator_of
from gpu_backend.bench.shapes import Shape
from tests.helpers.one_thread import one_thread_of_torch
from tests.helpers.packaging_script import ROOT, packaging_script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    return packaging_script("search_step")


def events(names: list[str], first: float, us: list[float]) -> list[dict[str, Any]]:
    return [
        {"cat": "kernel", "name": name, "ts": first + number, "dur": took, "args": {"grid": [number, 1, 1]}}
        for number, (name, took) in enumerate(zip(names, us, strict=True))
    ]


def test_launches_are_listed_in_order_with_medians(script: Any) -> None:
    names = ["a", "b", "a"]
    seen = [*events(names, 100.0, [3.0, 9.0, 1.0]), *events(names, 0.0, [1.0, 7.0, 1.0])]
    seen += [*events(names, 50.0, [2.0, 8.0, 5.0]), {"cat": "cpu_op", "name": "x", "ts": 1.0, "dur": 1.0}]
    found = script.launches_of(seen, 3)
    assert [(row["number"], row["kernel"], row["us"]) for row in found] == [(0, "a", 2.0), (1, "b", 8.0), (2, "a", 1.0)]
    assert [row["grid"] for row in found] == ["0 1 1", "1 1 1", "2 1 1"]


@pytest.mark.parametrize("second", [["a", "c"], ["a"]])
def test_calls_that_launch_other_kernels_are_refused(script: Any, second: list[str]) -> None:
    seen = [*events(["a", "b"], 0.0, [1.0, 1.0]), *events(second, 50.0, [1.0] * len(second))]
    with pytest.raises(ValueError, match="same kernels"):
        script.launches_of(seen, 2)


def test_each_part_has_a_gradient_of_rows_and_the_terms_change_it(script: Any) -> None:
    shape = Shape("tiny", 16, 128, 8, w_dim=16)
    network = open_gradients(random_model(shape), device="cpu")
    features = script.PictureFeatures.of_discriminator(discriminator_of(shape), network.mean_w)
    steps = script.steps_of(network, network, features, shape)
    assert tuple(steps) == script.PARTS
    with one_thread_of_torch():
        found = [step() for step in steps.values()]
    assert {tuple(one.shape) for one in found} == {(1, network.spec.num_ws, 16)}
    assert all(float(one.norm()) > 0.0 for one in found)
    assert not torch.allclose(found[1], found[2])
