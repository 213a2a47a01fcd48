import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from explorer_app.messages import Level, MessageLog
from explorer_app.rendering.device_choice import PRECISIONS, Precision
from explorer_app.settings import MAX_RECENT, Preferences, RecentModel, Settings
from tests.helpers.strategies import examples, texts


def open_settings(path: Path | None) -> tuple[Settings, MessageLog]:
    messages = MessageLog()
    return Settings(path, messages), messages


def test_without_a_file_the_defaults_hold_and_nothing_is_said(tmp_path: Path) -> None:
    settings, messages = open_settings(tmp_path / "settings.json")
    assert settings.values == Preferences()
    assert messages.messages == ()
    settings.save()
    assert list(tmp_path.iterdir()) == []


def test_changed_settings_are_restored(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_is_restored(tmp_path: Path, precision: Precision) -> None:
    path = tmp_path / "settings.json"
    settings, _ = open_settings(path)
    settings.change(precision=precision)
    settings.save()
    again, messages = open_settings(path)
    assert again.values.precision == precision
    assert messages.messages == ()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xff", b"[" * 100_000, b'"text"'])
def test_a_broken_file_gives_the_defaults_and_a_message(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(data)
    settings, messages = open_settings(path)
    assert settings.values == Preferences()
    assert [message.level for message in messages.messages] == [Level.WARNING]
    assert "settings.json.broken" in messages.messages[0].sentence
    assert (tmp_path / "settings.json.broken").read_bytes() == data
    settings.change(theme="dark")
    settings.save()
    assert json.loads(path.read_bytes())["theme"] == "dark"
    assert (tmp_path / "settings.json.broken").read_bytes() == data


def test_a_folder_in_place_of_the_file_cannot_stop_a_start(tmp_path: Path) -> None:
    settings, messages = open_settings(tmp_path)
    settings.change(theme="dark")
    settings.save()
    assert settings.values.theme == "dark"
    assert len(messages.messages) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right of their own on Windows")
@pytest.mark.parametrize("data", [b'{"theme": "dark"}', b"{broken"])
def test_settings_that_are_a_link_into_another_folder_stay_one(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles" / "settings.json").write_bytes(data)
    path = tmp_path / "settings.json"
    path.symlink_to(tmp_path / "dotfiles" / "settings.json")
    settings, _ = open_settings(path)
    settings.change(theme="light")
    settings.save()
    assert path.is_symlink()
    assert json.loads((tmp_path / "dotfiles" / "settings.json").read_bytes())["theme"] == "light"
    broken = tmp_path / "settings.json.broken"
    assert (broken.read_bytes() if broken.exists() else data) == data
    assert broken.exists() == (data == b"{broken")


def test_a_broken_field_gets_its_default_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"version": 9, "theme": "pink", "drift_speed": 2.0, "flick_glide": 1, "unknown": {}}))
    settings, messages = open_settings(path)
    assert settings.values == Preferences(drift_speed=2.0)
    assert "theme, flick_glide" in messages.messages[0].sentence
    assert (tmp_path / "settings.json.broken").read_bytes() == path.read_bytes()
    settings.change(theme="dark")
    settings.save()
    assert json.loads(path.read_bytes())["unknown"] == {}, "what a newer version wrote stays"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_the_file_stops_no_start(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    os.mkfifo(path)
    settings, messages = open_settings(path)
    assert settings.values == Preferences()
    assert len(messages.messages) == 1


def test_two_windows_save_what_each_changed(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    models = [RecentModel(f"/{name}", name, name) for name in "abcde"]
    first, _ = open_settings(path)
    for model in reversed(models[:3]):
        first.remember_model(model)
    first.change(folders={"model": "/models", "export": "/old"}, choices={"a": "1", "b": "1"})
    first.save()
    one, _ = open_settings(path)
    other, _ = open_settings(path)
    one.change(theme="dark", choices={"a": "2", "b": "1", "one": "1"})
    one.remember_model(models[3])
    one.remember_model(models[1])
    other.change(drift_speed=2.0, folders={"model": "/models"}, choices={"a": "1", "b": "3"})
    other.remember_model(models[4])
    other.forget_model("/a")
    one.save()
    other.save()
    values = open_settings(path)[0].values
    assert (values.theme, values.drift_speed) == ("dark", 2.0)
    assert values.folders == {"model": "/models"}
    assert values.choices == {"a": "2", "b": "3", "one": "1"}
    assert [item.name for item in values.recent_models] == ["e", "b", "d", "c"]


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=12))
def test_recent_models_of_a_single_window_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "recent-settings.json"
    path.unlink(missing_ok=True)
    settings, _ = open_settings(path)
    for number, (is_opened, model) in enumerate(steps):
        if is_opened:
            settings.remember_model(RecentModel(f"/{model}", "", ""))
        else:
            settings.forget_model(f"/{model}")
        if number % 3 == 0:
            settings.save()
    settings.change(last_model="x")
    settings.save()
    assert open_settings(path)[0].values == settings.values


@pytest.mark.parametrize("device", ["tpu", "cuda:", "cuda:x", "", 0, None, ["cpu"]])
def test_a_device_that_has_no_such_name_is_not_taken(tmp_path: Path, device: object) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"device": device, "precision": "fp64"}))
    settings, messages = open_settings(path)
    assert settings.values == Preferences()
    assert "device, precision" in messages.messages[0].sentence


