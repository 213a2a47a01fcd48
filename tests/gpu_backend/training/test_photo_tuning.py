"""Tuning of a network to a photo: the picture of a latent gets nearer, and only weights of the synthesis change."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from gpu_backend import (
    MASK_SIDE,
    Bend,
    LocalEdits,
    MaskedBlend,
    Model,
    PhotoTuning,
    PictureMask,
    Projection,
    ProjectionSettings,
    Recipe,
    RequestError,
    StyleOffset,
    TunedProjection,
)
from gpu_backend.gradients.network import differentiable_network
from gpu_backend.gradients.picture_loss import psnr
from gpu_backend.plan.edit_inputs import bendable_layers
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan1 import make_stylegan1
from tests.helpers.stylegan3 import StyleGAN3Options, make_stylegan3

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS = {
    "skip": make_stylegan2(resolution=16),
    "resnet": make_stylegan2(resolution=16, architecture="resnet"),
    "stylegan1": make_stylegan1(resolution=16),
    "stylegan3": make_stylegan3(StyleGAN3Options(num_layers=4, resolution=16)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_the_picture_of_the_latent_gets_nearer_to_the_photo(model: Model) -> None:
    network = differentiable_network(model)
    spec = model.spec
    rows = np.repeat(model.mean_w[None], spec.num_ws, 0)
    shape = (spec.img_channels, spec.resolution, spec.resolution)
    target = np.linspace(-0.8, 0.8, np.prod(shape), dtype=np.float32).reshape(shape)
    tuning = PhotoTuning(network, rows, target, 8)
    losses = [tuning.step().loss for _ in range(8)]
    assert losses == sorted(losses, reverse=True), "the best stays"
    assert losses[-1] < losses[0]
    assert tuning.report.is_done
    assert tuning.step().step == 8, "a step after the end does nothing"
    changes = tuning.changes()
    assert all(name.startswith("synthesis.") and "noise" not in name for name in changes)
    tuned = dict(model.weights) | {name: model.weights[name] + change for name, change in changes.items()}
    again = differentiable_network(Model(spec, tuned, model.facts))
    with torch.no_grad():
        picture = again.picture(torch.from_numpy(rows)[None])
    assert psnr(picture, torch.from_numpy(target)[None]) == pytest.approx(tuning.psnr, abs=0.02)


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_a_picture_with_edits_is_tuned_as_it_is_shown(model: Model) -> None:
    layer = list(bendable_layers(model.spec))[1]
    top = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))
    edits = LocalEdits((Bend(layer, "turn", 30.0),), (StyleOffset(layer, 0, 0.5),), (MaskedBlend(Recipe(), top),))
    network = differentiable_network(model).edited(edits)
    rows = np.random.default_rng(4).standard_normal((1, model.spec.num_ws, model.spec.w_dim), np.float32)
    with torch.no_grad():
        picture = network.picture(torch.from_numpy(rows))
    tuning = PhotoTuning(network, rows[0], picture[0].numpy(), 1)
    assert tuning.step().loss == pytest.approx(0.0, abs=1e-4), "the first step compares the picture with itself"


def test_steps_out_of_range_are_refused() -> None:
    network = differentiable_network(MODELS["skip"])
    with pytest.raises(RequestError, match="1 to 100,000 steps"):
        PhotoTuning(network, np.zeros((1, 1), np.float32), np.zeros((3, 16, 16), np.float32), 0)


def test_a_tuning_that_is_wanted_now_takes_the_best_rows_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PhotoTuning.__init__, "__defaults__", (2, None))
    network = differentiable_network(MODELS["skip"])
    target = np.zeros((3, 16, 16), np.float32)
    projection = Projection(network, target[None], ProjectionSettings(100, 1))
    search = TunedProjection(network, target, projection, tunes_now=lambda: True)
    seen = []
    while not search.report.is_done:
        seen.append(search.step().stage)
    assert seen == ["random", "weights", "weights"], "not before a picture was compared"
    assert search.changes()


def test_a_projection_is_followed_by_its_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PhotoTuning.__init__, "__defaults__", (2, None))
    network = differentiable_network(MODELS["skip"])
    target = np.zeros((3, 16, 16), np.float32)
    search = TunedProjection(network, target, Projection(network, target[None], ProjectionSettings(2, 1)))
    assert not search.has_found
    seen, found = [], []
    while not search.report.is_done:
        assert search.changes() == {} or search.report.stage == "weights"
        seen.append(search.step().stage)
        found.append((search.latent_version, search.latent))
    assert seen == ["random", *["scales"] * 8, "w", "rows", "weights", "weights"]
    assert found[-3] == found[-2] == found[-1], "a tuning keeps the rows"
    assert all((old[0] == new[0]) == (old[1] == new[1]) for old, new in pairwise(found)), "a version for each latent"
    assert search.has_found
    assert search.latent.num_ws == MODELS["skip"].spec.num_ws
    assert search.changes()
