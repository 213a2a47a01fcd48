"""Draft readouts lie beside a model, are read strictly, and take the place of toRGB in drafts on the CPU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from gpu_backend import ModelFileError, Renderer, RenderRequest
from gpu_backend.model.draft_file import (
    KEY,
    Readout,
    Readouts,
    draft_path,
    read_readouts,
    readout_widths,
    write_readouts,
)
from gpu_backend.model.model import Model
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.recipe import Noise
from tests.helpers.networks import StyleGAN2Model, make_stylegan2

CHANNELS = 4


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(resolution=32, channel_max=CHANNELS)


READ = np.array([0, 2, 3], np.int32)


def readout(side: int = 16) -> Readouts:
    random = np.random.default_rng(side)
    weight = random.standard_normal((3, len(READ))).astype(np.float32)
    return {side: Readout(READ, 0.1 * weight, np.array([0.1, -0.2, 0.3], np.float32))}


def written(model: Model, path: Path) -> Path:
    write_readouts(readout(), path, model.facts.model_id, model.spec)
    return path


def test_a_written_file_reads_back_equal(model: Model, tmp_path: Path) -> None:
    found = read_readouts(written(model, tmp_path / "x.drafts.safetensors"), model.facts.model_id, model.spec)
    assert readout_widths(found) == {16: len(READ)}
    for name in ("channels", "weight", "bias"):
        assert np.array_equal(getattr(found[16], name), getattr(readout()[16], name))


def test_a_file_of_version_1_reads_every_channel(model: Model, tmp_path: Path) -> None:
    weight, bias = np.full((3, CHANNELS), 0.5, np.float32), np.zeros(3, np.float32)
    said = json.dumps({"version": 1, "model_id": model.facts.model_id})
    path = tmp_path / "x.drafts.safetensors"
    path.write_bytes(safetensors.numpy.save({"b16.weight": weight, "b16.bias": bias}, {KEY: said}))
    found = read_readouts(path, model.facts.model_id, model.spec)
    assert found[16].channels.tolist() == list(range(CHANNELS))
    assert np.array_equal(found[16].weight, weight)


def test_it_lies_beside_the_model() -> None:
    assert draft_path("/a/hills-256.safetensors") == Path("/a/hills-256.drafts.safetensors")


def test_readouts_of_another_model_are_refused(model: Model, tmp_path: Path) -> None:
    path = written(model, tmp_path / "x.drafts.safetensors")
    with pytest.raises(ModelFileError, match="fitted to another one"):
        read_readouts(path, "another", model.spec)


@pytest.mark.parametrize("cut", [0, 7, 40, -8])
def test_a_cut_file_is_refused_in_one_sentence(model: Model, tmp_path: Path, cut: int) -> None:
    path = written(model, tmp_path / "x.drafts.safetensors")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelFileError):
        read_readouts(path, model.facts.model_id, model.spec)


@pytest.mark.parametrize(
    "changed",
    [
        {"weight": np.zeros((3, 4), np.float32)},
        {"weight": np.full((3, 3), np.inf, np.float32)},
        {"bias": np.zeros(2, np.float32)},
        {"channels": np.array([0, 2, CHANNELS], np.int32)},
        {"channels": np.array([-1, 2, 3], np.int32)},
        {"channels": np.array([2, 0, 3], np.int32)},
        {"channels": np.array([0, 2, 2], np.int32)},
        {"channels": np.array([], np.int32), "weight": np.zeros((3, 0), np.float32)},
    ],
)
def test_readouts_that_do_not_suit_the_network_are_not_written(
    model: Model, tmp_path: Path, changed: dict[str, np.ndarray]
) -> None:
    with pytest.raises(ModelFileError):
        write_readouts(
            {16: replace(readout()[16], **changed)}, tmp_path / "x.drafts.safetensors", model.facts.model_id, model.spec
        )
    assert not list(tmp_path.iterdir())


def test_readouts_of_no_side_or_of_an_unknown_one_are_not_written(model: Model, tmp_path: Path) -> None:
    for wrong in (readout(64), {}):
        with pytest.raises(ModelFileError):
            write_readouts(wrong, tmp_path / "x.drafts.safetensors", model.facts.model_id, model.spec)
    assert not list(tmp_path.iterdir())


def test_a_draft_with_a_readout_runs_no_torgb_of_the_network_and_no_channel_that_is_not_read(
    model: StyleGAN2Model,
) -> None:
    spec, name, widths = model.spec, model.facts.model_id, {16: len(READ)}
    plan = build_synthesis_plan(spec, name, resolution=16, readouts=widths)
    assert [step.layer for step in plan.steps if step.op == "to_rgb"] == ["synthesis.b16.draft"]
    convolutions = [step for step in plan.steps if step.op == "modulated_conv"]
    assert [step.attributes.out_channels for step in convolutions] == [CHANNELS, CHANNELS, len(READ)]
    for resolution in (8, None):
        usual = build_synthesis_plan(spec, name, resolution=resolution, readouts=widths)
        assert usual == build_synthesis_plan(spec, name, resolution=resolution)


def test_a_draft_on_the_cpu_is_the_readout_of_the_features_and_the_full_picture_stays(
    model: Model, tmp_path: Path
) -> None:
    path = written(model, tmp_path / "x.drafts.safetensors")
    found = read_readouts(path, model.facts.model_id, model.spec)
    plain, fitted = Renderer(model, "cpu"), Renderer(replace(model, readouts=found), "cpu")
    try:
        full = RenderRequest(model.facts.model_id)
        assert np.array_equal(plain.render(full).pixels, fitted.render(full).pixels)
        draft = fitted.render(replace(full, resolution=16))
        ws = fitted._rows(full.blend)[None]
        features = fitted._runner.observe(ws, Noise())["synthesis.b16.conv1"][0]
        wanted = np.einsum("oc,chw->hwo", readout()[16].weight, features[READ]) + readout()[16].bias
        shown = ((wanted.clip(-1, 1) + 1) * 127.5)[..., ::-1]
        assert np.abs(draft.pixels[..., :3].astype(float) - shown).max() <= 1
        assert draft.is_draft
    finally:
        plain.close()
        fitted.close()
