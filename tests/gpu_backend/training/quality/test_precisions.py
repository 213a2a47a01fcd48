"""The Frechet distance of a model in several precisions: comparison, statistics of the real pictures, the command."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import torch

from gpu_backend import write_safetensors
from gpu_backend.errors import LoomError, ModelFileError
from gpu_backend.training.quality import precisions, report
from gpu_backend.training.quality.feature_file import write_features
from gpu_backend.training.quality.feature_network import FeatureNetwork
from gpu_backend.training.quality.frechet import frechet_distance, gaussian_of
from gpu_backend.training.quality.precision_comparison import compare_precisions, precision_table
from gpu_backend.training.quality.reference_file import ReferenceFacts, read_reference, write_reference
from gpu_backend.training.quality.world_source import ProceduralWorld, world_for
from gpu_backend.training.world import draw, sample_factors
from gpu_backend.training.world.drawer import from_bytes, to_bytes
from tests.helpers.disc_world import DiscWorld
from tests.helpers.networks import make_stylegan2

Trained = tuple[FeatureNetwork, dict[str, float]]
CPU = torch.device("cpu")
FACTS = ReferenceFacts(network="ab", world="DiscWorld", count=40, seed=1, batch=64, resolution=16)


@pytest.fixture
def words(trained: Trained, tmp_path: Path) -> list[str]:
    """Arguments for a small model, 40 pictures and a file of statistics."""
    write_safetensors(make_stylegan2(resolution=16), tmp_path / "m.safetensors")
    write_features(*trained, tmp_path / "f.safetensors")
    given = [tmp_path / "m.safetensors", "--features", tmp_path / "f.safetensors", "--count", 40]
    given += ["--reference", tmp_path / "real.safetensors", "--out", tmp_path / "figures.json"]
    return [str(word) for word in given]


def test_equal_features_change_nothing_and_shifted_ones_by_their_shift() -> None:
    rng = np.random.default_rng(0)
    real, made = gaussian_of(rng.normal(size=(2000, 4))), rng.normal(np.eye(4)[0], size=(2000, 4))
    first, same, shifted = compare_precisions(
        real, [("fp32", made), ("fp16", made), ("fp8", made + 0.1 * np.eye(4)[0])]
    )
    assert (same.change, same.deviation, same.from_first) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    assert first.change is None
    assert first.frechet == frechet_distance(real, gaussian_of(made))
    assert shifted.change is not None
    assert shifted.deviation is not None
    assert shifted.change == pytest.approx(0.21, rel=0.1)
    assert shifted.from_first == pytest.approx(0.01)
    assert 0.0 < shifted.deviation < 0.02
    table = precision_table([first, same, shifted])
    assert [len(line) for line in table] == [len(table[0]), 20, len(table[0]), len(table[0])]
    assert f"{100 * shifted.change:+.2f} %" in table[-1]


def test_the_deviation_is_that_of_other_latents() -> None:
    rng = np.random.default_rng(1)
    real = gaussian_of(rng.normal(size=(4000, 3)))
    rows = []
    for _ in range(60):
        made = rng.normal(np.eye(3)[0], size=(500, 3))
        row = compare_precisions(real, [("fp32", made), ("fp8", made + 0.3 * rng.normal(size=made.shape))])[1]
        rows.append((row.change, row.deviation))
    changes, deviations = np.array(rows, dtype=np.float64).T
    assert deviations.mean() == pytest.approx(changes.std(), rel=0.35)


def test_the_command_gives_the_distance_of_the_report(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert precisions.run([*words, "--device", "cpu"], DiscWorld()) == 0
    captured = capsys.readouterr()
    assert "real: 40 of 40" in captured.err
    assert "fp8 left out: CPU renders this model in fp32 instead" in captured.err
    said = json.loads((tmp_path / "figures.json").read_text())
    (row,) = said["precisions"]
    assert f"fp32{row['frechet']:>16.4f}" in captured.out
    whole = tmp_path / "report.json"
    assert report.run([*words[:5], "--device", "cpu", "--out", str(whole)], DiscWorld()) == 0
    assert row["frechet"] == pytest.approx(json.loads(whole.read_text())["generated"]["frechet"], rel=1e-9)

    capsys.readouterr()
    assert precisions.run([*words, "--device", "cpu"], DiscWorld()) == 0
    assert "real:" not in capsys.readouterr().err, "read from the file"
    assert json.loads((tmp_path / "figures.json").read_text())["precisions"] == [row]


@pytest.mark.gpu
def test_half_precision_is_near_on_a_gpu(words: list[str], tmp_path: Path) -> None:
    assert precisions.run([*words, "--device", "cuda", "--precision", "fp32,tf32,fp16"], DiscWorld()) == 0
    rows = json.loads((tmp_path / "figures.json").read_text())["precisions"]
    assert [row["precision"] for row in rows] == ["fp32", "tf32", "fp16"]
    assert all(abs(row["change"]) < 0.02 for row in rows[1:])


def test_the_command_says_in_a_sentence_what_is_wrong(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    here = [*words, "--device", "cpu"]
    assert precisions.run([*here, "--precision", "fp8"], DiscWorld()) == 2
    assert "this device has none of fp8" in capsys.readouterr().err
    assert precisions.run([*here, "--seed", "1"], DiscWorld()) == 2
    assert "with seed 3, not 1" in capsys.readouterr().err
    for wrong in (["--count", "3"], ["--precision", "fp7"]):
        with pytest.raises(SystemExit):
            precisions.run([*here, *wrong])


def test_statistics_survive_their_file_and_other_facts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "real.safetensors"
    gaussian = gaussian_of(np.random.default_rng(0).normal(size=(9, 3)))
    write_reference(gaussian, FACTS, path)
    found = read_reference(path, FACTS)
    assert np.array_equal(found.mean, gaussian.mean)
    assert np.array_equal(found.covariance, gaussian.covariance)
    with pytest.raises(ModelFileError, match="with resolution 32, not 16"):
        read_reference(path, replace(FACTS, resolution=32))
    with pytest.raises(ModelFileError, match=r"^real.safetensors was not written: expected finite numbers"):
        write_reference(gaussian_of(np.full((2, 3), np.nan)), FACTS, path)
    assert np.array_equal(read_reference(path, FACTS).mean, gaussian.mean), "the older file stays"
    path.write_bytes(safetensors.numpy.save({"mean": np.zeros(3)}))
    with pytest.raises(ModelFileError, match="this is none"):
        read_reference(path, FACTS)
    with pytest.raises(LoomError, match="was not written"):
        write_reference(gaussian, FACTS, tmp_path / "none" / "real.safetensors")


def test_processes_draw_what_one_thread_draws() -> None:
    factors, seeds = sample_factors(3, torch.Generator().manual_seed(1)), torch.arange(3)
    expected = from_bytes(to_bytes(draw(factors, seeds, 16, device=CPU)))
    with ProceduralWorld() as alone, ProceduralWorld(processes=2) as world:
        assert torch.equal(alone.draw(factors, seeds, 16, CPU), expected)
        assert torch.equal(world.draw(factors, seeds, 16, CPU), expected)


def test_few_pictures_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[dict[str, object]] = []
    monkeypatch.setattr(ProceduralWorld, "__init__", lambda self, **given: made.append(given))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    for count, device in ((10, "cpu"), (64, "cpu"), (10**6, "cpu"), (10000, "cuda"), (10**6, "cuda")):
        world_for(count, torch.device(device))
    assert [(one["processes"], one["compiles"]) for one in made] == [
        *((1, False), (4, False), (8, True)),
        *((1, False), (1, True)),
    ]
