"""Keys of an export: lists of seeds, and kept latents, whose frames are their pictures to the byte."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from explorer_app.cli.console import Console
from explorer_app.cli.sequence import render_sequence
from explorer_app.exporting.manifest import read_manifest
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Position, Session, Slider
from explorer_app.window.export.export_keys import MAX_SEEDS, ExportKey, export_settings, free_name, parse_seeds
from gpu_backend import Model, Noise, PathKind, Transform, Truncation, open_renderer, write_safetensors
from tests.helpers.networks import make_stylegan2
from tests.helpers.stylegan3 import make_stylegan3

NOISE = (
    Session(position=Position(3.25, 1.5), noise=Noise("random", 7, 0.5)),
    Session(position=Position(8.0, 0.0), truncation=Truncation(0.4, 2), noise=Noise("none")),
    Session(position=Position(1.0, 0.0), noise=Noise("const", 0, 1.5, (0.0, 2.0)), sliders=(Slider("sefa/0", 2.0),)),
)
TRANSFORM = (
    Session(position=Position(3.25, 1.5), transform=Transform(0.1, -0.2, 40.0, 1.5)),
    Session(position=Position(8.0, 0.0)),
    Session(position=Position(1.0, 0.0), transform=Transform(degrees=-170.0, scale=0.7)),
)


@pytest.mark.parametrize(
    ("model", "sessions"),
    [(make_stylegan2, NOISE), (partial(make_stylegan3, num_layers=4), TRANSFORM)],
    ids=["noise", "transform"],
)
@pytest.mark.parametrize(("kind", "loop"), [("w-cubic", True), ("w-linear", False)])
def test_an_exports_frame_at_a_kept_latent_is_the_picture_of_that_latent(
    tmp_path: Path, model: Callable[[], Model], sessions: tuple[Session, ...], kind: PathKind, loop: bool
) -> None:
    path = tmp_path / "m.safetensors"
    write_safetensors(model(), path)
    with closing(open_renderer(path, "cpu")) as renderer:
        reference = ModelReference("", "m", renderer.facts.model_id)
        kept = [replace(session, model=reference) for session in sessions]
        settings = export_settings(
            [ExportKey(str(place), session) for place, session in enumerate(kept)],
            kept[0],
            kind=kind,
            frames_per_step=2,
            loop=loop,
            folder=tmp_path / "out",
            name="walk",
            z_dim=8,
            overwrite=False,
        )
        render_sequence(settings, renderer, Console())
        stored = read_manifest(settings.manifest_path).settings.keys
        assert stored == settings.keys, "what a resumed export reads is what was asked for"
        shown = []
        for place, session in enumerate(kept):
            wanted = renderer.render(resolve(session)).to_rgb().tobytes()
            with Image.open(tmp_path / "out" / f"walk_{2 * place:05d}.png") as image:
                assert image.tobytes() == wanted, place
            shown.append(wanted)
        assert len(set(shown)) == len(shown)


def test_a_free_name_counts_on_from_the_one_that_is_taken() -> None:
    taken = {"walk", "walk-2"}.__contains__
    assert free_name("walk", taken) == "walk-3"
    assert free_name("walk-2", taken) == "walk-3"
    assert free_name("other", taken) == "other"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0,1,4-6", (0, 1, 4, 5, 6)),
        (" 7 ", (7,)),
        ("3-1", (3, 2, 1)),
        ("1, 2 3;4", (1, 2, 3, 4)),
        ("4294967295", (2**32 - 1,)),
    ],
)
def test_lists_of_seeds_are_read(text: str, seeds: tuple[int, ...]) -> None:
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "a", "-4", "4294967296", "1.5", f"0-{MAX_SEEDS}"])
def test_a_malformed_list_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"[Ss]eed"):
        parse_seeds(text)
