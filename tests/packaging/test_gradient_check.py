"""The script that compares gradients with fp64: its table for small networks, by the processor and by twins."""

import csv
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu_backend import Model
from gpu_backend.gradients.gpu.drag import GpuDrag
from gpu_backend.gradients.gpu.open_network import GpuGradients, packed_network
from gpu_backend.gradients.gpu.passes import GpuPasses
from gpu_backend.gradients.network import differentiable_network
from tests.helpers.fake_gpu import FAKE_GPU
from tests.helpers.golden import CASES
from tests.helpers.gradient_twins import TwinDriver, twin_kernels
from tests.helpers.one_thread import one_thread_of_torch
from tests.helpers.packaging_script import ROOT, packaging_script
from tests.helpers.twin_features import twin_features


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    module = packaging_script("gradient_check")
    monkeypatch.setattr(sys.modules["drag_benchmark"], "RESULTS", tmp_path)
    return module


def way_of_twins(check: ModuleType, model: Model) -> Any:
    """Return own kernels whose driver runs twins."""
    network = differentiable_network(model)

    def opened() -> GpuGradients:
        return GpuGradients(
            packed_network(network, model.spec.resolution), TwinDriver().as_driver(), twin_kernels(4), FAKE_GPU
        )

    kernels: Any = SimpleNamespace(
        problem="", drag=lambda network, terms, radius, rate: GpuDrag(opened(), terms, radius=radius, rate=rate)
    )
    network.own_kernels = kernels
    passes = GpuPasses(opened(), network.device)
    features = check.features_of(model, network)
    if features is not None and features.discriminator is not None:
        features = twin_features(features.discriminator, samples=1)
    return check.Way("twins", network, passes, features)


def test_each_row_of_a_golden_file_has_its_cosines(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "by_own_kernels", lambda model: way_of_twins(check, model))
    with one_thread_of_torch():
        check.main(["--networks", CASES[0], "--latents", "2", "--device", "cuda"])
    with (tmp_path / "gradient_cosines.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["network"], row["latents"]) for row in rows} == {(CASES[0], "2")}
    for by, least, length in (("processor, fp32", 0.999999, 1e-3), ("twins", 0.999, 0.05)):
        counts = {"drag": 5, "pass": 5, "search": 10}
        for loss, count in counts.items():
            of_loss = [row for row in rows if (row["by"], row["loss"]) == (by, loss)]
            assert [int(row["row"]) for row in of_loss] == list(range(count)), "rows beyond the block have no gradient"
            assert all(least < float(row["least_cosine"]) <= float(row["median_cosine"]) for row in of_loss)
            assert all(float(row["length_error"]) < length for row in of_loss)
    assert "twins: 0.999 in every latent in 20 of 20 rows" in capsys.readouterr().out


def test_without_a_gpu_the_processor_is_compared_alone(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with one_thread_of_torch():
        check.main(["--networks", "lopsided filter, 32", "--latents", "1"])
    with (tmp_path / "gradient_cosines.csv").open() as file:
        assert {row["by"] for row in csv.DictReader(file)} == {"processor, fp32"}
    assert "Traceback" not in capsys.readouterr().err


def test_a_wrong_gradient_shows(check: ModuleType) -> None:
    right = np.eye(3)
    wrong = np.array([[1.0, 0.0, 0.0], [0.0, -2.0, 0.0], [np.nan, 0.0, 0.0]])
    assert check.agreement(wrong, right)[:2] == [(1.0, 0.0), (-1.0, 1.0)]
    assert check.agreement(wrong, right)[2][0] == 0.0, "not a number is no agreement"
    assert check.agreement(np.zeros((1, 3)), np.zeros((1, 3))) == [None]
    assert check.agreement(np.zeros((1, 3)), right[:1]) == [(0.0, 1.0)]


def test_a_network_that_is_not_there_is_named(check: ModuleType) -> None:
    with pytest.raises(SystemExit, match="no network nothing"):
        list(check.models(["nothing"]))
