"""Where encoders and tuned models are kept, and which encoder a search uses."""

from pathlib import Path

import pytest

from explorer_app.session.model_files import ModelFiles
from gpu_backend import LoomError, ModelFacts
from tests.helpers.fake_renderer import fake_model


def facts_at(path: Path) -> ModelFacts:
    path.parent.mkdir(parents=True, exist_ok=True)
    return fake_model(path).facts


def test_files_are_kept_beside_their_model_and_those_of_the_bundled_one_in_the_users_folder(tmp_path: Path) -> None:
    bundled = tmp_path / "installed" / "cats.pkl"
    files = ModelFiles(tmp_path / "own", bundled)
    mine = facts_at(tmp_path / "models" / "dogs.pkl")
    photo = Path("garden.png")
    assert files.write_tuned(mine, photo, Path.touch) == tmp_path / "models" / "dogs.garden.safetensors"
    assert files.write_tuned(mine, photo, Path.touch) == tmp_path / "models" / "dogs.garden 2.safetensors"
    assert files.write_encoder(mine, Path.touch) == tmp_path / "models" / "dogs.encoder.safetensors"
    shipped = facts_at(bundled)
    own = tmp_path / "own" / f"{shipped.model_id[:16]}.encoder.safetensors"
    assert files.write_tuned(shipped, photo, Path.touch) == tmp_path / "own" / "cats.garden.safetensors"
    assert files.write_encoder(shipped, Path.touch) == own
    assert list(bundled.parent.iterdir()) == []


def test_the_users_encoder_takes_the_place_of_the_one_beside_the_model(tmp_path: Path) -> None:
    files = ModelFiles(tmp_path / "own", None)
    facts = facts_at(tmp_path / "models" / "dogs.pkl")
    assert files.encoder(facts) is None
    beside = files.write_encoder(facts, Path.touch)
    assert files.encoder(facts) == beside
    own = tmp_path / "own" / f"{facts.model_id[:16]}.encoder.safetensors"
    own.parent.mkdir()
    own.touch()
    assert files.encoder(facts) == files.own_encoder(facts.model_id) == own
    assert files.write_encoder(facts, Path.touch) == own, "the next training replaces the one that is used"


def test_a_folder_that_refuses_is_replaced_by_the_users_and_named_if_that_refuses_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    facts = fake_model(tmp_path / "file" / "dogs.pkl").facts
    own = tmp_path / "own" / f"{facts.model_id[:16]}.encoder.safetensors"
    assert ModelFiles(tmp_path / "own", None).write_encoder(facts, Path.touch) == own
    with pytest.raises(OSError, match="file"):
        ModelFiles(None, None).write_encoder(facts, Path.touch)
    with pytest.raises(LoomError, match="copy the model into a folder of your own"):
        ModelFiles(None, Path(facts.path)).write_encoder(facts, Path.touch)


def test_a_model_of_a_very_long_name_has_files_too(tmp_path: Path) -> None:
    files = ModelFiles(tmp_path / "own", None)
    facts = fake_model(tmp_path / f"{'d' * 245}.pkl").facts
    assert files.encoder(facts) is None
    assert files.write_tuned(facts, Path(f"{'g' * 240}.png"), Path.touch).parent == tmp_path
    assert files.write_encoder(facts, Path.touch) == files.own_encoder(facts.model_id)
