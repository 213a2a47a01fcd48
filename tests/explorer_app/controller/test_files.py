from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from explorer_app.controller.picture_saver import PictureJob
from explorer_app.exporting.picture import read_picture, write_picture
from explorer_app.exporting.sheet import SheetDocument, write_grid_sheet
from explorer_app.messages import Level
from explorer_app.session.edits import AddSources, GoToSeed, set_truncation
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session, Slider, Source
from explorer_app.session.storage import load_session_file, save_session
from explorer_app.session.timeline.edits import SetTimeline, with_key
from explorer_app.session.tracks import Timeline
from gpu_backend import (
    Latent,
    Point,
    Recipe,
    RenderRequest,
    RequestError,
    Truncation,
)
from tests.helpers.controller_harness import Harness
from tests.helpers.edits import whole_slider
from tests.helpers.fake_engine import fake_frame


def change(harness: Harness) -> None:
    """Set a little of everything."""
    harness.controller.editing.edit(GoToSeed(1207))
    harness.controller.editing.edit(set_truncation(Truncation(0.4, 6)))
    harness.controller.editing.edit(whole_slider(Slider("sefa/1", 2.5, label="sun")))
    harness.controller.editing.edit(AddSources((Source(Latent(), (0.25,) * 12, "seed 0"),)))
    harness.rest()


def test_a_saved_picture_brings_back_exactly_what_was_set(open_harness: Harness) -> None:
    harness = open_harness
    change(harness)
    wanted = harness.controller.editing.session
    path = harness.folder / "kept.png"
    harness.controller.pictures.save(path)
    harness.until(lambda: "Saved kept.png." in harness.said())
    harness.controller.editing.edit(GoToSeed(3))
    harness.controller.files.open(path)
    harness.until(lambda: harness.controller.editing.session == wanted)
    assert harness.labels[-1] == "Restore"
    harness.controller.editing.undo()
    assert harness.x == 3.0
    assert harness.said(Level.WARNING) == []


def test_a_picture_is_saved_in_full_even_while_drafts_are_shown(harness: Harness) -> None:
    harness.engine.full_ms = 100.0
    harness.start()
    harness.drag(0.5, release=False)
    harness.draft()
    harness.controller.pictures.save(harness.folder / "kept.png")
    harness.until(lambda: "Saved kept.png." in harness.said())
    assert read_picture(harness.folder / "kept.png").request.resolution is None


def test_a_picture_that_cannot_be_written_is_reported(open_harness: Harness) -> None:
    harness = open_harness
    (harness.folder / "file").write_text("in the way")
    harness.controller.pictures.save(harness.folder / "file" / "kept.png")
    harness.until(lambda: harness.said(Level.ERROR))
    assert "kept.png" in harness.said(Level.ERROR)[0]


def test_a_picture_that_another_model_overtook_is_named_with_what_to_do(open_harness: Harness) -> None:
    harness = open_harness
    request = resolve(harness.controller.editing.session)
    error = RequestError("This network has no classes.")
    for wanted in (request, replace(request, model_id="d" * 64)):
        job = PictureJob(wanted, lambda frame: None, "kept.png")
        harness.controller.pictures.take_ended(job, None)
        harness.controller.pictures.take_ended(job, error)
    assert harness.said(Level.WARNING)[0] == error.sentence
    assert harness.said(Level.WARNING)[1].startswith("kept.png was not saved, since another model was opened meanwhile")


