import json
from pathlib import Path

from explorer_app.session.model_places import MAX_PLACES, ModelPlaces
from explorer_app.session.session import ModelReference

CATS = ModelReference(name="cats", model_id="ab" * 32)


def model_file(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("a model")
    return path


def test_a_model_is_found_by_its_hash_after_a_restart(tmp_path: Path) -> None:
    path = model_file(tmp_path, "renamed.pkl")
    ModelPlaces(tmp_path / "state" / "models.json").remember(CATS.model_id, path)
    assert ModelPlaces(tmp_path / "state" / "models.json").find(CATS) == path
    path.unlink()
    assert ModelPlaces(tmp_path / "state" / "models.json").find(CATS) is None


def test_a_model_is_found_by_its_name_beside_the_picture(tmp_path: Path) -> None:
    places = ModelPlaces(None)
    assert places.find(CATS, tmp_path) is None
    path = model_file(tmp_path, "cats.safetensors")
    assert places.find(CATS, tmp_path) == path
    outside = ModelReference(name="../cats", model_id="ab" * 32)
    assert places.find(outside, model_file(tmp_path / "pictures", "a.png").parent) is None


def test_two_programs_add_to_one_list(tmp_path: Path) -> None:
    first, second = ModelPlaces(tmp_path / "models.json"), ModelPlaces(tmp_path / "models.json")
    dogs = ModelReference(name="dogs", model_id="cd" * 32)
    assert first.find(CATS) is second.find(CATS) is None
    first.remember(CATS.model_id, model_file(tmp_path, "cats.pkl"))
    second.remember(dogs.model_id, model_file(tmp_path, "dogs.pkl"))
    third = ModelPlaces(tmp_path / "models.json")
    assert third.find(CATS) == tmp_path / "cats.pkl"
    assert third.find(dogs) == tmp_path / "dogs.pkl"


def test_a_damaged_list_is_an_empty_one(tmp_path: Path) -> None:
    for text in (b"", b"[]", b"\xff", b'{"format": "latent-loom-models", "places": 3}', b"[" * 100_000):
        (tmp_path / "models.json").write_bytes(text)
        places = ModelPlaces(tmp_path / "models.json")
        assert places.find(CATS) is None
    places.remember(CATS.model_id, model_file(tmp_path, "cats.pkl"))
    assert ModelPlaces(tmp_path / "models.json").find(CATS) == tmp_path / "cats.pkl"


def test_the_list_is_bounded_and_its_oldest_places_go_first(tmp_path: Path) -> None:
    places = ModelPlaces(tmp_path / "models.json")
    old = {f"{number:064x}": "/gone" for number in range(MAX_PLACES)}
    places._places = old
    (tmp_path / "models.json").write_text(
        '{"format": "latent-loom-models", "places": {' + ",".join(f'"{key}": "/gone"' for key in old) + "}}"
    )
    places.remember(CATS.model_id, model_file(tmp_path, "cats.pkl"))
    assert places.find(CATS) == tmp_path / "cats.pkl"
    assert len(places._read()) == MAX_PLACES
    assert f"{0:064x}" not in places._read()


def test_a_path_that_the_system_refuses_is_that_of_no_file(tmp_path: Path) -> None:
    places = ModelPlaces(tmp_path / "models.json")
    (tmp_path / "models.json").write_text(
        json.dumps({"format": "latent-loom-models", "places": {"ab" * 32: "/" + "n" * 5000, "cd" * 32: "/a\0b"}})
    )
    for name, model_id in (("n" * 5000, "ab" * 32), ("a", "cd" * 32), ("n" * 300, "")):
        assert places.find(ModelReference("", name, model_id), tmp_path) is None
