"""The bundled model is what its card says, loads without a warning and is worth looking at."""

import hashlib
import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from explorer_app.assets import BUNDLED_SEED, bundled_model
from explorer_app.cli.demo import SEEDS
from explorer_app.controller.known_model import known_from_json
from explorer_app.controller.last_start import SHIPPED_MODEL, SHIPPED_PICTURE
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import GoToSeed
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session
from gpu_backend import (
    Latent,
    PictureEncoder,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    Truncation,
    encoder_path,
    read_encoder,
    read_model,
    stored_latent,
)
from gpu_backend.model.safetensors_file import KEY
from gpu_backend.training.world import FACTORS

FOLDER = Path(__file__).parents[1] / "assets" / "models"
NAME = "loom-landscapes-256"
MODEL = FOLDER / f"{NAME}.safetensors"
SHEET = FOLDER / f"{NAME}.jpg"


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer(read_model(MODEL), "cpu")


@pytest.fixture(scope="module")
def card() -> str:
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def picture(renderer: Renderer, seed: int, resolution: int | None = None) -> np.ndarray:
    recipe = Recipe(Latent(Point(((seed, 1.0),))), Truncation(0.7))
    request = RenderRequest(renderer.facts.model_id, ((recipe, 1.0),), resolution=resolution)
    return renderer.render(request).to_rgb().astype(np.float64)


def small(pixels: np.ndarray, side: int) -> np.ndarray:
    factor = len(pixels) // side
    return pixels.reshape(side, factor, side, factor, 3).mean(axis=(1, 3))


def test_the_program_finds_it_and_a_wheel_can_carry_it() -> None:
    assert bundled_model() == MODEL
    assert MODEL.stat().st_size < 16 << 20
    assert SHEET.stat().st_size < 1_500_000


def test_its_card_names_the_file_that_is_there(renderer: Renderer, card: str) -> None:
    facts = renderer.facts
    data = MODEL.read_bytes()
    assert hashlib.sha256(data).hexdigest() in card
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    snapshot = json.loads(header["__metadata__"][KEY])["source"]["name"]
    seen = int(snapshot.removeprefix("network-"))
    for words in (
        f"{len(data):,} bytes",
        f"{facts.parameters:,} parameters",
        f"z {facts.z_dim}, w {facts.w_dim}, {facts.num_ws} w rows, {facts.mapping_layers} mapping layers",
        f"{facts.resolution} x {facts.resolution}, RGB, unconditional",
        f"run/{snapshot}.safetensors",
        f"{seen:,} pictures",
    ):
        assert words in card, words


def test_its_card_names_every_factor_of_the_world(card: str) -> None:
    assert [factor.name for factor in FACTORS if factor.name.replace("_", " ") not in card] == []


def test_its_name_is_that_of_its_file_and_nothing_is_wrong_with_it(renderer: Renderer) -> None:
    facts = renderer.facts
    assert (facts.name, facts.img_channels, facts.c_dim, facts.warnings) == (NAME, 3, 0, ())


def test_its_sliders_move_one_factor_each_as_its_card_says(renderer: Renderer, card: str) -> None:
    directions = read_model(MODEL).directions
    assert directions is not None
    assert len(directions.names) >= 8
    factors = {factor.name.replace("_", " ") for factor in FACTORS}
    for name, rows, reach, centre, measures in zip(
        directions.names, directions.rows, directions.reach, directions.centre, directions.measures, strict=True
    ):
        factor = name.removeprefix("world/")
        assert factor in factors
        assert measures["spearman"] >= 0.9, factor
        assert measures["selectivity"] >= 3.0, factor
        ends = f"{centre - reach:.3g} to {centre + reach:.3g}".replace("-", "\u2212")
        told = f"{measures['spearman']:.3g} | {measures['selectivity']:.3g}"
        assert f"| {factor} | {rows.first}\u2013{rows.last} | {ends} | {told} |" in card


