"""Networks with random weights: whole ones, that render something."""

from contextlib import closing
from typing import Literal

import numpy as np
import pytest

from gpu_backend import Renderer, RenderRequest
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import SHAPES, Shape
from gpu_backend.model.stylegan3_design import StyleGAN3Design


@pytest.mark.parametrize("config", ["skip", "T", "R"])
def test_every_config_gives_a_picture_and_the_same_one_again(config: Literal["skip", "T", "R"]) -> None:
    shape = Shape("small", 16, 256, 12, w_dim=16, config=config)
    model = random_model(shape)
    assert model.facts.architecture == config
    pictures = []
    for _ in range(2):
        with closing(Renderer(random_model(shape), "cpu")) as renderer:
            frame = renderer.render(RenderRequest(model.facts.model_id))
            assert frame.warnings == ()
            pictures.append(frame.pixels)
    assert np.array_equal(*pictures)
    assert pictures[0][..., :3].std() > 0.2


def test_stylegan3_shapes_are_those_of_the_public_networks() -> None:
    first = {name: random_model(SHAPES[name]).spec.layers[7].name for name in ("t256", "r256")}
    assert first == {"t256": "L7_148_362", "r256": "L7_148_724"}
    assert StyleGAN3Design(256, channel_base=16384).layers()[7].name == first["t256"]
