import pytest

from explorer_app.session.direction_names import default_name, shown_directions


@pytest.mark.parametrize(
    ("direction", "name"),
    [
        ("sefa/0", "Direction 1"),
        ("world/sun height", "Sun height"),
        ("pca/2", "PCA 3"),
        ("coarse/0", "Coarse 1"),
        ("labels/Smile", "Smile"),
        ("axis/12", "w 12"),
    ],
)
def test_a_direction_has_a_name_that_a_person_can_read(direction: str, name: str) -> None:
    assert default_name(direction) == name


def test_all_named_directions_are_shown_before_the_first_of_the_others() -> None:
    names = (*(f"sefa/{index}" for index in range(30)), *(f"world/{index}a" for index in range(40)))
    shown = [names[place] for place in shown_directions(names)]
    assert shown[:40] == list(names[30:])
    assert shown[40:] == list(names[:24])