def test_recent_models_are_bounded_newest_first_and_each_path_once() -> None:
    settings, _ = open_settings(None)
    for number in [*range(MAX_RECENT + 5), 3]:
        settings.remember_model(RecentModel(f"/{number}", "", ""))
    assert len(settings.values.recent_models) == MAX_RECENT
    assert [item.path for item in settings.values.recent_models][:2] == ["/3", f"/{MAX_RECENT + 4}"]
    settings.forget_model("/3")
    assert "/3" not in [item.path for item in settings.values.recent_models]


def test_a_folder_that_has_gone_is_not_offered(tmp_path: Path) -> None:
    settings, _ = open_settings(None)
    settings.remember_folder("picture", tmp_path / "gone")
    assert settings.folder("picture") is None


def test_the_file_is_where_the_system_keeps_preferences(own_folders: Path) -> None:
    assert own_folders in Settings.default_path().parents


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts(5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(5), inner, max_size=3),
    max_leaves=6,
)


@hypothesis_settings(max_examples=examples(50), deadline=None)
@given(st.dictionaries(st.sampled_from(["version", *Preferences.__dataclass_fields__]), _JSON))
def test_no_file_can_ever_stop_a_start(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed-settings.json"
    path.unlink(missing_ok=True)  # writing over a file takes milliseconds: it is put on the disk at once
    path.write_text(json.dumps(data))
    settings, _ = open_settings(path)
    settings.change(last_model="x")
    settings.save()
    assert open_settings(path)[0].values == settings.values


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_link_to_a_pipe_in_place_of_the_file_stops_no_start(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "settings.json").symlink_to("pipe")
    settings, messages = open_settings(tmp_path / "settings.json")
    assert settings.values == Preferences()
    assert len(messages.messages) == 1


def test_a_refusal_to_write_is_said_once_until_they_are_written(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    settings, messages = open_settings(folder / "settings.json")
    folder.write_bytes(b"in the way")
    for theme in ("dark", "light", "dark"):
        settings.change(theme=theme)
        settings.save()
    assert [message.level for message in messages.messages] == [Level.WARNING]
    folder.unlink()
    settings.save()
    assert open_settings(folder / "settings.json")[0].values.theme == "dark"
    (folder / "settings.json").unlink()
    (folder / ".settings.json.lock").unlink(missing_ok=True)
    folder.rmdir()
    folder.write_bytes(b"in the way again")
    settings.change(theme="light")
    settings.save()
    assert len(messages.messages) == 2
