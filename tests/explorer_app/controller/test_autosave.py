"""What survives a restart, a second window and a kill."""

from __future__ import annotations

import errno
import os
import time
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.controller import autosave
from explorer_app.messages import Level, MessageLog
from explorer_app.session import storage
from explorer_app.session.edits import GoToSeed
from explorer_app.session.history import KeptSession
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Session
from explorer_app.session.session_json import SessionFileError
from explorer_app.session.storage import load_session, load_session_file, save_session
from gpu_backend import Latent, Recipe, stored_latent
from tests.helpers.controller_harness import Harness


@pytest.fixture
def two(open_harness: Harness, qtbot: Any, messages: MessageLog) -> Iterator[tuple[Harness, Harness]]:
    """Two windows over the same files."""
    second = Harness(open_harness.folder, qtbot, messages)
    second.library = open_harness.library
    second.start()
    yield open_harness, second
    second.close()


def save(harness: Harness) -> None:
    """Save at once, as the timer does after a second."""
    harness.controller._autosave.flush()


def star(harness: Harness, seed: int) -> None:
    """Go to a seed and keep it."""
    harness.controller.editing.edit(GoToSeed(seed))
    current = harness.controller.editing.history.current
    assert current is not None
    harness.controller.editing.kept.star(current.number, True)
    save(harness)


def kept_seeds(harness: Harness) -> set[float]:
    return {entry.session.position.x for entry in harness.controller.editing.history.kept}


def saved_seeds(harness: Harness) -> set[float]:
    path = harness.state / "kept.loom"
    return {item.session.position.x for item in load_session_file(path).kept} if path.exists() else set()


def test_the_history_comes_back_after_a_restart_with_undo_and_redo(open_harness: Harness) -> None:
    for seed in (3, 5, 7):
        open_harness.controller.editing.edit(GoToSeed(seed))
    open_harness.controller.editing.undo()
    again = open_harness.reopened()
    again.start()
    again.until(lambda: len(again.labels) == 4)
    assert (again.x, again.controller.editing.history.position) == (5.0, 2)
    again.controller.editing.redo()
    assert again.x == 7.0
    for _ in range(3):
        again.controller.editing.undo()
    assert again.x == 0.0
    again.close()


def test_the_playhead_comes_back_after_a_restart_with_the_picture_there(open_harness: Harness) -> None:
    playback, editing = open_harness.controller.playback, open_harness.controller.editing
    playback.keep_picture()
    playback.seek(Fraction(23, 6))
    editing.edit(GoToSeed(7))
    playback.keep_picture()
    playback.seek(Fraction(7, 3))
    there = editing.session
    again = open_harness.reopened()
    again.start()
    assert again.controller.playback.time == Fraction(7, 3), "the same, not only a float near it"
    assert again.controller.editing.session.position == there.position
    assert again.controller.editing.session.pinned_blend == there.pinned_blend
    again.controller.playback.keep_picture()
    keys = again.controller.editing.session.timeline.tracks[0].keys
    assert [float(key.time) for key in keys] == pytest.approx([0.0, 7 / 3, 23 / 6])
    again.close()


def keyed_with_steps_by_hand(harness: Harness) -> list[float]:
    """Key the whole picture, set two values by hand at 2 s; return the noise gain of these two steps."""
    playback, editing = harness.controller.playback, harness.controller.editing
    playback.keep_picture()
    playback.seek(Fraction(2))
    for gain in (0.5, 0.25):
        editing.edit(GoToSeed(int(100 * gain)))
        editing.edit(SetParameter("noise.gain", gain))
    return [0.5, 0.25]


def test_undo_after_a_restart_shows_steps_as_they_were_beside_the_keys(open_harness: Harness) -> None:
    first, second = keyed_with_steps_by_hand(open_harness)
    again = open_harness.reopened()
    again.start()
    editing = again.controller.editing
    again.until(lambda: len(editing.history.entries) > 2)
    assert (again.x, editing.session.noise.gain) == (100 * second, second)
    editing.undo()
    assert (again.x, editing.session.noise.gain) == (100 * second, first)
    editing.undo()
    assert (again.x, editing.session.noise.gain) == (100 * first, first), "and not what the keys say"
    again.controller.playback.seek(Fraction(1))
    editing.undo()
    assert editing.session.noise.gain == 1.0, "what the keys say elsewhere"
    again.close()


