"""The script that times features of a discriminator: its step, and what it says without a GPU."""

import pytest
import torch

from gpu_backend import open_gradients, random_model
from gpu_backend.bench.shapes import Shape
from tests.helpers.one_thread import one_thread_of_torch
from tests.helpers.packaging_script import ROOT, packaging_script


def test_a_step_is_the_gradient_of_a_picture_and_without_own_kernels_there_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    script = packaging_script("features_benchmark")
    shape = Shape("tiny", 16, 128, 8, w_dim=16)
    network = open_gradients(random_model(shape), device="cpu")
    with pytest.raises(SystemExit, match="Own kernels do not run here"):
        script.opened(network, shape)
    features = script.PictureFeatures.of_discriminator(script.discriminator_of(shape), network.mean_w)
    picture, wanted = (torch.rand((1, 3, 16, 16), generator=torch.Generator().manual_seed(i)) for i in range(2))
    with one_thread_of_torch():
        assert float(script.step_of(features, None, picture, wanted)().norm()) > 0.0
        assert float(script.step_of(features, None, wanted, wanted)().norm()) < 1e-5
