"""The script that measures searches against what is expected of them: its tables for small networks."""

import csv
import sys
from pathlib import Path

import pytest
import torch

from gpu_backend import EncoderFile, PictureEncoder, open_gradients, read_model, write_encoder, write_safetensors
from gpu_backend.bench.shapes import Shape
from gpu_backend.gradients.scale_learning import ScaleLearner
from gpu_backend.model.encoder_file import encoder_path
from tests.helpers.networks import make_stylegan2
from tests.helpers.one_thread import one_thread_of_torch
from tests.helpers.packaging_script import ROOT, packaging_script


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_each_part_writes_its_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    goals = packaging_script("projection_goals")
    file = tmp_path / "small.safetensors"
    write_safetensors(make_stylegan2(resolution=16), file)
    model = read_model(file)
    mean = torch.from_numpy(model.mean_w.copy())
    learner = ScaleLearner(open_gradients(model, device="cpu"))
    while len(learner.gradients) < 20:
        learner.probe()
    fresh = PictureEncoder.fresh(16, mean, torch.ones_like(mean))
    fresh.scales = learner.scales()
    stored: EncoderFile = fresh.to_file(1, 0.5)
    write_encoder(stored, encoder_path(file), model.facts.model_id, model.spec.w_dim, model.spec.num_ws)
    monkeypatch.setattr(goals, "bundled_model", lambda: file)
    monkeypatch.setattr(sys.modules["encoder_benchmark"], "_CANDIDATES", 8)
    monkeypatch.setattr(goals, "unseen_pictures", lambda side, number: torch.zeros(number, 3, side, side).unbind(0))
    monkeypatch.setitem(goals.SHAPES, "ffhq256", Shape("tiny", 16, 128, 8, w_dim=16))
    few = ["--steps", "4", "--candidates", "4", "--count", "2", "--pictures", "1", "--few-steps", "2", "3"]
    drawn = ["--drawings", "1", "--drawing-steps", "3", "--tuning-steps", "2"]
    with one_thread_of_torch():
        goals.main([*few, *drawn, "--shapes", "ffhq256", "--out", str(tmp_path / "out")])
    whole = rows_of(tmp_path / "out" / "whole_searches.csv")
    assert [(row["network"], row["encoder"], row["features"], row["number"]) for row in whole] == [
        (*searches, number)
        for searches in (
            ("ffhq256", "False", "none"),
            ("ffhq256", "False", "discriminator"),
            ("bundled", "False", "encoder"),
            ("bundled", "True", "encoder"),
        )
        for number in "01"
    ]
    assert all(float(row["wall_s"]) > 0 and row["steps"] == "4" for row in whole)
    starts = rows_of(tmp_path / "out" / "starts.csv")
    assert [(row["kind"], row["steps"], row["from"]) for row in starts] == [
        (kind, steps, start)
        for kind in ("known", "unseen")
        for steps in "23"
        for start in ("random latents", "random latents, the encoder's scales", "the shipped encoder")
    ]
    (drawing,) = rows_of(tmp_path / "out" / "drawings.csv")
    assert all(float(drawing[key]) > 0 for key in ("psnr_db", "tuned_db", "tuning_s"))
    printed = capsys.readouterr().out
    assert "bundled, 4 steps from the encoder: the first " in printed
    assert "ffhq256, 4 steps from random latents with a discriminator's features: the first " in printed
    assert "drawings, medians: rows of w " in printed