def test_undo_in_an_opened_project_shows_its_steps_as_they_were_beside_the_keys(open_harness: Harness) -> None:
    harness, path = open_harness, open_harness.folder / "piece.loom"
    first, second = keyed_with_steps_by_hand(harness)
    harness.controller.files.save_session(path)
    harness.until(lambda: "Saved piece.loom." in harness.said())
    harness.controller.files.new_session()
    harness.controller.files.open(path)
    editing = harness.controller.editing
    harness.until(lambda: editing.session.noise.gain == second)
    editing.undo()
    assert (harness.x, editing.session.noise.gain) == (100 * second, first)


def test_a_kill_leaves_the_playhead_where_it_was_moved_to_last(open_harness: Harness) -> None:
    playback = open_harness.controller.playback
    path = open_harness.state / "session.loom"
    playback.keep_picture()
    save(open_harness)
    open_harness.until(path.exists)
    playback.seek(Fraction(2))
    save(open_harness)
    open_harness.until(lambda: load_session_file(path).time_s == 2.0)
    playback.step(3)
    save(open_harness)
    open_harness.until(lambda: load_session_file(path).time_s == 2.1)


def test_what_a_kill_cut_short_is_a_step_that_undo_and_redo_know(open_harness: Harness) -> None:
    open_harness.controller.playback.keep_picture()  # a key says every value of the picture
    open_harness.controller.editing.edit(GoToSeed(3))
    open_harness.drag(3.5, release=False)
    save(open_harness)
    paths = [open_harness.state / name for name in ("session.loom", "history.loom")]
    open_harness.until(lambda: all(path.exists() for path in paths) and load_session(paths[0]).position.x == 3.5)
    left = [path.read_bytes() for path in paths]
    count = len(load_session_file(paths[1]).steps)
    again = open_harness.reopened()
    for path, content in zip(paths, left, strict=True):
        path.write_bytes(content)
    again.start()
    editing = again.controller.editing
    again.until(lambda: len(editing.history.entries) == count + 1)
    editing.undo()
    assert again.x == 3.0
    editing.redo()
    assert again.x == 3.5
    again.close()


def test_steps_made_before_the_old_history_is_read_come_after_it(open_harness: Harness) -> None:
    open_harness.controller.editing.edit(GoToSeed(3))
    again = open_harness.reopened()
    again.controller.start()
    again.controller.editing.edit(GoToSeed(9))
    again.until(lambda: len(again.labels) == 3)
    assert [entry.session.position.x for entry in again.controller.editing.history.entries] == [0.0, 3.0, 9.0]
    again.close()


def test_a_kill_after_a_start_leaves_the_history_of_the_run_before(open_harness: Harness) -> None:
    open_harness.controller.editing.edit(GoToSeed(3))
    again = open_harness.reopened()
    again.controller.start()
    again.controller.editing.edit(GoToSeed(9))
    again.until(lambda: len(again.labels) == 3)
    save(again)
    path = again.state / "history.loom"
    again.until(lambda: [session.position.x for session, _ in load_session_file(path).steps] == [0.0, 3.0, 9.0])


def test_a_session_that_never_rests_is_saved_nevertheless(open_harness: Harness) -> None:
    harness, path = open_harness, open_harness.state / "session.loom"
    harness.controller._autosave._timer.setInterval(20)

    def is_saved() -> bool:
        harness.drag(harness.x + 0.01, release=False)
        return path.exists() and load_session(path).position.x > 0

    harness.until(is_saved)
    assert harness.controller.editing.history.entries[-1].label == "Start"


def test_two_windows_have_sessions_of_their_own_and_both_come_back(two: tuple[Harness, Harness]) -> None:
    first, second = two
    first.controller.editing.edit(GoToSeed(3))
    second.controller.editing.edit(GoToSeed(5))
    first.controller.close()
    second.controller.close()
    assert load_session(first.state / "session.loom").position.x == 3.0
    assert load_session(first.state / "windows" / "2" / "session.loom").position.x == 5.0


def test_stars_of_two_windows_are_merged_and_both_windows_show_them(two: tuple[Harness, Harness]) -> None:
    first, second = two
    for seed in (1, 2, 3):
        star(first, seed)
        star(second, seed + 10)
    everything = {1.0, 2.0, 3.0, 11.0, 12.0, 13.0}
    first.until(lambda: saved_seeds(first) == everything)
    star(first, 4)
    first.until(lambda: kept_seeds(first) == saved_seeds(first) == everything | {4.0})
    star(second, 14)
    second.until(lambda: kept_seeds(second) == everything | {4.0, 14.0})


