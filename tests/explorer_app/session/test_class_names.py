import pytest

from explorer_app.session.class_names import class_text, classes_like, classes_named

NAMES = ("tench, Tinca tinca", "Crane", "wood thrush", "tree frog, tree-frog", "crane", "World War 1", "cat", "wildcat")


def test_a_class_is_called_by_number_and_name_or_by_number_alone() -> None:
    assert class_text(2, NAMES) == "2 wood thrush"
    assert class_text(2, ()) == "Class 2"
    assert class_text(8, NAMES) == "Class 8", "a session may name a class that this network lacks"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("WOOD_thrush", [2]),
        ("crane", [1, 4]),
        ("tinca  TINCA", [0]),
        ("tench", [0]),
        ("tench, tinca tinca", [0]),
        ("tree", []),
        ("", []),
    ],
)
def test_a_class_is_found_by_its_whole_name_or_one_of_its_synonyms_in_any_case(text: str, found: int | None) -> None:
    assert classes_named(text, NAMES) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cat", [6, 7]),
        ("crane", [1, 4]),
        ("1", [1, 5]),
        ("frog tree", [3]),
        ("  W ", [2, 5, 7]),
        ("r", [1, 2, 3, 4, 5]),
        ("unicorn", []),
        ("", list(range(8))),
    ],
)
def test_a_search_puts_first_what_begins_with_the_text(text: str, found: list[int]) -> None:
    assert classes_like(text, 8, NAMES) == found


def test_classes_without_names_are_found_by_their_digits() -> None:
    assert classes_like("99", 300, ()) == [99, 199, 299]
    assert classes_like("class 7", 20, ()) == [7, 17]