def test_a_picture_of_a_known_model_opens_that_model(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.rest()
    change(harness)
    wanted = harness.controller.editing.session
    harness.controller.pictures.save(harness.folder / "dog.png")
    harness.until(lambda: harness.has_said("Saved"))
    harness.open("birds")
    harness.controller.files.open_picture(harness.folder / "dog.png")
    harness.until(
        lambda: harness.controller.engine.model.facts and harness.controller.engine.model.facts.name == "dogs"
    )
    harness.rest()
    assert harness.controller.editing.session == wanted
    assert harness.has_said("was made with dogs, which is being opened")
    assert harness.said(Level.WARNING) == []


def test_a_picture_of_an_unknown_model_is_shown_with_the_open_one_and_it_is_said(open_harness: Harness) -> None:
    harness = open_harness
    request = replace(resolve(harness.controller.editing.session), model_id="f" * 64)
    write_picture(harness.folder / "far.png", fake_frame(request), model_name="zebras")
    harness.controller.files.open_picture(harness.folder / "far.png")
    harness.until(lambda: harness.controller.editing.session.pinned_blend)
    harness.rest()
    assert "was made with zebras, which was not found; cats shows it differently" in harness.said(Level.WARNING)[0]
    assert harness.controller.editing.session.pinned_blend == request.blend


def test_a_frame_of_a_sequence_is_held_and_stays_editable(open_harness: Harness) -> None:
    harness = open_harness
    blend = ((Recipe(Latent(), Truncation(0.6)), 0.25), (Recipe(Latent(), Truncation(0.6, 3)), 0.75))
    request = RenderRequest(harness.controller.editing.session.model.model_id, blend)
    write_picture(harness.folder / "frame.png", fake_frame(request), model_name="cats")
    harness.controller.files.open_picture(harness.folder / "frame.png")
    harness.until(lambda: resolve(harness.controller.editing.session) == request)
    harness.controller.editing.edit(set_truncation(Truncation(0.1)))
    harness.rest()
    assert [recipe.truncation for recipe, _ in harness.engine.requests[-1].blend] == [Truncation(0.1)] * 2
    harness.controller.editing.edit(SetParameter("classes", ()))
    harness.drag(4.0)
    assert harness.controller.editing.session.pinned_blend == ()


def test_a_picture_of_a_sheet_is_opened_after_it_was_chosen(open_harness: Harness) -> None:
    harness = open_harness
    blend = ((Recipe(Latent(Point(((5, 1.0),)))), 1.0),)
    request = RenderRequest(harness.controller.editing.session.model.model_id, blend)
    write_grid_sheet(harness.folder / "grid.png", {(0, 1): fake_frame(request)}, side_px=16, model_name="cats")
    files, opened = harness.controller.files, list[SheetDocument]()
    files.sheet_opened.connect(lambda path, sheet: opened.append(sheet))
    files.open(harness.folder / "grid.png")
    harness.until(lambda: opened)
    (sheet,) = opened
    document = sheet.cells[1]
    assert document is not None
    files.take_picture(harness.folder / "grid.png", document)
    harness.until(lambda: resolve(harness.controller.editing.session) == request)


def test_a_picture_without_a_recipe_reports_it_and_changes_nothing(open_harness: Harness) -> None:
    harness, before = open_harness, open_harness.controller.editing.session
    (harness.folder / "photo.png").write_bytes(b"no picture")
    harness.controller.files.open(harness.folder / "photo.png")
    harness.until(lambda: len(harness.said(Level.ERROR)) == 1)
    assert harness.controller.editing.session == before


def test_a_session_goes_to_a_file_and_comes_back_with_what_was_kept(open_harness: Harness) -> None:
    harness = open_harness
    change(harness)
    wanted = harness.controller.editing.session
    current = harness.controller.editing.history.current
    assert current is not None
    harness.controller.editing.kept.star(current.number, True)
    harness.controller.files.save_session(harness.folder / "evening.loom")
    harness.until(lambda: "Saved evening.loom." in harness.said())
    harness.controller.editing.kept.star(current.number, False)
    harness.controller.editing.edit(GoToSeed(3))
    harness.controller.files.open(harness.folder / "evening.loom")
    harness.until(lambda: harness.controller.editing.session == wanted)
    assert [entry.session for entry in harness.controller.editing.history.kept] == [wanted]


def test_the_project_that_was_opened_or_saved_last_is_known_until_a_new_session(open_harness: Harness) -> None:
    files, folder = open_harness.controller.files, open_harness.folder
    assert files.project is None
    for name in ("a.loom", "b.loom"):
        files.save_session(folder / name)
        open_harness.until(partial(open_harness.has_said, f"Saved {name}."))
        assert files.project == folder / name
    (folder / "file").write_bytes(b"")
    files.save_session(folder / "file" / "c.loom")
    open_harness.until(lambda: open_harness.said(Level.ERROR))
    assert files.project == folder / "b.loom", "the other one was not written"
    files.open(folder / "a.loom")
    open_harness.until(lambda: files.project == folder / "a.loom")
    files.open(folder / "none.loom")
    open_harness.until(lambda: len(open_harness.said(Level.ERROR)) == 2)
    assert files.project == folder / "a.loom"
    files.new_session()
    assert files.project is None


def test_a_project_is_changed_by_steps_after_the_one_that_its_file_ends_with(open_harness: Harness) -> None:
    files, editing, path = (
        open_harness.controller.files,
        open_harness.controller.editing,
        open_harness.folder / "a.loom",
    )
    told: list[bool] = []
    files.project_changed.connect(lambda: told.append(files.is_changed))
    editing.edit(GoToSeed(3))
    assert not files.is_changed, "it is no project"
    files.save_session(path)
    open_harness.until(lambda: files.project == path)
    editing.edit(GoToSeed(4))
    assert files.is_changed
    editing.undo()
    assert not files.is_changed
    editing.redo()
    assert told == [False, True, False, True]
    files.new_session()
    assert not files.is_changed
    editing.undo()
    assert files.is_changed, "of the project that is back"
    for is_saved in (False, True):
        if is_saved:
            files.save_session(path)
            open_harness.until(lambda files=files: not files.is_changed)
        open_harness = open_harness.reopened()
        open_harness.start()
        files = open_harness.controller.files
        open_harness.until(lambda files=files, is_saved=is_saved: files._saved and files.is_changed is not is_saved)
    files.open(path)
    open_harness.until(lambda: open_harness.labels[-1] == "Restore")
    assert not files.is_changed
    open_harness.close()


def test_the_session_of_the_last_start_knows_its_project(open_harness: Harness) -> None:
    open_harness.controller.files.save_session(open_harness.folder / "häuser.loom")
    second = open_harness.reopened()  # before the message that it was saved
    second.start()
    assert second.controller.files.project == open_harness.folder / "häuser.loom"
    second.rest()
    second.controller.files.new_session()
    third = second.reopened()
    third.start()
    assert third.controller.files.project is None


def test_a_damaged_note_of_the_project_is_ignored(open_harness: Harness) -> None:
    folder = open_harness.controller._autosave.folder
    assert folder is not None
    for content in (b"", b"[]", b'{"path": 3}', b'{"path": "a.loom"}'):
        (folder / "project.json").write_bytes(content)
        open_harness.controller.files.restore_project()
        assert open_harness.controller.files.project is None


def test_a_project_opens_with_the_playhead_where_it_was_saved(open_harness: Harness) -> None:
    harness, path = open_harness, open_harness.folder / "piece.loom"
    playback, editing = harness.controller.playback, harness.controller.editing
    playback.keep_picture()
    playback.seek(Fraction(4))
    editing.edit(GoToSeed(5))
    playback.keep_picture()
    playback.seek(Fraction(7, 3))
    wanted = editing.session.pinned_blend
    harness.controller.files.save_session(path)
    harness.until(lambda: "Saved piece.loom." in harness.said())
    playback.seek(Fraction(1))
    harness.controller.files.open(path)
    harness.until(lambda: "Restore" in harness.labels)
    assert playback.time == Fraction(7, 3)
    assert editing.session.pinned_blend == wanted


def test_a_broken_session_file_reports_it_and_changes_nothing(open_harness: Harness) -> None:
    harness, before = open_harness, open_harness.controller.editing.session
    (harness.folder / "evening.loom").write_text("{}")
    harness.controller.files.open_session(harness.folder / "evening.loom")
    harness.until(lambda: harness.said(Level.ERROR))
    assert "evening.loom" in harness.said(Level.ERROR)[0]
    assert harness.controller.editing.session == before


def test_a_file_is_read_on_its_own_thread_and_the_newest_request_wins(open_harness: Harness) -> None:
    harness = open_harness
    before = harness.controller.editing.session
    for name, seed in (("first", 5), ("second", 6)):
        save_session(harness.folder / f"{name}.loom", GoToSeed(seed).apply(before))
    harness.controller.files.open(harness.folder / "first.loom")
    harness.controller.files.open(harness.folder / "second.loom")
    assert harness.controller.editing.session == before
    harness.until(lambda: harness.x == 6.0)
    assert harness.labels.count("Restore") == 1


def test_a_model_that_is_opened_meanwhile_wins_over_a_file_that_is_still_being_read(open_harness: Harness) -> None:
    harness = open_harness
    save_session(harness.folder / "evening.loom", GoToSeed(5).apply(harness.controller.editing.session))
    harness.controller.files.open(harness.folder / "evening.loom")
    harness.open("dogs")
    harness.rest()
    assert "Restore" not in harness.labels


def test_a_session_can_be_what_the_program_starts_with(open_harness: Harness) -> None:
    open_harness.open("dogs")
    change(open_harness)
    wanted = open_harness.controller.editing.session
    save_session(open_harness.folder / "evening.loom", wanted)
    open_harness.open("birds")
    again = open_harness.reopened()
    again.start(document=again.folder / "evening.loom")
    again.until(lambda: again.controller.editing.session == wanted)
    again.rest()
    again.close()


def test_a_new_session_is_one_step_with_nothing_set(open_harness: Harness) -> None:
    editing, playback = open_harness.controller.editing, open_harness.controller.playback
    change(open_harness)
    editing.edit(SetTimeline(with_key(Timeline(), "truncation.psi", Fraction(0), 0.25)))
    playback.seek(Fraction(3), True)
    before, steps = editing.session, len(open_harness.labels)
    open_harness.controller.files.new_session()
    session = editing.session
    assert (session.timeline, session.sliders, session.mix, session.patches) == (Timeline(), (), (), ())
    assert session.model == before.model
    assert playback.time == 0
    assert open_harness.labels[steps:] == ["New session"]
    open_harness.rest()
    editing.undo()
    assert editing.session == before


@pytest.mark.parametrize("is_file", [False, True], ids=["new", "opened"])
def test_undoing_another_project_brings_back_the_picture_beside_the_keys_and_the_playhead(
    open_harness: Harness, *, is_file: bool
) -> None:
    harness, path = open_harness, open_harness.folder / "evening.loom"
    editing, playback, files = harness.controller.editing, harness.controller.playback, harness.controller.files
    change(harness)
    files.save_session(path)
    harness.rest()
    editing.edit(SetTimeline(with_key(Timeline(), "truncation.psi", Fraction(0), 0.25)))
    playback.seek(Fraction(3))
    editing.edit(SetParameter("truncation.psi", 0.9))
    before, earlier = editing.session, harness.folder / "morning.loom"
    files.save_session(earlier)
    harness.until(lambda: files.project == earlier)
    if is_file:
        files.open_session(path)
    else:
        files.new_session()
    harness.until(lambda: playback.time == 0)
    other = editing.session
    for _ in range(2):
        while editing.session.timeline == other.timeline:
            editing.undo()
        assert (editing.session, playback.time) == (before, 3)
        assert files.project == earlier
        editing.redo()
        assert playback.time == 0
        assert files.project == (path if is_file else None)
        while editing.history.can_redo:
            editing.redo()
        assert editing.session == other


def test_a_click_on_a_far_step_follows_the_projects_between_as_undo_does(open_harness: Harness) -> None:
    harness, path = open_harness, open_harness.folder / "evening.loom"
    editing, playback, files = harness.controller.editing, harness.controller.playback, harness.controller.files
    files.save_session(path)
    harness.until(lambda: files.project == path)
    for seed in (5, 6):
        editing.edit(GoToSeed(seed))
    last_of_file = editing.history.position
    playback.seek(Fraction(3))
    files.new_session()
    editing.edit(GoToSeed(7))
    earlier = harness.folder / "morning.loom"
    files.save_session(earlier)
    harness.until(lambda: files.project == earlier)
    files.new_session()
    editing.edit(GoToSeed(8))
    newest = editing.history.position
    editing.go_to(last_of_file - 1)
    assert (harness.x, files.project, playback.time) == (5.0, path, 3)
    editing.go_to(newest)
    assert (harness.x, files.project, playback.time) == (8.0, None, 0)
    editing.go_to(last_of_file)
    assert (harness.x, files.project, playback.time) == (6.0, path, 3)
    editing.go_to(last_of_file + 2)
    assert (harness.x, files.project) == (7.0, None), "its later name is that of its file, the step is before it"


def test_a_new_session_that_changes_nothing_leaves_later_steps_alone(open_harness: Harness) -> None:
    editing, playback = open_harness.controller.editing, open_harness.controller.playback
    for _ in range(2):
        open_harness.controller.files.new_session()
    new = editing.session
    playback.seek(Fraction(2))
    editing.edit(SetParameter("truncation.psi", 0.9))
    editing.undo()
    assert (editing.session, playback.time) == (new, 2)


def test_a_session_waits_for_its_model_although_another_one_became_ready_meanwhile(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    change(harness)
    wanted = harness.controller.editing.session
    save_session(harness.folder / "evening.loom", wanted)
    harness.open("birds")
    model = harness.controller.engine.model
    late = model._opened
    assert late is not None
    harness.library.gate.shut()
    harness.controller.files.open(harness.folder / "evening.loom")
    harness.until(lambda: model.loading is not None)
    harness.controller._take(late)  # it was on its way when the other model was requested
    assert model.loading is not None
    assert "Restore" not in harness.labels
    harness.library.gate.open()
    harness.until(lambda: harness.controller.editing.session == wanted)
    assert not any("was not found" in sentence for sentence in harness.said())


def test_a_session_of_an_unknown_model_at_the_start_is_shown_with_the_bundled_one(harness: Harness) -> None:
    from explorer_app.session.session import ModelReference

    session = Session(model=ModelReference("/gone/zebras.pkl", "zebras", "f" * 64), truncation=Truncation(0.2))
    save_session(harness.folder / "far.loom", session)
    harness.start(document=harness.folder / "far.loom")
    harness.until(lambda: harness.controller.editing.session.truncation.psi == 0.2)
    assert harness.controller.engine.model.is_bundled
    assert "zebras, which was not found" in harness.said(Level.WARNING)[0]


def test_a_document_that_waits_since_no_model_is_open_says_so_and_is_shown_with_the_next_one(
    harness: Harness,
) -> None:
    from explorer_app.session.session import ModelReference

    harness.bundled = None  # as if the installation were damaged
    harness.path("zebras").write_text("broken")
    zebras = ModelReference(str(harness.path("zebras")), "zebras", "f" * 64)
    session = Session(model=zebras, truncation=Truncation(0.2))
    save_session(harness.folder / "far.loom", session)
    save_session(harness.folder / "new.loom", Session(truncation=Truncation(0.3)))
    harness.controller.start()
    harness.controller.files.open(harness.folder / "far.loom")
    harness.until(
        lambda: harness.has_said(
            "The session far.loom was made with zebras, which was not found; it is shown once you open its model"
        )
    )
    harness.controller.files.open(harness.folder / "new.loom")
    harness.until(lambda: harness.has_said("The session new.loom is shown once you open its model"))
    harness.controller.files.open_model(harness.path("zebras"))
    harness.until(lambda: harness.said(Level.ERROR)[1:])
    harness.open("dogs")
    harness.until(lambda: harness.controller.editing.session.truncation.psi == 0.3)


def test_an_error_about_a_file_is_out_of_date_once_the_file_is_opened_or_saved(open_harness: Harness) -> None:
    harness, files = open_harness, open_harness.controller.files
    target = harness.folder / "later" / "a.loom"
    target.parent.write_bytes(b"")

    def errors() -> list[Path | None]:
        return [item.about for item in harness.messages.messages if item.level is Level.ERROR]

    def is_settled(path: Path) -> bool:
        return any(item.about == path and item.level is Level.NOTE for item in harness.messages.messages)

    files.save_session(target)
    harness.until(lambda: errors() == [target])
    target.parent.unlink()
    target.parent.mkdir()
    files.save_session(target)
    harness.until(lambda: is_settled(target))
    model = harness.folder / "b.pkl"
    files.open(model)
    harness.until(lambda: errors() == [target, model])
    assert not is_settled(model)
    harness.path("dogs").rename(model)
    files.open(model)
    harness.until(lambda: is_settled(model))
    harness.rest()


def test_the_last_session_and_what_was_kept_come_back(open_harness: Harness) -> None:
    harness = open_harness
    change(harness)
    wanted = harness.controller.editing.session
    current = harness.controller.editing.history.current
    assert current is not None
    harness.controller.editing.kept.star(current.number, True)
    again = harness.reopened()
    again.start()
    again.until(lambda: again.controller.editing.history.kept)
    again.rest()
    assert again.controller.editing.session == wanted
    assert [entry.session for entry in again.controller.editing.history.kept] == [wanted]
    third = again.reopened()
    third.start()
    third.until(lambda: third.controller.editing.history.kept)
    third.close()


def test_a_session_is_saved_soon_after_a_change_and_not_only_at_the_end(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.editing.edit(GoToSeed(7))
    path = harness.state / "session.loom"
    harness.until(lambda: path.exists() and load_session_file(path).session.position.x == 7)


def test_a_broken_last_session_is_set_aside_and_never_stops_a_start(harness: Harness) -> None:
    harness.state.mkdir()
    for name in ("session.loom", "kept.loom"):
        (harness.state / name).write_bytes(b"\xff\x00broken")
    harness.start()
    harness.until(lambda: len(harness.said(Level.WARNING)) == 2)
    assert (harness.state / "session.loom.broken").read_bytes() == b"\xff\x00broken"
    assert (harness.state / "kept.loom.broken").exists()
    assert harness.controller.engine.model.facts is not None


def test_a_star_set_before_the_old_ones_are_read_loses_none_of_them(open_harness: Harness) -> None:
    harness = open_harness
    harness.drag(1.0)
    harness.controller.editing.kept.star(harness.controller.editing.history.entries[-1].number, True)
    again = harness.reopened()
    again.controller.start()
    again.controller.editing.kept.star(again.controller.editing.history.entries[0].number, True)
    again.controller.editing.edit(GoToSeed(8))
    again.controller.editing.kept.star(again.controller.editing.history.entries[-1].number, True)
    again.until(lambda: len(again.controller.editing.history.kept) == 2)
    again.close()
    assert len(load_session_file(Path(again.state / "kept.loom")).kept) == 2


def test_a_picture_of_a_model_that_is_opened_later_is_brought_back_then(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    change(harness)
    wanted = harness.controller.editing.session
    write_picture(harness.folder / "dog.png", fake_frame(resolve(wanted)), model_name="dogs", session=wanted)
    moved = harness.folder / "elsewhere"
    moved.mkdir()
    harness.open("birds")
    harness.path("dogs").rename(moved / "dogs.pkl")
    harness.controller.files.open_picture(harness.folder / "dog.png")
    harness.until(lambda: harness.has_said("birds shows it differently until you open dogs"))
    harness.controller.editing.edit(GoToSeed(3))
    harness.controller.files.open_model(moved / "dogs.pkl")
    harness.until(lambda: harness.controller.editing.session == wanted)


def test_the_model_of_a_picture_is_found_by_its_name_beside_it(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    wanted = harness.controller.editing.session
    friend = harness.folder / "from a friend"
    friend.mkdir()
    write_picture(friend / "dog.png", fake_frame(resolve(wanted)), model_name="dogs", session=wanted)
    harness.path("dogs").rename(friend / "dogs.pkl")
    harness.open("birds")
    harness.controller.files.open_picture(friend / "dog.png")
    harness.until(
        lambda: (
            harness.controller.engine.model.facts
            and harness.controller.engine.model.facts.path == str(friend / "dogs.pkl")
        )
    )
    harness.until(lambda: harness.controller.editing.session == wanted)