def test_its_encoder_reads_pictures_that_it_shows(renderer: Renderer, card: str) -> None:
    facts = renderer.facts
    stored = read_encoder(encoder_path(MODEL), facts.model_id, facts.w_dim, facts.num_ws)
    assert stored.scales is not None
    assert f"{stored.scales.probes:,} backward passes" in card
    assert f"{len(stored.scales.factors)} directions" in card
    assert encoder_path(MODEL).stat().st_size < 4 << 20
    assert f"{stored.steps:,} steps" in card
    assert stored.error < 0.09
    encoder = PictureEncoder.from_file(stored, torch.empty(0))
    found = []
    for seed in (100, 101, 102):
        shown = picture(renderer, seed)
        pictures = torch.from_numpy(shown / 127.5 - 1.0).float().permute(2, 0, 1)[None]
        rows = encoder.encode(pictures).expand(facts.num_ws, -1).numpy()
        request = RenderRequest(facts.model_id, ((Recipe(Latent(stored_latent(rows))), 1.0),))
        error = np.square(renderer.render(request).to_rgb().astype(np.float64) - shown).mean()
        found.append(10 * np.log10(255**2 / error))
    assert sorted(found)[1] > 22


def test_the_sheet_on_its_card_shows_this_model(renderer: Renderer) -> None:
    with Image.open(SHEET) as sheet:
        assert sheet.size == (8 * 132 + 4, 8 * 132 + 4)
        cells = np.asarray(sheet.convert("RGB"), np.float64)
    for seed in (0, 27, 63):
        left, top = 4 + seed % 8 * 132, 4 + seed // 8 * 132
        shown = cells[top : top + 128, left : left + 128]
        assert np.abs(small(shown, 16) - small(picture(renderer, seed), 16)).mean() < 4


def test_the_first_pictures_have_contrast_and_differ_from_each_other(renderer: Renderer) -> None:
    assert Session().truncation == Truncation(0.7), "what the card says and these pictures have"
    pictures = [picture(renderer, seed) for seed in sorted({BUNDLED_SEED, *SEEDS})]
    for shown in pictures:
        assert shown.std() > 20
        assert ((shown == 0) | (shown == 255)).mean() < 0.2, "hardly anything is blown out"
    for one, other in combinations(pictures, 2):
        assert np.abs(one - other).mean() > 10


def test_a_draft_is_more_like_its_picture_than_like_others(renderer: Renderer) -> None:
    seeds = sorted({BUNDLED_SEED, *SEEDS})
    pictures = [small(picture(renderer, seed), 64) for seed in seeds]
    for place, seed in enumerate(seeds):
        draft = picture(renderer, seed, 64)
        away = [np.abs(shown - draft).mean() for shown in pictures]
        assert np.argmin(away) == place, seed


def test_the_first_directions_change_the_picture(renderer: Renderer) -> None:
    ws = renderer.map(np.random.RandomState(0).randn(1, renderer.facts.z_dim), psi=0.7)
    base = renderer.synthesize(ws)
    for index in range(4):
        moved = renderer.synthesize(ws + renderer.directions.reach[index] / 2 * renderer.directions.vectors[index])
        assert np.abs(moved - base).mean() > 0.02, index


def test_the_stored_first_picture_equals_the_rendered_one(renderer: Renderer) -> None:
    known = known_from_json(MODEL.with_suffix(SHIPPED_MODEL).read_bytes()).at(MODEL)
    assert known is not None, "run packaging/make_first_start.py"
    facts, directions = renderer.facts, renderer.directions
    assert known.facts == replace(facts, path=str(MODEL)), "run packaging/make_first_start.py"
    assert known.directions.names == directions.names
    session = adapt(GoToSeed(BUNDLED_SEED).apply(Session()), facts).session
    live = renderer.render(resolve(session)).to_rgb().astype(np.float64)
    with Image.open(MODEL.with_suffix(SHIPPED_PICTURE)) as image:
        stored = np.asarray(image.convert("RGB"), dtype=np.float64)
    assert np.abs(live - stored).mean() < 4.0, "run packaging/make_first_start.py"
