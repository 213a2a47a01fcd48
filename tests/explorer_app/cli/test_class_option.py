"""A class on the command line, by number and by name."""

import json
import shutil
from pathlib import Path

import pytest

from explorer_app.exporting.picture import read_picture
from tests.helpers.command import Command


@pytest.fixture
def zoo(networks: Path, tmp_path: Path) -> Path:
    """A network of three classes with names beside it."""
    path = shutil.copy(networks / "labelled.safetensors", tmp_path / "zoo.safetensors")
    (tmp_path / "zoo.labels.txt").write_text("crane\nTench, Tinca tinca\ncrane\n")
    return Path(path)


@pytest.mark.parametrize("name", ["1", "tench", "TINCA_tinca", "tench, tinca tinca"])
def test_a_class_is_chosen_by_number_or_name_and_kept_as_its_number(command: Command, zoo: Path, name: str) -> None:
    outcome = command("render", "--network", zoo, "--seeds", "0", "--outdir", zoo.parent, "--class", name)
    assert outcome.status == 0, outcome.err
    picture = read_picture(zoo.parent / "seed0000.png")
    assert picture.request.blend[0][0].latent.classes == ((1, 1.0),)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("crane", "Several classes have this name, 0 crane; 2 crane, but --class 'crane' was given; give the number."),
        (
            "tin",
            "zoo has no class of that name, but --class 'tin' was given; some like it are 1 Tench, Tinca tinca.",
        ),
        ("dog", "zoo has no class of that name, but --class 'dog' was given; zoo.labels.txt lists all names."),
        ("-1", "zoo has no class of that name, but --class '-1' was given; zoo.labels.txt lists all names."),
        ("3", "zoo has the classes 0 to 2, but --class 3 was given."),
    ],
)
def test_a_class_that_is_invalid_or_not_the_only_one_is_reported(
    command: Command, zoo: Path, name: str, sentence: str
) -> None:
    outcome = command("render", "--network", zoo, "--seeds", "0", "--outdir", zoo.parent, "--class", name)
    assert outcome.sentence == sentence


def test_without_names_a_class_has_its_number_only(command: Command, networks: Path, tmp_path: Path) -> None:
    network = networks / "labelled.safetensors"
    outcome = command("render", "--network", network, "--seeds", "0", "--outdir", tmp_path, "--class", "dog")
    assert "have numbers only, 0 to 2" in outcome.sentence
    assert "labelled.labels.txt" in outcome.sentence


def test_inspect_reports_where_names_come_from_and_some_of_them(command: Command, zoo: Path) -> None:
    lines = [line.strip() for line in command("inspect", zoo).out.splitlines()]
    place = lines.index("Classes          3, with names from zoo.labels.txt:")
    assert lines[place + 1 : place + 4] == ["0 crane", "1 Tench, Tinca tinca", "2 crane"]
    assert json.loads(command("inspect", zoo, "--json").out)["class_names"] == ["crane", "Tench, Tinca tinca", "crane"]


def test_a_file_of_names_that_does_not_fit_is_a_warning(command: Command, zoo: Path) -> None:
    (zoo.parent / "zoo.labels.txt").write_text("only one")
    outcome = command("inspect", zoo)
    assert outcome.status == 0
    assert "zoo.labels.txt was not opened: expected 3 names, one for each class, but found 1" in outcome.out