def test_a_star_of_another_window_that_arrives_before_a_save_is_not_taken_for_a_removed_one(
    two: tuple[Harness, Harness],
) -> None:
    first, second = two
    star(second, 9)
    second.until(lambda: saved_seeds(second) == {9.0})
    star(first, 3)
    while saved_seeds(first) != {3.0, 9.0}:  # written, but the first window has not heard of seed 9 yet
        time.sleep(0.002)
    assert kept_seeds(first) == {3.0}
    first.controller.editing.edit(GoToSeed(5))
    current = first.controller.editing.history.current
    assert current is not None
    first.controller.editing.kept.star(current.number, True)
    first.until(lambda: 9.0 in kept_seeds(first))
    save(first)
    first.until(lambda: 5.0 in saved_seeds(first))
    assert saved_seeds(first) == {3.0, 5.0, 9.0}


def test_a_star_that_one_window_takes_away_may_be_given_again_in_the_other(two: tuple[Harness, Harness]) -> None:
    first, second = two
    star(first, 9)
    first.until(lambda: saved_seeds(first) == {9.0})
    (entry,) = first.controller.editing.history.kept
    first.controller.editing.kept.star(entry.number, False)
    save(first)
    first.until(lambda: saved_seeds(first) == set())
    star(second, 9)
    second.until(lambda: saved_seeds(second) == {9.0})
    star(first, 4)
    first.until(lambda: 4.0 in saved_seeds(first))
    assert saved_seeds(first) == {4.0, 9.0}


def test_a_star_that_one_window_takes_away_does_not_come_back_from_the_other(two: tuple[Harness, Harness]) -> None:
    first, second = two
    star(first, 1)
    first.until(lambda: saved_seeds(first) == {1.0})
    star(second, 2)
    second.until(lambda: kept_seeds(second) == {1.0, 2.0})
    first.controller.editing.kept.star(first.controller.editing.history.kept[0].number, False)
    save(first)
    first.until(lambda: saved_seeds(first) == {2.0})
    star(second, 3)
    second.until(lambda: kept_seeds(second) == {2.0, 3.0})
    assert saved_seeds(second) == {2.0, 3.0}


def test_a_state_folder_that_cannot_be_made_is_reported_and_stops_nothing(harness: Harness) -> None:
    harness.state.write_text("in the way")
    harness.start()
    assert "cannot be kept" in harness.said(Level.WARNING)[0]
    harness.drag(1.0)
    harness.rest()


def test_without_a_folder_nothing_is_lost_at_the_end_without_a_question(harness: Harness) -> None:
    harness.state.write_text("in the way")
    harness.start()
    editing = harness.controller.editing
    assert not editing.unsaved, "nothing was done yet"
    harness.drag(1.0)
    assert "cannot be kept" in editing.unsaved
    harness.controller.files.save_session(harness.folder / "evening.loom")
    harness.until(lambda: not editing.unsaved)
    star(harness, 3)
    assert "cannot be kept" in editing.unsaved, "this is in no file"
    editing.save_now()
    assert "cannot be kept" in editing.unsaved
    harness.state.unlink()
    editing.save_now()
    harness.until(lambda: not editing.unsaved)
    assert load_session(harness.state / "session.loom").position.x == 3.0
    harness.until(lambda: saved_seeds(harness) == {3.0})
    harness.until((harness.state / "history.loom").exists)
    assert len(load_session_file(harness.state / "history.loom").steps) == len(harness.labels)


def test_a_session_keeps_no_path_of_this_machine(open_harness: Harness) -> None:
    harness = open_harness
    star(harness, 3)
    harness.controller.files.save_session(harness.folder / "evening.loom")
    harness.controller.pictures.save(harness.folder / "evening.png")
    harness.until(lambda: "Saved evening.png." in harness.said() and "Saved evening.loom." in harness.said())
    harness.controller.close()
    assert str(harness.folder).encode() not in (harness.folder / "evening.png").read_bytes()
    for path in (harness.folder / "evening.loom", *harness.state.glob("*.loom")):
        with zipfile.ZipFile(path) as archive:
            assert str(harness.folder).encode() not in archive.read("session.json"), path


