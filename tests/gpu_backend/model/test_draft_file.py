"""Draft readouts lie beside a model, are read strictly, and take the place of toRGB in drafts on the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_backend import ModelFileError, Renderer, RenderRequest
from gpu_backend.model.draft_file import draft_path, read_readouts, readout_sides, write_readouts
from gpu_backend.model.model import Model
from gpu_backend.plan.stylegan2 import build_synthesis_plan
from gpu_backend.recipe import Noise
from tests.helpers.networks import make_stylegan2

CHANNELS = 4


@pytest.fixture(scope="module")
def model() -> Model:
    return make_stylegan2(resolution=32, channel_max=CHANNELS)


def readout(side: int = 16) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(side)
    weight = random.standard_normal((3, CHANNELS)).astype(np.float32)
    return {side: (0.1 * weight, np.array([0.1, -0.2, 0.3], np.float32))}


def written(model: Model, path: Path) -> Path:
    write_readouts(readout(), path, model.facts.model_id, model.spec)
    return path


def test_what_was_written_is_read_back(model: Model, tmp_path: Path) -> None:
    found = read_readouts(written(model, tmp_path / "x.drafts.safetensors"), model.facts.model_id, model.spec)
    weight, bias = readout()[16]
    assert set(found) == {"drafts.b16.weight", "drafts.b16.bias"}
    assert np.allclose(found["drafts.b16.weight"][:, :, 0, 0] / CHANNELS**0.5, weight, atol=1e-6)
    assert np.array_equal(found["drafts.b16.bias"], bias)
    assert readout_sides(found) == {16}


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


def test_readouts_that_do_not_suit_the_network_are_not_written(model: Model, tmp_path: Path) -> None:
    weight, bias = readout()[16]
    for wrong in ({64: (weight, bias)}, {16: (weight[:, :-1], bias)}, {16: (weight * np.inf, bias)}, {}):
        with pytest.raises(ModelFileError):
            write_readouts(wrong, tmp_path / "x.drafts.safetensors", model.facts.model_id, model.spec)
    assert not list(tmp_path.iterdir())


def test_a_draft_with_a_readout_runs_no_torgb_of_the_network(model: Model) -> None:
    spec, name = model.spec, model.facts.model_id
    plan = build_synthesis_plan(spec, name, resolution=16, readouts=frozenset({16}))
    assert [step.layer for step in plan.steps if step.op == "to_rgb"] == ["synthesis.b16.draft"]
    for resolution in (8, None):
        usual = build_synthesis_plan(spec, name, resolution=resolution, readouts=frozenset({16}))
        assert usual.key == build_synthesis_plan(spec, name, resolution=resolution).key
        assert not [step for step in usual.steps if step.layer.endswith(".draft")]


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
        weight, bias = readout()[16]
        wanted = np.einsum("oc,chw->hwo", weight, features) + bias
        shown = ((wanted.clip(-1, 1) + 1) * 127.5)[..., ::-1]
        assert np.abs(draft.pixels[..., :3].astype(float) - shown).max() <= 1
        assert draft.is_draft
    finally:
        plain.close()
        fitted.close()
