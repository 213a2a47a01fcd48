"""Names of classes beside a model: every form that people have, and what becomes of a file that does not fit."""

import json
import os
from pathlib import Path

import pytest

from gpu_backend import ModelFileError, read_model, write_safetensors
from gpu_backend.model import class_names
from gpu_backend.model.class_names import MAX_FILE_BYTES, MAX_NAME, OWN, SHARED, class_names_beside, read_class_names
from tests.helpers.networks import make_stylegan2

NAMES = ("tench", "great white shark", "crane")


def file_of(folder: Path, content: object, name: str = "labels.txt") -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def refusal(path: Path, count: int = 3) -> str:
    with pytest.raises(ModelFileError) as caught:
        read_class_names(path, count)
    sentence = caught.value.sentence
    assert sentence.startswith(f"{path.name} was not opened: expected ")
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize(
    "content",
    [
        "tench\ngreat white shark\ncrane",
        "\ufefftench\r\ngreat_white_shark\r\n\r\n  crane  \r\n",
        "0: tench\n1: great white shark\n2: crane\n",
        "2\tcrane\n0\ttench\n1\tgreat white shark",
        "0,tench\n1,great white shark\n2,crane",
        "{0: 'tench',\n 1: \"great white shark\",\n 2: 'crane'}",
        "n01440764 tench\nn01484850 great white shark\nn02012849 crane",
        list(NAMES),
        [["n01440764", "tench"], ["n01484850", "great_white_shark"], ["n02012849", "crane"]],
        {"2": "crane", "0": "tench", "1": "great white shark"},
        {"0": ["n01440764", "tench"], "1": ["n01484850", "great_white_shark"], "2": ["n02012849", "crane"]},
        {"crane": 2, "tench": 0, "great white shark": 1},
        {"architectures": ["net"], "id2label": {"0": "tench", "1": "great white shark", "2": "crane"}},
        {"classes": list(NAMES)},
        {"labels": {"tench": 0, "great white shark": 1, "crane": 2}},
    ],
)
def test_every_form_that_people_have_gives_the_names_in_the_order_of_the_classes(
    tmp_path: Path, content: object
) -> None:
    assert read_class_names(file_of(tmp_path, content), 3) == NAMES


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("7 seas\n3 wishes\n1 euro", ("7 seas", "3 wishes", "1 euro")),
        ("1: tench\n2: shark\n3: crane", ("1: tench", "2: shark", "3: crane")),
        ("0\n1\n2", ("0", "1", "2")),
        ("crane\ncrane\nÖl 中文", ("crane", "crane", "Öl 中文")),
        ("{braces}, one\n'quoted'\n#hash", None),
        ("'quoted'\n#hash\nn01440764", ("'quoted'", "#hash", "n01440764")),
    ],
)
def test_text_that_resembles_a_class_number_stays_in_the_name(
    tmp_path: Path, content: str, names: tuple[str, ...] | None
) -> None:
    path = file_of(tmp_path, content)
    if names is None:
        assert "JSON is damaged" in refusal(path)
    else:
        assert read_class_names(path, 3) == names


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("tench\nshark", "expected 3 names, one for each class, but found 2"),
        ("", "but found 0"),
        (["tench"] * 4, "but found 4"),
        ({}, "but found 0"),
        ({"0": "tench", "1": "shark", "3": "crane"}, "expected the classes 0 to 2, each once"),
        ({"tench": 0, "shark": 0, "crane": 2}, "expected the classes 0 to 2, each once"),
        ({"0": "tench", "one": "shark", "2": "crane"}, "found other keys"),
        ('{"0": "tench", "0": "shark", "2": "crane"}', "JSON is damaged"),
        ('["tench", "shark", ', "JSON is damaged"),
        ("[" * 100_000, "JSON is damaged"),
        (["tench", "shark", 3], "a name for each class"),
        (["tench", "shark", "  "], "one is empty"),
        ({"labels": [["00000/img0.png", 3], ["00000/img1.png", 0], ["00000/img2.png", 1]]}, "a name for each class"),
        ("17", "found another value"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(tmp_path: Path, content: object, part: str) -> None:
    assert part in refusal(file_of(tmp_path, content))


def test_a_file_in_another_encoding_or_beyond_reason_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes("Öl\nÄther\nÜbel".encode("latin-1"))
    assert "in UTF-8" in refusal(path)
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert "at most 4 MiB" in refusal(path)
    assert "expected a file of class names, but there is no file of that name" in refusal(tmp_path / "none.txt")


def test_a_name_can_neither_steer_a_terminal_nor_fill_a_screen(tmp_path: Path) -> None:
    first, second = read_class_names(file_of(tmp_path, ["a\x1b[2Jb\u202ec\nd", "x" * 500]), 2)
    assert first == "a�[2Jb�c d"
    assert len(second) == MAX_NAME
    assert second.endswith("x…")


def test_the_models_own_file_counts_before_those_of_the_folder(tmp_path: Path) -> None:
    model = tmp_path / "my.zoo.pkl"
    for name in reversed((*(f"my.zoo{ending}" for ending in OWN), *SHARED)):
        file_of(tmp_path, [f"of {name}", "b"], name)
        found, warnings = class_names_beside(model, 2)
        assert found is not None
        assert (found.file, warnings) == (name, ())
        assert found.names[0] == f"of {name}".replace("_", " ")
    file_of(tmp_path, "only one", "my.zoo.labels.txt")
    found, warnings = class_names_beside(model, 2)
    assert found is None, "a slip in the file for just this model is told, not covered by another file"
    assert len(warnings) == 1
    assert "my.zoo.labels.txt was not opened: expected 2 names" in warnings[0]


def test_of_the_folders_files_the_first_that_fits_is_taken(tmp_path: Path) -> None:
    file_of(tmp_path, list("abcd"), "labels.txt")
    file_of(tmp_path, list(NAMES), "class_index.json")
    found, warnings = class_names_beside(tmp_path / "zoo.pkl", 3)
    assert found is not None
    assert (found.names, found.file, warnings) == (NAMES, "class_index.json", ())
    found, warnings = class_names_beside(tmp_path / "zoo.pkl", 5)
    assert found is None
    assert [warning.partition(" ")[0] for warning in warnings] == ["labels.txt"]
    (tmp_path / "classes.txt").mkdir()
    assert class_names_beside(tmp_path / "zoo.pkl", 3) == class_names_beside(tmp_path / "other.pt", 3)


def test_a_model_has_the_names_of_its_classes_and_opens_whatever_lies_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "zoo.safetensors"
    write_safetensors(make_stylegan2(c_dim=3), path)
    plain = read_model(path).facts
    assert (plain.class_names, plain.class_file, plain.warnings) == ((), "", ())
    names = file_of(tmp_path, "\n".join(NAMES), "zoo.labels.txt")
    facts = read_model(path).facts
    assert (facts.class_names, facts.class_file, facts.model_id) == (NAMES, "zoo.labels.txt", plain.model_id)
    names.write_bytes(b"\xff\xfe\x00")
    facts = read_model(path).facts
    assert facts.class_names == ()
    assert "zoo.labels.txt was not opened" in facts.warnings[-1]


def test_a_network_without_classes_looks_for_no_names(tmp_path: Path) -> None:
    write_safetensors(make_stylegan2(), tmp_path / "plain.safetensors")
    file_of(tmp_path, list("abc"))
    facts = read_model(tmp_path / "plain.safetensors").facts
    assert (facts.class_names, facts.warnings) == ((), ())


@pytest.mark.skipif(os.name == "nt", reason="names of 255 letters are for other systems")
def test_a_model_whose_name_leaves_no_room_for_an_ending_opens(tmp_path: Path) -> None:
    path = tmp_path / f"{'n' * 243}.safetensors"
    write_safetensors(make_stylegan2(c_dim=3), tmp_path / "short.safetensors")
    (tmp_path / "short.safetensors").rename(path)
    assert read_model(path).facts.warnings == ()


LONG = MAX_FILE_BYTES - 100


@pytest.mark.parametrize(
    "line",
    [
        "0: '" + "' " * (LONG // 2),
        "0: '" + "'" * LONG + "x",
        "0: 'a'" + " " * LONG + "x",
        "0: 'a'" + " \t" * (LONG // 2) + ",x",
        "0:" + " " * LONG + "'x",
        "0" + " " * LONG + ":" + "x",
        "0" + " \t" * (LONG // 2) + "x",
        "0" + "1" * LONG,
        "n01440764" + ",:; " * (LONG // 4) + "x",
        "n01440764" + "," * LONG,
        "x" * LONG,
    ],
)
def test_a_line_as_long_as_a_file_may_be_is_read_in_one_pass(line: str, tmp_path: Path) -> None:
    """Expressions that go back over a line would take the square of its length: hours for each of these."""
    (name,) = read_class_names(file_of(tmp_path, line), 1)
    assert 1 <= len(name) <= MAX_NAME
    assert "but found 1" in refusal(tmp_path / "labels.txt")


@pytest.mark.parametrize("line", ["a", "0: a", "{0: 'a'}", "n01440764 a"])
def test_of_more_lines_than_classes_none_is_looked_into(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    for form in ("_numbered", "_keyed", "_clean"):
        monkeypatch.setattr(class_names, form, seen.append)
    lines = MAX_FILE_BYTES // (len(line) + 1) - 1
    assert f"but found {lines}" in refusal(file_of(tmp_path, f"{line}\n" * lines))
    assert seen == []


def test_numbers_of_classes_that_share_a_hash_are_refused_before_they_meet(tmp_path: Path) -> None:
    """Python's hash of an integer is its remainder by 2**61 - 1: in one table, these would meet in pairs."""
    count = 100_000
    numbers = {str(place): (2**61 - 1) * place for place in range(1, count + 1)}
    assert "each once" in refusal(file_of(tmp_path, numbers), count)


def test_the_forms_of_a_line_are_those_that_files_have() -> None:
    assert class_names._quoted("{ 0 : 'it''s' , }") == (0, "it''s")
    assert class_names._quoted("0: 'a\"") is None
    assert class_names._quoted("0: '") is None
    assert class_names._quoted("1234567: 'a'") is None
    assert class_names._numbered("12 \t) \ta, b") == (12, "a, b")
    assert class_names._numbered("12a") is None
    assert class_names._numbered("12:") is None
    assert class_names._keyed("n01440764\ttench") == "tench"
    assert class_names._keyed("n01440764tench") is None
