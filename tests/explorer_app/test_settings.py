import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from explorer_app.messages import Level, MessageLog
from explorer_app.settings import MAX_RECENT, Preferences, RecentModel, Settings
from tests.helpers.strategies import texts


def open_settings(path: Path | None) -> tuple[Settings, MessageLog]:
    messages = MessageLog()
    return Settings(path, messages), messages


def test_without_a_file_the_defaults_hold_and_nothing_is_said(tmp_path: Path):
    settings, messages = open_settings(tmp_path / "settings.json")
    assert settings.values == Preferences()
    assert messages.messages == ()
    settings.save()
    assert list(tmp_path.iterdir()) == []


def test_what_was_changed_comes_back(tmp_path: Path):
    path = tmp_path / "folder" / "settings.json"
    settings, _ = open_settings(path)
    settings.change(theme="light", drift_speed=-1.5, flick_glide=True, window_geometry="AAAA", last_model="/m")
    settings.change(device="cuda:1", precision="fp32")
    settings.remember_model(RecentModel("/m", "m", "id"))
    settings.remember_folder("picture", tmp_path)
    settings.choose("export.kind", "w-linear")
    settings.save()
    again, messages = open_settings(path)
    assert again.values == settings.values
    assert again.folder("picture") == tmp_path
    assert again.choice("export.kind") == "w-linear"
    assert messages.messages == ()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xff", b"[" * 100_000, b'"text"'])
def test_a_broken_file_gives_the_defaults_and_a_message(tmp_path: Path, data: bytes):
    path = tmp_path / "settings.json"
    path.write_bytes(data)
    settings, messages = open_settings(path)
    assert settings.values == Preferences()
    assert [message.level for message in messages.messages] == [Level.WARNING]
    settings.change(theme="dark")
    settings.save()
    assert json.loads(path.read_bytes())["theme"] == "dark"


def test_a_folder_in_place_of_the_file_cannot_stop_a_start(tmp_path: Path):
    settings, messages = open_settings(tmp_path)
    settings.change(theme="dark")
    settings.save()
    assert settings.values.theme == "dark"
    assert len(messages.messages) == 2


def test_a_broken_field_gets_its_default_and_the_others_are_read(tmp_path: Path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"version": 9, "theme": "pink", "drift_speed": 2.0, "flick_glide": 1, "unknown": {}}))
    settings, messages = open_settings(path)
    assert settings.values == Preferences(drift_speed=2.0)
    assert "theme, flick_glide" in messages.messages[0].sentence


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "", 0, None, ["cpu"]])
def test_a_device_that_has_no_such_name_is_not_taken(tmp_path: Path, device: object):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"device": device, "precision": "fp64"}))
    settings, messages = open_settings(path)
    assert settings.values == Preferences()
    assert "device, precision" in messages.messages[0].sentence


def test_recent_models_are_bounded_newest_first_and_each_path_once():
    settings, _ = open_settings(None)
    for number in [*range(MAX_RECENT + 5), 3]:
        settings.remember_model(RecentModel(f"/{number}", "", ""))
    assert len(settings.values.recent_models) == MAX_RECENT
    assert [item.path for item in settings.values.recent_models][:2] == ["/3", f"/{MAX_RECENT + 4}"]
    settings.forget_model("/3")
    assert "/3" not in [item.path for item in settings.values.recent_models]


def test_a_folder_that_has_gone_is_not_offered(tmp_path: Path):
    settings, _ = open_settings(None)
    settings.remember_folder("picture", tmp_path / "gone")
    assert settings.folder("picture") is None


def test_the_file_is_where_the_system_keeps_preferences(own_folders: Path):
    assert own_folders in Settings.default_path().parents


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts(5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(5), inner, max_size=3),
    max_leaves=6,
)


@hypothesis_settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from(["version", *Preferences.__dataclass_fields__]), _JSON))
def test_no_file_can_ever_stop_a_start(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]):
    path = tmp_path_factory.getbasetemp() / "fuzzed-settings.json"
    path.write_text(json.dumps(data))
    settings, _ = open_settings(path)
    settings.change(last_model="x")
    settings.save()
    assert open_settings(path)[0].values == settings.values
