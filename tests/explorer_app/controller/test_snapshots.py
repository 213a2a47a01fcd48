"""A folder of training snapshots, over fake models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from explorer_app.controller.snapshots import snapshot_files
from explorer_app.session.edits import GoToSeed
from explorer_app.session.parameters import SetParameter
from explorer_app.session.patch_table import SetPatches
from explorer_app.session.patches import Patch
from tests.helpers.controller_harness import Harness


def snapshots_in(harness: Harness, *names: str) -> Path:
    folder = harness.folder / "run"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("a model")
    return folder


def is_open(harness: Harness, name: str) -> bool:
    facts = harness.controller.engine.model.facts
    return facts is not None and facts.name == name and harness.controller.engine.model.loading is None


def test_snapshots_come_in_the_order_of_their_numbers_without_the_files_beside_them(tmp_path: Path) -> None:
    for name in (
        "net-1000.pkl",
        "net-200.pkl",
        "net-200.directions.safetensors",
        "net-200.encoder.safetensors",
        "log.txt",
        "Net-30.PT",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.pkl").mkdir()
    assert [path.name for path in snapshot_files(tmp_path)] == ["Net-30.PT", "net-200.pkl", "net-1000.pkl"]


def test_going_through_a_folder_keeps_the_latent_and_is_one_step(open_harness: Harness) -> None:
    snapshots, editing = open_harness.controller.snapshots, open_harness.controller.editing
    editing.edit(GoToSeed(7))
    steps = len(open_harness.labels)
    recent = open_harness.settings.values.recent_models
    snapshots.open_folder(snapshots_in(open_harness, "net-1.pkl", "net-2.pkl", "net-3.pkl"))
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    snapshots.go_to(1)
    open_harness.until(lambda: is_open(open_harness, "net-2"))
    snapshots.go_to(2)
    open_harness.until(lambda: is_open(open_harness, "net-3"))
    assert snapshots.shown is not None
    assert snapshots.shown.name == "net-3.pkl"
    assert editing.session.position.x == 7.0
    assert open_harness.labels[steps:] == ["Open snapshot"]
    assert open_harness.settings.values.recent_models == recent


def test_where_a_snapshot_is_is_noted_so_that_the_next_start_finds_it(open_harness: Harness) -> None:
    snapshots, editing = open_harness.controller.snapshots, open_harness.controller.editing
    folder = snapshots_in(open_harness, "net-1.pkl", "net-2.pkl")
    snapshots.open_folder(folder)
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    reference = replace(editing.session.model, path="")  # as a session file holds it
    open_harness.until(lambda: open_harness.controller.engine.model.known_path(reference) == folder / "net-1.pkl")


def test_what_a_snapshot_lacks_comes_back_with_one_that_has_it(open_harness: Harness) -> None:
    for name, width in (("net-1", 16), ("net-2", 8), ("net-3", 16)):
        open_harness.library.options[name] = {"w_dim": width, "z_dim": width}
    snapshots, editing = open_harness.controller.snapshots, open_harness.controller.editing
    folder = snapshots_in(open_harness, "net-1.pkl", "net-2.pkl", "net-3.pkl")
    snapshots.open_folder(folder)
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    patch = Patch("osc/sun/0", "slider/axis/12")
    editing.edit(SetParameter("slider/axis/12", 2.0))
    editing.edit(SetPatches((patch,), "Learn"))
    before = editing.session
    snapshots.go_to(1)
    open_harness.until(lambda: is_open(open_harness, "net-2"))
    assert editing.session.sliders == ()
    assert editing.session.patches == ()
    snapshots.go_to(2)
    open_harness.until(lambda: is_open(open_harness, "net-3"))
    assert editing.session.sliders == before.sliders
    assert editing.session.patches == (patch,)
    snapshots.go_to(1)
    open_harness.until(lambda: is_open(open_harness, "net-2"))
    editing.edit(SetParameter("truncation.psi", 0.25))
    snapshots.go_to(0)
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    assert editing.session.truncation.psi == 0.25
    assert editing.session.patches == (patch,)


def test_the_newest_choice_wins_and_what_was_passed_over_is_not_read(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    folder = snapshots_in(open_harness, *(f"net-{number}.pkl" for number in range(1, 9)))
    open_harness.library.gate.shut()
    snapshots.open_folder(folder)
    open_harness.until(lambda: open_harness.controller.engine.model.loading)
    for index in range(1, 8):
        snapshots.go_to(index)
    open_harness.library.gate.open()
    open_harness.until(lambda: is_open(open_harness, "net-8"))
    assert [path.stem for path in open_harness.library.read if path.parent == folder] == ["net-1", "net-8"]


def test_a_broken_snapshot_is_said_once_and_the_others_can_be_reached(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    folder = snapshots_in(open_harness, "net-1.pkl", "net-2.pkl")
    (folder / "net-1.pkl").write_text("broken")
    snapshots.open_folder(folder)
    open_harness.until(lambda: "net-1.pkl is broken." in open_harness.said() and snapshots.is_broken)
    snapshots.go_to(1)
    assert not snapshots.is_broken
    open_harness.until(lambda: is_open(open_harness, "net-2"))
    assert open_harness.said().count("net-1.pkl is broken.") == 1


def test_a_snapshot_that_is_opened_by_other_means_is_the_chosen_one(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    folder = snapshots_in(open_harness, "net-1.pkl", "net-2.pkl", "net-3.pkl")
    snapshots.open_folder(folder)
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    open_harness.controller.files.open_model(folder / "net-3.pkl")
    open_harness.until(lambda: snapshots.index == 2)
    assert not snapshots.is_broken
    (folder / "net-2.pkl").write_text("broken")
    snapshots.go_to(1)
    open_harness.until(lambda: snapshots.is_broken)
    assert snapshots.index == 1


def test_an_empty_folder_is_said_and_leaving_counts_the_model_as_opened(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    empty = open_harness.folder / "empty"
    empty.mkdir()
    snapshots.open_folder(empty)
    open_harness.until(lambda: any("holds no models" in sentence for sentence in open_harness.said()))
    assert snapshots.files == ()
    snapshots.open_folder(snapshots_in(open_harness, "net-1.pkl"))
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    snapshots.leave()
    assert not open_harness.controller.engine.model.browsed
    open_harness.open("dogs")
    assert open_harness.labels[-1] == "Open dogs"


def test_another_model_that_is_opened_beside_the_folder_is_a_step_and_a_recent_model(open_harness: Harness) -> None:
    snapshots, editing = open_harness.controller.snapshots, open_harness.controller.editing
    snapshots.open_folder(snapshots_in(open_harness, "net-1.pkl", "net-2.pkl"))
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    open_harness.open("dogs")
    assert open_harness.labels[-2:] == ["Open snapshot", "Open dogs"]
    assert open_harness.settings.values.recent_models[0].name == "dogs"
    editing.undo()
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    assert open_harness.labels[-2:] == ["Open snapshot", "Open dogs"]


def test_the_chosen_snapshot_comes_back_after_another_model(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    snapshots.open_folder(snapshots_in(open_harness, "net-1.pkl", "net-2.pkl"))
    assert not snapshots.files or snapshots.is_reading
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    assert not snapshots.is_reading
    open_harness.open("dogs")
    open_harness.until(lambda: open_harness.controller.engine.model.loading is None)
    assert snapshots.shown is None
    assert not snapshots.is_reading
    assert snapshots.is_left
    told: list[bool] = []
    snapshots.changed.connect(lambda: told.append(snapshots.is_reading))
    snapshots.go_to(0)
    assert told[-1]
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    assert not snapshots.is_left


def test_a_snapshot_whose_reading_was_cancelled_can_be_read_again(open_harness: Harness) -> None:
    snapshots = open_harness.controller.snapshots
    snapshots.open_folder(snapshots_in(open_harness, "net-1.pkl", "net-2.pkl"))
    open_harness.until(lambda: is_open(open_harness, "net-1"))
    open_harness.library.gate.shut()
    snapshots.go_to(1)
    open_harness.controller.files.cancel_loading()
    assert snapshots.is_left
    open_harness.library.gate.open()
    snapshots.go_to(1)
    open_harness.until(lambda: is_open(open_harness, "net-2"))
