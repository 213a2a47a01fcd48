from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.recipe_text import MAX_WORD, PREFIX, as_command, as_python, document_of_word, recipe_word
from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    Noise,
    Point,
    Recipe,
    RenderRequest,
    RowRange,
    StoredLatent,
    Truncation,
    inspect_model,
    open_renderer,
    stored_latent,
)
from tests.helpers.command import Command


def request_of(network: Path, point: Point | StoredLatent) -> RenderRequest:
    """A request with something of everything."""
    facts = inspect_model(network)
    latent = Latent(
        point,
        mix=(MixSource(Latent(Point(((4, 0.25), (9, 0.75)), "z")), (0.5,) * facts.num_ws),),
        directions=(DirectionAmount("axis/0", -1.25, RowRange(1, 2)),),
    )
    return RenderRequest(
        facts.model_id,
        ((Recipe(latent, Truncation(0.65, 3)), 0.4), (Recipe(), 0.6)),
        Noise("random", 12, 0.5),
        measure_steps=True,
    )


@pytest.fixture(params=["seeds", "rows"])
def request_(request: pytest.FixtureRequest, networks: Path) -> RenderRequest:
    network = networks / "plain.safetensors"
    facts = inspect_model(network)
    rows = np.random.default_rng(3).normal(size=(facts.num_ws, facts.w_dim)).astype(np.float32)
    return request_of(network, Point(((5, 1.0),)) if request.param == "seeds" else stored_latent(rows))


def test_a_copied_command_and_a_copied_program_make_exactly_the_picture(
    command: Command, networks: Path, request_: RenderRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = networks / "plain.safetensors"
    monkeypatch.chdir(tmp_path)
    with open_renderer(network) as renderer:
        wanted = renderer.render(request_).to_rgb()
    words = shlex.split(as_command(PictureDocument(request_, "plain"), network))
    assert words[:2] == ["latentloom", "render"]
    assert command(*words[1:]).status == 0
    with Image.open("picture.png") as made:
        assert np.array_equal(np.asarray(made), wanted)
    Path("picture.png").unlink()
    text = as_python(request_, network)
    assert all(len(line) <= 110 or "base64" in line or str(network) in line for line in text.splitlines())
    assert "measure_steps" not in text
    exec(compile(text, "copied.py", "exec"), {})
    with Image.open("picture.png") as made:
        assert np.array_equal(np.asarray(made), wanted)


def test_a_recipe_survives_as_a_word_and_damage_is_told(request_: RenderRequest) -> None:
    document = PictureDocument(request_, "plain")
    word = recipe_word(document)
    found = document_of_word(word)
    assert (found.request.blend, found.model_name) == (request_.blend, "plain")
    damaged = (word[:-9], word[:40] + "A" + word[41:], PREFIX, PREFIX + "ä", PREFIX + "%%%", word + "AAAA")
    for text in damaged:
        with pytest.raises(PictureError):
            document_of_word(text)


def test_a_recipe_that_no_command_line_takes_is_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(18, 512)).astype(np.float32)
    document = PictureDocument(RenderRequest("x", ((Recipe(Latent(stored_latent(rows))), 1.0),)))
    with pytest.raises(PictureError, match="save the picture"):
        recipe_word(document)
    assert MAX_WORD < 32_767
