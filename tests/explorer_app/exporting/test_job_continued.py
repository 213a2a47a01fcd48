"""An export into a folder in which files are already: of a run that was killed or stopped, or of another program."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from explorer_app.exporting.formats.picture_format import PictureFormat
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.exporting.sinks.frame_sink import FramePlan
from explorer_app.exporting.sinks.picture_folder import PictureFolder
from explorer_app.session.session import ModelReference
from gpu_backend import Noise, Transform
from gpu_backend.whole_file import part_name
from tests.helpers.failing_disk import MortalDisk, PowerCutError, dead_part
from tests.helpers.sequence_exports import Folder, content, export, key, refuse, started

FORMS = [PictureFormat("jpeg"), PictureFormat("webp", 100), PictureFormat("tiff"), PictureFormat("png", None, "small")]


@pytest.mark.parametrize("operation", range(16))
def test_a_run_killed_at_any_operation_is_finished_by_the_next_with_the_same_bytes(
    wanted: SequenceSettings, undisturbed: Folder, operation: int
) -> None:
    disk = MortalDisk(operation)
    try:
        export(wanted, disk=disk, threads=1)
    except PowerCutError:
        assert disk.died
    else:
        assert not disk.died
        assert operation >= 14, "two manifests and five frames take a write and a move each"
    for name, data in content(wanted.folder).items():
        if name.endswith(".png"):
            assert data == undisturbed[name], "a file under its real name is whole"
    export(wanted)
    assert content(wanted.folder) == undisturbed


def test_killed_again_and_again_it_still_ends_the_same(wanted: SequenceSettings, undisturbed: Folder) -> None:
    for times in range(40):  # each life is a little longer: removing what the one before left takes a part of it
        try:
            export(wanted, disk=MortalDisk(4 + times // 4), threads=1)
        except PowerCutError:
            continue
        break
    assert content(wanted.folder) == undisturbed


def test_existing_frames_are_not_rendered_again(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    assert len(export(wanted).requests) == 3
    assert export(wanted).requests == []


def test_a_finished_sequence_is_left_untouched(wanted: SequenceSettings) -> None:
    export(wanted)
    before = {path: path.stat().st_mtime_ns for path in wanted.folder.iterdir()}
    export(wanted)
    assert {path: path.stat().st_mtime_ns for path in wanted.folder.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"\0",
        lambda data: b"",
        lambda data: data.replace(b"latentloom", b"latentgloom"),
        lambda data: data[: len(data) // 2] + bytes(len(data) - len(data) // 2),
    ],
    ids=["cut by a byte", "cut in half", "longer", "empty", "another keyword", "zeros at the end"],
)
def test_a_damaged_frame_is_recreated(
    wanted: SequenceSettings, undisturbed: Folder, damage: Callable[[bytes], bytes]
) -> None:
    export(wanted)
    path = wanted.folder / "walk_00002.png"
    path.write_bytes(damage(path.read_bytes()))
    assert len(export(wanted).requests) == 1
    assert content(wanted.folder) == undisturbed


def test_a_frame_that_belongs_elsewhere_in_the_sequence_is_recreated(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    export(wanted)
    (wanted.folder / "walk_00002.png").write_bytes(undisturbed["walk_00003.png"])
    export(wanted)
    assert content(wanted.folder) == undisturbed


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "w-linear"},
        {"frames_per_step": 3},
        {"loop": True},
        {"keys": (key(1), key(2), key(3, Noise("const")))},
        {"keys": (key(1), key(2), key(3, transform=Transform(degrees=5.0).matrix))},
        {"keys": (key(1), key(2), key(4))},
        {"model": ModelReference("/models/m.pkl", "m", "cd" * 32)},
    ],
)
def test_a_different_sequence_of_that_name_is_refused_and_kept(
    wanted: SequenceSettings, undisturbed: Folder, change: dict[str, Any]
) -> None:
    export(wanted)
    refuse(replace(wanted, **change), r"^The folder .* holds a different sequence named walk; .*\.$")
    assert content(wanted.folder) == undisturbed


def test_a_foreign_manifest_is_refused(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    for text, what in (
        ("", "should be a manifest of a sequence, but is not JSON"),
        ("{}", "says that it is something else"),
        ("[" * 100_000, "is not JSON"),
        ('{"format": "latent-loom-sequence", "version": 1}', "is damaged"),
        ('{"format": "latent-loom-sequence", "version": 9}', "another version"),
    ):
        (wanted.folder / "walk.manifest.json").write_text(text)
        refuse(wanted, rf"^The folder .* holds another file in this place: .*{what}.*; choose another name or folder")
        assert (wanted.folder / "walk.manifest.json").read_text() == text


def test_a_pipe_or_a_folder_in_the_manifests_place_is_called_what_it_is(wanted: SequenceSettings) -> None:
    (wanted.folder / "walk.manifest.json").mkdir(parents=True)
    refuse(wanted, r"walk\.manifest\.json should be a manifest of a sequence, but is a folder, a pipe or a device")


def test_a_foreign_file_with_the_name_of_a_frame_is_refused_and_kept(wanted: SequenceSettings) -> None:
    wanted.folder.mkdir()
    (wanted.folder / "walk_00004.png").write_bytes(b"a photograph")
    (wanted.folder / "walk_00009.png").write_bytes(b"not in the way")
    refuse(wanted, r"holds a walk_00004\.png that is not part of this sequence; .*\.$")
    assert (wanted.folder / "walk_00004.png").read_bytes() == b"a photograph"


def test_frames_whose_manifest_was_lost_are_used(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted)
    (wanted.folder / "walk.manifest.json").unlink()
    assert export(wanted).requests == []
    assert content(wanted.folder) == undisturbed


def test_replacing_takes_the_surplus_of_a_longer_sequence_away(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(replace(wanted, frames_per_step=5, kind="w-linear"))
    (wanted.folder / "walk_00077.png").write_bytes(b"not of that sequence")
    export(replace(wanted, overwrite=True))
    assert content(wanted.folder) == {**undisturbed, "walk_00077.png": b"not of that sequence"}


def test_replacing_deletes_frames_of_another_format_and_no_picture_of_another_program(
    wanted: SequenceSettings, undisturbed: Folder
) -> None:
    export(replace(wanted, frames_per_step=5, kind="w-linear", form=PictureFormat("jpeg")))
    foreign = {"walk_00001.webp": b"a photograph", "walk_00010.png": b"another"}
    for name, data in foreign.items():
        (wanted.folder / name).write_bytes(data)
    export(replace(wanted, overwrite=True))
    assert content(wanted.folder) == {**undisturbed, **foreign}


@pytest.mark.parametrize("operation", range(0, 24, 2))
def test_a_replacement_killed_at_any_operation_is_finished_by_the_next(
    wanted: SequenceSettings, undisturbed: Folder, operation: int
) -> None:
    export(replace(wanted, frames_per_step=5, kind="w-linear"))
    with contextlib.suppress(PowerCutError):
        export(replace(wanted, overwrite=True), disk=MortalDisk(operation), threads=1)
    export(replace(wanted, overwrite=True))
    assert content(wanted.folder) == undisturbed


def test_only_the_leftovers_of_dead_programs_are_cleared_away(wanted: SequenceSettings, undisturbed: Folder) -> None:
    wanted.folder.mkdir()
    for name in ("walk_00001.png", "walk.manifest.json"):
        (wanted.folder / dead_part(name)).write_bytes(b"half")
    foreign = {".walk_00001.png.part": b"x", part_name("walk_00002.png", os.getppid()): b"x"}
    for name, data in foreign.items():
        (wanted.folder / name).write_bytes(data)
    export(wanted)
    assert content(wanted.folder) == undisturbed | foreign


def test_a_manifest_is_all_that_it_takes_to_go_on_anywhere(
    wanted: SequenceSettings, undisturbed: Folder, tmp_path: Path
) -> None:
    export(wanted, stop_after=2)
    moved = wanted.folder.rename(tmp_path / "elsewhere")
    manifest = read_manifest(moved / "walk.manifest.json")
    assert (manifest.state, manifest.frames_written) == ("cancelled", 2)
    assert len(export(manifest.settings).requests) == 3
    assert content(moved) == undisturbed


def test_a_sequence_of_version_1_goes_on(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted, stop_after=2)
    recipes = [json.loads(manifest_bytes(wanted, "complete", 5))["keys"][k]["blend"] for k in range(3)]
    old = {
        "format": "latent-loom-sequence",
        "version": 1,
        "made_by": "Latent Loom 0.1.0",
        "state": "unfinished",
        "frames_written": None,
        "frames_total": 5,
        "model": {"name": "m", "path": "/models/m.pkl"},
        "plan": {
            "name": "walk",
            "sha256": "ab" * 32,
            "path": "w-cubic",
            "frames_per_step": 2,
            "loop": False,
            "z_dim": 512,
            "resolution": None,
            "noise": {"mode": "random", "seed": 3, "gain": 1.0, "layer_gains": []},
            "keys": recipes,
        },
        "recipes": [],
        "frames": [{"file": "walk_00000.png", "blend": [[0, 1.0]]}],
    }
    (wanted.folder / "walk.manifest.json").write_text(json.dumps(old))
    assert read_manifest(wanted.manifest_path).settings.makes_the_same_as(wanted)
    assert len(export(wanted).requests) == 3
    assert content(wanted.folder) == undisturbed


def test_a_job_that_is_stopped_while_it_looks_through_a_folder_changes_nothing_there(
    wanted: SequenceSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(wanted)
    before = content(wanted.folder)
    looked = threading.Event()
    stored = PictureFolder.is_stored

    def slow(sink: PictureFolder, index: int, plan: FramePlan) -> bool:
        looked.set()
        threading.Event().wait(0.005)
        return stored(sink, index, plan)

    monkeypatch.setattr(PictureFolder, "is_stored", slow)
    job = started(wanted)
    assert looked.wait(30)
    job.stop(cancelled=True)
    assert job.join(30)
    assert job.error is None
    assert content(wanted.folder) == before


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_a_sequence_of_any_format_goes_on_where_it_was_stopped_and_ends_with_the_same_bytes(
    wanted: SequenceSettings, tmp_path: Path, form: PictureFormat
) -> None:
    settings = replace(wanted, form=form)
    export(replace(settings, folder=tmp_path / "whole"))
    export(settings, stop_after=2)
    assert read_manifest(settings.manifest_path).settings.form.name == form.name
    assert len(export(settings).requests) == 3
    assert content(settings.folder) == content(tmp_path / "whole")
    assert sum(name.endswith(form.ending) for name in content(settings.folder)) == 5


def test_a_sequence_that_takes_the_place_of_another_leaves_none_of_its_files(wanted: SequenceSettings) -> None:
    export(wanted)
    export(replace(wanted, form=PictureFormat("jpeg", 80), overwrite=True))
    assert sorted(content(wanted.folder)) == ["walk.manifest.json", *(f"walk_{index:05d}.jpg" for index in range(5))]


@pytest.mark.parametrize(
    "change", [{"form": PictureFormat("jpeg", 40)}, {"form": PictureFormat("jpeg"), "size": (6, 6)}]
)
def test_frames_of_another_quality_or_size_are_written_again(wanted: SequenceSettings, change: dict[str, Any]) -> None:
    first = replace(wanted, form=PictureFormat("jpeg", 95))
    export(first)
    second = replace(first, **change)
    refuse(second, "a different sequence")
    assert len(export(replace(second, overwrite=True)).requests) == 5
    first.manifest_path.unlink()
    second.manifest_path.unlink(missing_ok=True)
    refuse(first, r"holds a walk_00000\.jpg that is not part of this sequence")


def test_how_well_files_are_compressed_does_not_make_another_sequence(wanted: SequenceSettings) -> None:
    export(wanted, stop_after=2)
    assert len(export(replace(wanted, form=PictureFormat("png", None, "small"))).requests) == 3


def test_a_manifest_without_formats_goes_on_as_png(wanted: SequenceSettings, undisturbed: Folder) -> None:
    export(wanted, stop_after=2)
    old = json.loads(wanted.manifest_path.read_text())
    del old["files"]
    wanted.manifest_path.write_text(json.dumps({**old, "version": 2}))
    assert read_manifest(wanted.manifest_path).settings == replace(
        wanted, model=ModelReference("", "m", wanted.model.model_id)
    )
    assert len(export(wanted).requests) == 3
    assert content(wanted.folder) == undisturbed