def test_a_project_brings_its_history_along(open_harness: Harness) -> None:
    harness = open_harness
    for seed in (3, 5):
        harness.controller.editing.edit(GoToSeed(seed))
    harness.controller.files.save_session(harness.folder / "evening.loom")
    harness.until(lambda: "Saved evening.loom." in harness.said())
    elsewhere = Path(harness.folder / "evening.loom")
    harness.controller.editing.edit(GoToSeed(9))
    harness.controller.files.open_session(elsewhere)
    harness.until(lambda: harness.x == 5.0)
    xs = [entry.session.position.x for entry in harness.controller.editing.history.entries]
    assert xs == [0.0, 3.0, 5.0, 9.0, 0.0, 3.0, 5.0]
    harness.controller.editing.undo()
    assert harness.x == 3.0


def test_names_and_order_of_what_was_kept_come_back(open_harness: Harness) -> None:
    harness = open_harness
    for seed in (4, 5, 6):
        star(harness, seed)
    first, _, last = (entry.number for entry in harness.controller.editing.history.kept)
    harness.controller.editing.kept.rename(first, "  Dawn\nagain\t")
    harness.controller.editing.kept.move(last, first)
    again = harness.reopened()
    again.start()
    again.until(lambda: again.controller.editing.history.kept)
    kept = again.controller.editing.history.kept
    assert [entry.label for entry in kept] == ["Seed 6", "Dawn again", "Seed 5"]
    assert all(entry.kept_s > 1e9 for entry in kept)
    again.controller.editing.kept.rename(kept[1].number, " ")
    assert again.controller.editing.history.kept[1].label == "Seed 4"
    again.close()


def test_what_is_kept_no_longer_can_be_kept_again_in_its_place(open_harness: Harness) -> None:
    harness, kept = open_harness, open_harness.controller.editing.kept
    for seed in (4, 5, 6, 7):
        star(harness, seed)
    history = harness.controller.editing.history
    first, second, _, last = (entry.number for entry in history.kept)
    kept.rename(second, "Dawn")
    kept.tag((second,), "snow")
    before = kept.sessions
    kept.drop((second, last))
    star(harness, 8)
    assert [item.label for item in kept.sessions] == ["Seed 4", "Seed 6", "Seed 8"]
    kept.drop((first,))
    said = [message for message in harness.messages.messages if "no longer" in message.sentence]
    assert [message.sentence for message in said] == ["2 pictures are kept no longer.", "“Seed 4” is kept no longer."]
    for message in reversed(said):
        assert message.action is not None
        assert message.action.is_needed()
        message.action.call()
        assert not message.action.is_needed()
    assert kept.sessions[:3] == before[:3]
    assert [item.label for item in kept.sessions] == ["Seed 4", "Dawn", "Seed 6", "Seed 8", "Seed 7"]
    kept.drop((10**6,))
    count = len(harness.messages.messages)
    for number in (first, second):  # the step of the first stays, and can have its star again
        kept.star(number, False)
    assert [message.sentence for message in harness.messages.messages[count:]] == ["“Dawn” is kept no longer."]
    again_action = harness.messages.messages[-1].action
    assert again_action is not None
    again_action.call()
    kept.star(first, True)
    again = harness.reopened()
    again.start()
    again.until(lambda: len(again.controller.editing.kept.sessions) == 5)
    assert [item[::3] for item in again.controller.editing.kept.sessions] == [item[::3] for item in kept.sessions]
    again.close()


class FullDisk:
    """Refuses to write sessions while it is full."""

    def __init__(self) -> None:
        self.is_full = True

    def save(self, *arguments: Any, **options: Any) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        save_session(*arguments, **options)


@pytest.fixture
def disk(open_harness: Harness, monkeypatch: pytest.MonkeyPatch) -> FullDisk:
    """A disk that is full from now on."""
    disk = FullDisk()
    save(open_harness)
    open_harness.controller._worker._executor.submit(lambda: None).result()  # after what it had to write
    monkeypatch.setattr(autosave, "save_session", disk.save)
    return disk


