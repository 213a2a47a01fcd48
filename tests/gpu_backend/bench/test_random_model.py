"""Networks with random weights: whole ones, that render something."""

from contextlib import closing
from typing import Literal

import numpy as np
import pytest

from gpu_backend import Renderer, RenderRequest
from gpu_backend.bench.random_model import random_model
from gpu_backend.bench.shapes import SHAPES, Shape
from gpu_backend.model.spec import ClassTable
from gpu_backend.model.stylegan3_design import StyleGAN3Design


@pytest.mark.parametrize("config", ["skip", "T", "R", "XL"])
def test_every_config_gives_a_picture_and_the_same_one_again(config: Literal["skip", "T", "R", "XL"]) -> None:
    shape = Shape("small", 32 if config == "XL" else 16, 256, 12, w_dim=16, config=config)
    model = random_model(shape)
    assert model.facts.architecture == ("T" if config == "XL" else config)
    pictures = []
    for _ in range(2):
        with closing(Renderer(random_model(shape), "cpu")) as renderer:
            frame = renderer.render(RenderRequest(model.facts.model_id))
            assert frame.warnings == ()
            pictures.append(frame.pixels)
    first, second = pictures
    assert np.array_equal(first, second)
    assert pictures[0][..., :3].std() > 0.2


def test_a_stylegan_xl_has_a_thousand_classes_and_the_sizes_of_its_stages() -> None:
    spec = random_model(Shape("small", 64, 256, 12, w_dim=16, config="XL")).spec
    assert (spec.family, spec.mapping.z_dim, spec.mapping.c_dim) == ("stylegan_xl", 64, 1000)
    assert spec.mapping.class_table == ClassTable(1000, 320)
    sizes = [layer.name.split("_")[:2] for layer in spec.layers]
    assert sizes[7:9] == [["L7", "36"], ["L9", "52"]]
    assert sizes[11:13] == [["L12", "52"], ["L14", "84"]]
    assert sizes[-1] == ["L20", "64"]


def test_stylegan3_shapes_are_those_of_the_public_networks() -> None:
    first = {name: random_model(SHAPES[name]).spec.layers[7].name for name in ("t256", "r256")}
    assert first == {"t256": "L7_148_362", "r256": "L7_148_724"}
    assert StyleGAN3Design(256, channel_base=16384).layers()[7].name == first["t256"]
