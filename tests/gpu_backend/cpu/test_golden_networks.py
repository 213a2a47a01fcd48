"""Published outputs of the official networks, through plan and CPU executor."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_backend.cpu.modulated_conv as choice
import gpu_backend.cpu.winograd_up_conv as up_choice
from gpu_backend import Model, read_model
from gpu_backend.cpu.executor import CpuExecutor
from gpu_backend.plan.executor import BoundPlan
from gpu_backend.plan.mapping import build_mapping_plan
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from tests.helpers.networks import as_stylegan2

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
CASES = ("S1_sg2ada_skip_64", "S2_sg3repo_sg2_cond_128")


@dataclass
class Case:
    model: Model
    arrays: dict[str, Any]
    tolerance: dict[str, float]

    def check(self, found: np.ndarray, name: str) -> None:
        assert found.shape == self.arrays[name].shape
        assert np.abs(found - self.arrays[name]).max() <= self.tolerance[name]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    entries = json.loads((GOLDEN / "manifest.json").read_text())["cases"]
    entry = next(item for item in entries if item["case"] == request.param)
    with np.load(GOLDEN / entry["npz"]) as file:
        arrays = {name: file[name] for name in file.files}
    return Case(read_model(GOLDEN / entry["file"]), arrays, entry["tolerance"])


@pytest.fixture(params=["by size", "two threads", "Winograd everywhere"])
def executor(case: Case, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[CpuExecutor]:
    """The choice of algorithm is by size; forced Winograd must keep the tolerances too."""
    if request.param == "Winograd everywhere":
        monkeypatch.setattr(choice, "MIN_WINOGRAD_SIDE", 4)
        monkeypatch.setattr(choice, "MIN_WINOGRAD_CHANNELS", 1)
        monkeypatch.setattr(up_choice, "MIN_SIDE", 4)
        monkeypatch.setattr(up_choice, "MIN_CHANNELS", 1)
    executor = CpuExecutor(case.model.weights, threads=2 if request.param == "two threads" else 1)
    yield executor
    executor.close()


def bind(case: Case, executor: CpuExecutor, batch: int) -> BoundPlan:
    return executor.bind(build_synthesis_plan(as_stylegan2(case.model).spec, case.model.facts.model_id, batch=batch))


def picture(bound: BoundPlan, ws: np.ndarray, **inputs: np.ndarray) -> np.ndarray:
    return bound.run({"ws": ws, **inputs}, outputs=("image",))["image"].transpose(0, 3, 1, 2)


def test_w_and_its_truncations(case: Case, executor: CpuExecutor) -> None:
    bound = executor.bind(build_mapping_plan(case.model.spec, case.model.facts.model_id, batch=4))
    inputs: dict[str, np.ndarray] = {name: case.arrays[name] for name in ("z", "c") if name in case.arrays}
    w = bound.run(inputs, outputs=("w",))["w"]
    ws = np.repeat(w[:, None], case.model.spec.num_ws, axis=1)
    average = case.model.weights["mapping.w_avg"]
    case.check(ws, "w")
    case.check(average + np.float32(0.7) * (ws - average), "w_psi07")
    ws[:, :4] = average + np.float32(0.5) * (ws[:, :4] - average)
    case.check(ws, "w_psi05_cut4")


def test_pictures_of_a_batch(case: Case, executor: CpuExecutor) -> None:
    bound = bind(case, executor, 2)
    case.check(picture(bound, case.arrays["w"][:2]), "img_psi1")
    case.check(picture(bound, case.arrays["w_psi07"][:2]), "img_psi07")


def test_pictures_without_noise_and_with_mixed_rows(case: Case, executor: CpuExecutor) -> None:
    bound = bind(case, executor, 1)
    w, k = case.arrays["w"], int(case.arrays["mix_k"])
    silent = np.zeros(len(case.model.spec.noise_layers), np.float32)
    case.check(picture(bound, w[:1], noise_gain=silent), "img_noise_none")
    mixed = np.concatenate([w[:1, :k], w[1:2, k:]], axis=1)
    case.check(picture(bound, mixed, noise_gain=np.ones_like(silent)), "img_mix")


def test_every_layer_gives_the_published_statistics(case: Case, executor: CpuExecutor) -> None:
    observed = bind(case, executor, 1).observe({"ws": case.arrays["w"][:1]})
    assert list(observed) == list(case.arrays["layer_names"])
    assert [list(value.shape) for value in observed.values()] == case.arrays["layer_shape"].tolist()
    wide = [value.astype(np.float64) for value in observed.values()]
    case.check(np.array([value.mean() for value in wide]), "layer_mean")
    case.check(np.array([value.std() for value in wide]), "layer_std")
