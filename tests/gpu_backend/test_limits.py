import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpu_backend import (
    FileLimits,
    Latent,
    LimitError,
    MixSource,
    Point,
    Recipe,
    RenderRequest,
    RequestError,
    is_regular_file,
    latent_from_json,
    latent_to_json,
    parse_json,
    read_regular_file,
    request_to_json,
)
from gpu_backend.latent.rows import anchors_of
from gpu_backend.limits import (
    MAX_MIX_DEPTH,
    MAX_RECIPE_DIRECTIONS,
    MAX_RECIPE_SEEDS,
    MAX_RECIPE_SOURCES,
    RecipeBudget,
)

SMALL = FileLimits(100, 10)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"12345")
    assert read_regular_file(path, 5, "a note") == b"12345"
    with pytest.raises(LimitError, match=r"a\.json should be a note of at most 4 bytes, but has 5 bytes"):
        read_regular_file(path, 4, "a note")


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no named pipes among its files")
def test_a_pipe_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(LimitError, match="but is a folder, a pipe or a device"):
            read_regular_file(path, 5, "a note")


def test_a_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / "none", 5, "a note")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("[" + "1," * 10 + "1]", "holds at most 10 values, but this one has 11"),
        ('"' + "a" * 100 + '"', "has at most 100 bytes, but this one has 102 bytes"),
    ],
)
def test_a_json_text_beyond_its_limits_is_refused_before_it_is_parsed(text: str, part: str) -> None:
    for data in (text, text.encode()):
        with pytest.raises(LimitError, match=f"A note {part}"):
            parse_json(data, SMALL, "a note")


def test_json_within_its_limits_is_read_and_constants_and_depth_are_refused() -> None:
    assert parse_json(b"[1, 2]", SMALL, "a note") == [1, 2]
    with pytest.raises(ValueError, match="NaN is not a number"):
        parse_json("[NaN]", SMALL, "a note")
    with pytest.raises(ValueError, match="nest too deep"):
        parse_json("[" * 200_000, FileLimits(1 << 20, 1 << 20), "a note")


def test_seeds_of_all_sources_together_are_bounded_for_reader_writer_and_renderer() -> None:
    points = [Point(tuple((seed, 0.0) for seed in range(k * 1000, k * 1000 + 1000))) for k in range(5)]
    latent = Latent(mix=tuple(MixSource(Latent(point), (1.0,)) for point in points))
    data = latent_to_json(latent)
    sentence = f"A picture may have {MAX_RECIPE_SEEDS:,} seeds in all"
    with pytest.raises(RequestError, match=sentence):
        latent_from_json(data)
    blend = ((Recipe(latent), 1.0),)
    with pytest.raises(RequestError, match=sentence):
        request_to_json(RenderRequest("a", blend))
    with pytest.raises(RequestError, match=sentence):
        anchors_of(blend)


def test_the_reader_accepts_all_that_the_writer_writes() -> None:
    latent = Latent(Point(((3, 1.0),)))
    for _ in range(8):
        latent = Latent(mix=(MixSource(latent, (0.5,)),))
    request = RenderRequest("a", ((Recipe(latent), 1.0),))
    assert latent_from_json(latent_to_json(latent)) == latent
    assert request_to_json(request)
    deeper = Latent(mix=(MixSource(latent, (0.5,)),))
    for refuse in (
        lambda: latent_from_json(latent_to_json(deeper)),
        lambda: request_to_json(RenderRequest("a", ((Recipe(deeper), 1.0),))),
    ):
        with pytest.raises(RequestError, match="nested 8 deep"):
            refuse()


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_that_of_a_missing_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path / name, 5, "a note")
    assert not is_regular_file(tmp_path / name)


def test_a_path_that_is_too_long_leads_to_no_file(tmp_path: Path) -> None:
    assert not is_regular_file(tmp_path / ("a" * 4000))
    assert not is_regular_file(tmp_path)
    (tmp_path / "a").touch()
    assert is_regular_file(tmp_path / "a")


def test_a_budget_is_spent_to_the_last_and_each_kind_for_itself() -> None:
    budget = RecipeBudget()
    for kind, most in (
        ("seeds", MAX_RECIPE_SEEDS),
        ("sources", MAX_RECIPE_SOURCES),
        ("directions", MAX_RECIPE_DIRECTIONS),
    ):
        budget.spend(**{kind: most - 1})
        budget.spend(**{kind: 1}, depth=MAX_MIX_DEPTH)
        with pytest.raises(RequestError, match="in all, but this one has more"):
            replace(budget).spend(**{kind: 1})
    with pytest.raises(RequestError, match="nested deeper"):
        budget.spend(depth=MAX_MIX_DEPTH + 1)