def test_what_a_full_disk_refused_is_written_once_there_is_room_without_another_change(
    open_harness: Harness, disk: FullDisk
) -> None:
    harness = open_harness
    star(harness, 3)
    star(harness, 5)
    harness.until(lambda: harness.said(Level.ERROR))
    assert harness.said(Level.ERROR) == [
        f"The session could not be saved in {harness.state} (No space left on device); "
        "Latent Loom tries again until it can."
    ], "once, not for each file and each attempt"
    assert harness.controller.editing.unsaved == harness.said(Level.ERROR)[0], "which quitting asks about"
    disk.is_full = False
    harness.controller._autosave._retry.setInterval(1)
    harness.controller._autosave._retry.start()
    harness.until(lambda: "The session is saved again." in harness.said())
    assert harness.controller.editing.unsaved == ""
    assert saved_seeds(harness) == {3.0, 5.0}
    assert load_session(harness.state / "session.loom").position.x == 5.0
    steps = load_session_file(harness.state / "history.loom").steps
    assert [session.position.x for session, _ in steps][-2:] == [3.0, 5.0]


def test_what_a_full_disk_refused_is_written_when_the_window_closes(open_harness: Harness, disk: FullDisk) -> None:
    harness = open_harness
    star(harness, 3)
    harness.until(lambda: harness.said(Level.ERROR))
    disk.is_full = False
    harness.close()
    assert saved_seeds(harness) == {3.0}
    assert load_session(harness.state / "session.loom").position.x == 3.0


def test_a_disk_that_is_still_full_when_the_window_closes_is_reported(open_harness: Harness, disk: FullDisk) -> None:
    harness = open_harness
    star(harness, 3)
    harness.until(lambda: harness.said(Level.ERROR))
    before = len(harness.said(Level.ERROR))
    harness.close()
    assert len(harness.said(Level.ERROR)) > before
    assert saved_seeds(harness) == set()


def test_a_star_whose_removal_could_not_be_written_does_not_come_back(open_harness: Harness, disk: FullDisk) -> None:
    harness = open_harness
    disk.is_full = False
    star(harness, 1)
    harness.until(lambda: saved_seeds(harness) == {1.0})
    disk.is_full = True
    harness.controller.editing.kept.star(harness.controller.editing.history.kept[0].number, False)
    save(harness)
    harness.until(lambda: harness.said(Level.ERROR))
    disk.is_full = False
    star(harness, 2)
    harness.until(lambda: saved_seeds(harness) == {2.0})
    assert kept_seeds(harness) == {2.0}


def test_a_disk_that_does_not_answer_costs_nothing_that_was_kept(
    open_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = open_harness
    star(harness, 1)
    harness.until(lambda: saved_seeds(harness) == {1.0})
    fails = [True]

    def read(path: Path) -> Any:
        if fails:
            raise SessionFileError("The session cannot be read.") from OSError(errno.EIO, os.strerror(errno.EIO))
        return load_session_file(path)

    monkeypatch.setattr(autosave, "load_session_file", read)
    star(harness, 2)
    harness.until(lambda: harness.said(Level.ERROR))
    assert saved_seeds(harness) == {1.0}
    fails.clear()
    harness.close()
    assert saved_seeds(harness) == {1.0, 2.0}
    assert not list(harness.state.glob("*.broken"))


def with_rows(session: Session, value: float) -> Session:
    """A session with stored rows of 64 bytes."""
    recipe = Recipe(Latent(stored_latent(np.full((2, 8), value, np.float32))))
    return replace(session, pinned_blend=((recipe, 1.0),))


def test_what_the_file_of_kept_sessions_has_no_room_for_is_refused_when_it_is_to_be_kept(
    open_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, editing = open_harness, open_harness.controller.editing
    monkeypatch.setattr(storage, "MAX_STORED_NBYTES", 2 * 64)
    sessions = [with_rows(editing.session, value) for value in (1.0, 2.0, 3.0)]
    assert editing.kept.add(tuple(KeptSession(session, "rows") for session in sessions)) == 1
    assert "no room for 1 more" in harness.said(Level.WARNING)[-1]
    editing.edit(SetParameter("pinned_blend", sessions[2].pinned_blend))
    current = editing.history.current
    assert current is not None
    editing.kept.star(current.number, True)
    assert "no room for another star" in harness.said(Level.WARNING)[-1]
    assert [entry.session.pinned_blend for entry in editing.history.kept] == [
        session.pinned_blend for session in sessions[:2]
    ]
    editing.kept.star(editing.history.kept[0].number, False)
    editing.kept.star(current.number, True)
    harness.close()
    saved = {item.session.pinned_blend for item in load_session_file(harness.state / "kept.loom").kept}
    assert saved == {session.pinned_blend for session in sessions[1:]}
