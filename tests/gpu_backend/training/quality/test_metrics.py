"""Metrics of models that draw the world of discs well and badly, and the two commands."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from gpu_backend import write_safetensors
from gpu_backend.training.quality import report, train_features
from gpu_backend.training.quality.feature_file import write_features
from gpu_backend.training.quality.feature_network import FeatureNetwork
from gpu_backend.training.quality.metrics import QualityMetrics, quality_of
from gpu_backend.training.quality.reading import FeatureReader
from tests.helpers.disc_world import DiscWorld
from tests.helpers.networks import make_stylegan2

Trained = tuple[FeatureNetwork, dict[str, float]]
CPU = torch.device("cpu")


class DiscModel:
    """Draws the world from its latents: the first numbers of z are its factors, in a part of their range if told."""

    def __init__(self, span: float = 1.0) -> None:
        self.facts = make_stylegan2(resolution=16).facts
        self._span = span

    def map(
        self, z: ArrayLike, c: ArrayLike | None = None, psi: float = 1.0, cutoff: int | None = None
    ) -> NDArray[np.float32]:
        return np.repeat(np.asarray(z, np.float32)[:, None], self.facts.num_ws, axis=1)

    def synthesize(self, ws: ArrayLike) -> NDArray[np.float32]:
        z = torch.from_numpy(np.asarray(ws, np.float64)[:, 0])
        even = 0.5 + self._span * (torch.special.ndtr(z[:, :3]) - 0.5)
        return DiscWorld().draw(even.float(), (z[:, 3].abs() * 1e6).long(), 16, CPU).numpy()


def metrics_of(model: DiscModel, trained: Trained) -> QualityMetrics:
    return quality_of(model, DiscWorld(), FeatureReader(trained[0], CPU), count=300, seed=1, device=CPU)


def test_a_perfect_model_is_as_near_as_the_world_is_to_itself(trained: Trained) -> None:
    metrics = metrics_of(DiscModel(), trained)
    assert metrics.generated.frechet < 3 * metrics.real.frechet
    assert metrics.generated.precision > 0.85
    assert metrics.generated.recall > 0.85
    assert metrics == metrics_of(DiscModel(), trained), "deterministic"


def test_a_model_that_shows_a_part_only_is_precise_and_not_complete(trained: Trained) -> None:
    metrics = metrics_of(DiscModel(0.3), trained)
    assert metrics.generated.frechet > 5 * metrics.real.frechet
    assert metrics.generated.precision > 0.85
    assert metrics.generated.recall < 0.6


def test_the_report_prints_and_writes_its_metrics(
    trained: Trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_safetensors(make_stylegan2(resolution=16, c_dim=2), tmp_path / "m.safetensors")
    write_features(*trained, tmp_path / "f.safetensors")
    words = [tmp_path / "m.safetensors", "--features", tmp_path / "f.safetensors", "--count", "40", "--device", "cpu"]
    words += ["--out", tmp_path / "metrics.json"]
    assert report.run([str(word) for word in words], DiscWorld()) == 0
    out = capsys.readouterr().out
    assert "generated against real" in out
    assert "real against real" in out
    said = json.loads((tmp_path / "metrics.json").read_text())
    assert said["count"] == 40
    assert said["precision"] == "fp32", "the processor has no other"
    assert said["generated"]["frechet"] > said["real"]["frechet"]
    assert len(said["sha256"]) == 64


def test_the_report_says_in_a_sentence_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(tmp_path / "m"), "--features", str(tmp_path / "f")]
    assert report.run(words, DiscWorld()) == 2
    assert "there is no file of that name" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        report.run([*words, "--count", "2"])


def test_features_are_trained_by_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--steps", "2", "--batch", "2", "--side", "16", "--resolution", "16", "--checked", "4", "--device", "cpu"]
    assert train_features.run(["--out", str(tmp_path / "f.safetensors"), *words], DiscWorld()) == 0
    assert "across" in capsys.readouterr().out
    assert (tmp_path / "f.safetensors").is_file()
    with pytest.raises(SystemExit):
        train_features.run(["--out", "f", "--side", "20"])
