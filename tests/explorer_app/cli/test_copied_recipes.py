from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from explorer_app.exporting import recipe_text
from explorer_app.exporting.errors import PictureError
from explorer_app.exporting.picture_document import PictureDocument
from explorer_app.exporting.recipe_text import (
    MAX_WORD,
    PREFIX,
    as_command,
    as_python,
    document_of_argument,
    recipe_argument,
)
from explorer_app.session.adapting import adapt
from explorer_app.session.blend import resolve_blend
from explorer_app.session.edited_latent import FadeEdit, TakeEditedRows, recipe_before
from explorer_app.session.local_edits import LayerBend, StyleChannel
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Position, Session, Slider, Source, as_still
from explorer_app.session.taps import first_tap
from explorer_app.session.timeline.evaluation import session_at
from explorer_app.session.tracks import Key, Timeline, Track
from explorer_app.session.variations import grid_cells, random_neighbours
from gpu_backend import (
    DirectionAmount,
    Latent,
    MixSource,
    ModelFacts,
    Noise,
    Point,
    Recipe,
    RenderRequest,
    RowRange,
    StoredLatent,
    Transform,
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


def states(facts: ModelFacts) -> dict[str, Session]:
    """Return a session of each kind that the window can show."""
    rows = stored_latent(np.random.default_rng(3).normal(size=(facts.num_ws, facts.w_dim)).astype(np.float32))
    plain = Session(model=ModelReference(model_id=facts.model_id), position=Position(3.25, 0.5))
    mixed = replace(
        plain,
        sliders=(Slider("axis/1", 0.7, RowRange(0, 1)),),
        mix=(Source(Latent(rows), (0.25,) * facts.num_ws, "kept"), Source(Latent(), (0.5,) * facts.num_ws, "seed 0")),
        classes=((1, 1.0),) if facts.c_dim else (),
    )
    before = recipe_before(mixed, rows)
    edited = TakeEditedRows(before, rows).apply(mixed)
    timeline = Timeline((Track("pinned_blend", arc_keys(plain), way="w-slerp"),))
    return {
        "mix": mixed,
        "edited latent": edited,
        "faded edit": FadeEdit(0.4).apply(edited),
        "noise phase": replace(plain, noise=Noise("random", 7, 0.8, (1.0, 0.5), 33.0)),
        "variation": random_neighbours(mixed, grid_cells(3, 3), 1, 0.3, RowRange(), facts.num_ws)[1],
        "between keys": as_still(session_at(replace(plain, timeline=timeline), 0.37)),
        "layer": replace(plain, tap=first_tap(facts)),
        "bent": replace(
            plain,
            bends=(LayerBend(1, facts.layers[2].name, "gain", 3.0, (1, 4)),),
            style_channels=(StyleChannel(facts.layers[2].name, 1, 0.5),),
        ),
        "turned": replace(plain, transform=Transform(0.1, 0.0, 30.0)) if facts.has_transform else plain,
    }


def arc_keys(session: Session) -> tuple[Key, ...]:
    """Return keys on two seeds, a second apart."""
    blends = (resolve_blend(replace(session, position=Position(x))) for x in (1.0, 2.0))
    return tuple(Key(Fraction(second), blend) for second, blend in enumerate(blends))


@pytest.mark.parametrize("name", ["labelled", "alias-free"])
def test_every_kind_of_picture_is_copied_exactly(
    name: str, command: Command, networks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = networks / f"{name}.safetensors"
    monkeypatch.chdir(tmp_path)
    with open_renderer(network) as renderer:
        for kind, session in states(renderer.facts).items():
            request = resolve(adapt(session, renderer.facts).session)
            wanted = renderer.render(request).to_rgb()
            words = shlex.split(as_command(PictureDocument(request, name), network))
            assert command(*words[1:]).status == 0, kind
            with Image.open("picture.png") as made:
                assert np.array_equal(np.asarray(made), wanted), f"{kind}, as a command"
            Path("picture.png").unlink()
            exec(compile(as_python(request, network), "copied.py", "exec"), {})
            with Image.open("picture.png") as made:
                assert np.array_equal(np.asarray(made), wanted), f"{kind}, as a program"
            Path("picture.png").unlink()


def test_a_recipe_survives_as_a_word_and_damage_is_reported(request_: RenderRequest) -> None:
    document = PictureDocument(request_, "plain")
    word = recipe_argument(document)
    found = document_of_argument(word)
    assert (found.request.blend, found.model_name) == (request_.blend, "plain")
    damaged = (word[:-9], word[:40] + "A" + word[41:], PREFIX, PREFIX + "ä", PREFIX + "%%%", word + "AAAA")
    for text in damaged:
        with pytest.raises(PictureError):
            document_of_argument(text)


def test_a_recipe_that_no_command_line_takes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).normal(size=(18, 512)).astype(np.float32)
    document = PictureDocument(RenderRequest("x", ((Recipe(Latent(stored_latent(rows))), 1.0),)))
    monkeypatch.setattr(recipe_text, "MAX_WORD", 30_000)
    with pytest.raises(PictureError, match="save the picture"):
        recipe_argument(document)
    assert (32_767 if sys.platform == "win32" else 131_072) > MAX_WORD
