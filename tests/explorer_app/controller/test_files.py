from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from explorer_app.controller.adapting import adapt
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.picture import read_picture, write_picture
from explorer_app.exporting.sequence import SequenceSettings
from explorer_app.messages import Level
from explorer_app.session.edits import AddSource, GoToSeed, SetParameter, SetSlider, set_truncation
from explorer_app.session.resolve import resolve
from explorer_app.session.session import Session, Slider, Source
from explorer_app.session.storage import load_session_file, save_session
from gpu_backend import Latent, Point, Recipe, RenderRequest, Truncation, read_latent, stored_latent, write_latent
from tests.helpers.desk import Desk
from tests.helpers.fake_engine import fake_frame


def change(desk: Desk) -> None:
    """Set a little of everything."""
    desk.controller.edit(GoToSeed(1207))
    desk.controller.edit(set_truncation(Truncation(0.4, 6)))
    desk.controller.edit(SetSlider(Slider("sefa/1", 2.5, label="sun")))
    desk.controller.edit(AddSource(Source(Latent(), (0.25,) * 12, "seed 0")))
    desk.rest()


def sequence(desk: Desk, frames: int = 3, name: str = "walk", **options: object) -> SequenceSettings:
    moved = Keyframe(((Recipe(Latent()), 1.0),))
    return SequenceSettings(
        (Keyframe.of(resolve(desk.controller.session)), moved),
        desk.folder / "out",
        name,
        desk.controller.session.model,
        kind="w-linear",
        frames_per_step=frames - 1,
        z_dim=8,
        **options,
    )


def said(desk: Desk, part: str) -> bool:
    return any(part in sentence for sentence in desk.said())


def test_a_saved_picture_brings_back_exactly_what_was_set(open_desk: Desk):
    desk = open_desk
    change(desk)
    wanted = desk.controller.session
    path = desk.folder / "kept.png"
    desk.controller.save_picture(path)
    desk.until(lambda: "Saved kept.png." in desk.said())
    desk.controller.edit(GoToSeed(3))
    desk.controller.open_file(path)
    desk.until(lambda: desk.controller.session == wanted)
    assert desk.labels[-1] == "Restore"
    desk.controller.undo()
    assert desk.x == 3.0
    assert desk.said(Level.WARNING) == []


def test_a_picture_is_saved_in_full_even_while_drafts_are_shown(desk: Desk):
    desk.engine.full_ms = 100.0
    desk.start()
    desk.walk(0.5, release=False)
    desk.until(lambda: desk.frames[-1].is_draft)
    desk.controller.save_picture(desk.folder / "kept.png")
    desk.until(lambda: "Saved kept.png." in desk.said())
    assert read_picture(desk.folder / "kept.png").request.resolution is None


def test_a_picture_that_cannot_be_written_is_told(open_desk: Desk):
    desk = open_desk
    (desk.folder / "file").write_text("in the way")
    desk.controller.save_picture(desk.folder / "file" / "kept.png")
    desk.until(lambda: desk.said(Level.ERROR))
    assert "kept.png" in desk.said(Level.ERROR)[0]


def test_a_picture_of_a_known_model_opens_that_model(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.rest()
    change(desk)
    wanted = desk.controller.session
    desk.controller.save_picture(desk.folder / "dog.png")
    desk.until(lambda: said(desk, "Saved"))
    desk.open("birds")
    desk.controller.open_picture(desk.folder / "dog.png")
    desk.until(lambda: desk.controller.facts and desk.controller.facts.name == "dogs")
    desk.rest()
    assert desk.controller.session == wanted
    assert said(desk, "was made with dogs, which is being opened")
    assert desk.said(Level.WARNING) == []


def test_a_picture_of_an_unknown_model_is_shown_with_the_open_one_and_it_is_said(open_desk: Desk):
    desk = open_desk
    request = replace(resolve(desk.controller.session), model_id="f" * 64)
    write_picture(desk.folder / "far.png", fake_frame(request), model_name="zebras")
    desk.controller.open_picture(desk.folder / "far.png")
    desk.until(lambda: desk.controller.session.held)
    desk.rest()
    assert "was made with zebras, which is not at hand; cats shows it differently" in desk.said(Level.WARNING)[0]
    assert desk.controller.session.held == request.blend


def test_a_frame_of_a_sequence_is_held_and_stays_editable(open_desk: Desk):
    desk = open_desk
    blend = ((Recipe(Latent(), Truncation(0.6)), 0.25), (Recipe(Latent(), Truncation(0.6, 3)), 0.75))
    request = RenderRequest(desk.controller.session.model.model_id, blend)
    write_picture(desk.folder / "frame.png", fake_frame(request), model_name="cats")
    desk.controller.open_picture(desk.folder / "frame.png")
    desk.until(lambda: resolve(desk.controller.session) == request)
    desk.controller.edit(set_truncation(Truncation(0.1)))
    desk.rest()
    assert [recipe.truncation for recipe, _ in desk.engine.requests[-1].blend] == [Truncation(0.1)] * 2
    desk.controller.keep_current()
    assert desk.controller.session.mix[0].latent == Latent()
    desk.controller.edit(SetParameter("classes", ()))
    desk.walk(4.0)
    assert desk.controller.session.held == ()


def test_a_picture_without_a_recipe_says_so_and_changes_nothing(open_desk: Desk):
    desk, before = open_desk, open_desk.controller.session
    (desk.folder / "photo.png").write_bytes(b"no picture")
    desk.controller.open_file(desk.folder / "photo.png")
    desk.until(lambda: len(desk.said(Level.ERROR)) == 1)
    assert desk.controller.session == before


def test_a_session_goes_to_a_file_and_comes_back_with_what_was_kept(open_desk: Desk):
    desk = open_desk
    change(desk)
    wanted = desk.controller.session
    current = desk.controller.history.current
    assert current is not None
    desk.controller.set_starred(current.number, True)
    desk.controller.save_session(desk.folder / "evening.loom")
    desk.until(lambda: "Saved evening.loom." in desk.said())
    desk.controller.set_starred(current.number, False)
    desk.controller.edit(GoToSeed(3))
    desk.controller.open_file(desk.folder / "evening.loom")
    desk.until(lambda: desk.controller.session == wanted)
    assert [entry.session for entry in desk.controller.history.kept] == [wanted]


def test_a_broken_session_file_says_so_and_changes_nothing(open_desk: Desk):
    desk, before = open_desk, open_desk.controller.session
    (desk.folder / "evening.loom").write_text("{}")
    desk.controller.open_session(desk.folder / "evening.loom")
    desk.until(lambda: desk.said(Level.ERROR))
    assert "evening.loom" in desk.said(Level.ERROR)[0]
    assert desk.controller.session == before


def test_a_file_is_read_beside_the_window_and_whoever_asks_last_is_served(open_desk: Desk):
    desk = open_desk
    before = desk.controller.session
    for name, seed in (("first", 5), ("second", 6)):
        save_session(desk.folder / f"{name}.loom", GoToSeed(seed).apply(before))
    desk.controller.open_file(desk.folder / "first.loom")
    desk.controller.open_file(desk.folder / "second.loom")
    assert desk.controller.session == before
    desk.until(lambda: desk.x == 6.0)
    assert desk.labels.count("Restore") == 1


def test_a_model_that_is_opened_meanwhile_wins_over_a_file_that_is_still_being_read(open_desk: Desk):
    desk = open_desk
    save_session(desk.folder / "evening.loom", GoToSeed(5).apply(desk.controller.session))
    desk.controller.open_file(desk.folder / "evening.loom")
    desk.open("dogs")
    desk.rest()
    assert "Restore" not in desk.labels


def test_a_session_can_be_what_the_program_starts_with(open_desk: Desk):
    open_desk.open("dogs")
    change(open_desk)
    wanted = open_desk.controller.session
    save_session(open_desk.folder / "evening.loom", wanted)
    open_desk.open("birds")
    again = open_desk.reopened()
    again.start(document=again.folder / "evening.loom")
    again.until(lambda: again.controller.session == wanted)
    again.rest()
    again.close()


def test_a_session_of_an_unknown_model_at_the_start_is_shown_with_the_bundled_one(desk: Desk):
    from explorer_app.session.session import ModelReference, Session

    session = Session(model=ModelReference("/gone/zebras.pkl", "zebras", "f" * 64), truncation=Truncation(0.2))
    save_session(desk.folder / "far.loom", session)
    desk.start(document=desk.folder / "far.loom")
    assert desk.controller.is_bundled
    assert desk.controller.session.truncation.psi == 0.2
    assert "zebras, which is not at hand" in desk.said(Level.WARNING)[0]


def test_an_export_writes_every_frame_while_the_preview_goes_on(open_desk: Desk):
    desk = open_desk
    desk.controller.start_export(sequence(desk, 6))
    assert desk.controller.export is not None
    assert (desk.controller.export.name, desk.controller.export.total) == ("walk", 6)
    desk.walk(2.5)
    desk.rest()
    desk.until(lambda: desk.controller.export is None)
    assert said(desk, "Exported 6 frames")
    assert len(list((desk.folder / "out").glob("walk_*.png"))) == 6
    assert json.loads((desk.folder / "out" / "walk.manifest.json").read_text())["state"] == "complete"


def test_a_cancelled_export_says_how_far_it_came_and_goes_on_another_time(open_desk: Desk):
    desk = open_desk
    settings = sequence(desk, 5)
    desk.engine.gate.shut()
    desk.controller.start_export(settings)
    desk.engine.gate.wait_for_knock()
    desk.engine.gate.let_through()
    desk.until((desk.folder / "out" / "walk_00000.png").exists)
    desk.engine.gate.wait_for_knock()
    desk.controller.cancel_export()
    assert desk.controller.export is not None
    assert desk.controller.export.is_stopping
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.export is None)
    assert said(desk, "The export was stopped after 1 of 5 frames")
    rendered = len(desk.engine.requests)
    desk.controller.start_export(settings)
    desk.until(lambda: said(desk, "Exported 5 frames"))
    assert len(desk.engine.requests) - rendered == 4


def test_a_second_export_has_to_wait_and_so_has_another_model(open_desk: Desk):
    desk = open_desk
    desk.engine.gate.shut()
    desk.controller.start_export(sequence(desk))
    desk.controller.start_export(sequence(desk, name="other"))
    desk.controller.open_model(desk.path("dogs"))
    assert desk.controller.loading is None
    assert len(desk.said(Level.WARNING)) == 2
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.export is None)


def test_the_model_of_something_kept_has_to_wait_for_an_export(open_desk: Desk):
    desk = open_desk
    number = desk.controller.history.entries[0].number
    desk.controller.set_starred(number, True)
    desk.open("dogs")
    desk.walk(2.0)
    desk.engine.gate.shut()
    desk.controller.start_export(sequence(desk))
    desk.controller.go_to_kept(number)
    assert desk.controller.loading is None
    assert said(desk, "“Kept” was made with cats, which has to wait for the export; dogs shows it.")
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.export is None)


def test_an_export_that_cannot_be_written_stops_with_its_sentence(open_desk: Desk):
    desk = open_desk
    (desk.folder / "out").write_text("in the way")
    desk.controller.start_export(sequence(desk))
    desk.until(lambda: desk.controller.export is None)
    assert len(desk.said(Level.ERROR)) == 1
    desk.walk(1.0)
    desk.rest()


def test_an_export_for_a_model_that_is_not_open_is_refused(open_desk: Desk):
    desk = open_desk
    settings = sequence(desk)
    desk.open("dogs")
    desk.controller.start_export(settings)
    assert desk.controller.export is None
    assert "open it first" in desk.said(Level.WARNING)[0]


def test_a_picture_saved_during_an_export_passes_the_frames_that_wait(open_desk: Desk):
    desk = open_desk
    desk.engine.gate.shut()
    desk.controller.start_export(sequence(desk, 5))
    desk.engine.gate.wait_for_knock()
    desk.walk(9.0)
    desk.controller.save_picture(desk.folder / "kept.png")
    desk.engine.gate.let_through(3)
    desk.until(lambda: "Saved kept.png." in desk.said())
    assert desk.controller.export is not None
    desk.engine.gate.open()
    desk.until(lambda: desk.controller.export is None)


def test_a_picture_saved_just_before_closing_is_there(open_desk: Desk):
    desk = open_desk
    desk.engine.gate.shut()
    desk.walk(1.0)
    desk.engine.gate.wait_for_knock()
    desk.walk(2.0)
    desk.controller.save_picture(desk.folder / "kept.png")
    desk.engine.gate.open()
    desk.controller.close()
    saved = read_picture(desk.folder / "kept.png").session
    assert saved is not None
    assert saved.position.x == 2.0


def test_closing_during_an_export_leaves_no_half_file(open_desk: Desk):
    desk = open_desk
    desk.engine.gate.shut()
    desk.controller.start_export(sequence(desk, 50))
    desk.engine.gate.wait_for_knock()
    desk.engine.gate.let_through(2)
    desk.engine.gate.open()
    desk.controller.close()
    files = sorted((desk.folder / "out").iterdir())
    assert not [file for file in files if file.name.startswith(".")]
    for file in files:
        if file.suffix == ".png":
            read_picture(file)


def test_the_last_session_and_what_was_kept_come_back(open_desk: Desk):
    desk = open_desk
    change(desk)
    wanted = desk.controller.session
    current = desk.controller.history.current
    assert current is not None
    desk.controller.set_starred(current.number, True)
    again = desk.reopened()
    again.start()
    again.until(lambda: again.controller.history.kept)
    again.rest()
    assert again.controller.session == wanted
    assert [entry.session for entry in again.controller.history.kept] == [wanted]
    third = again.reopened()
    third.start()
    third.until(lambda: third.controller.history.kept)
    third.close()


def test_a_session_is_saved_soon_after_a_change_and_not_only_at_the_end(open_desk: Desk):
    desk = open_desk
    desk.controller.edit(GoToSeed(7))
    path = desk.state / "session.loom"
    desk.until(lambda: path.exists() and load_session_file(path).session.position.x == 7)


def test_a_broken_last_session_is_set_aside_and_never_stops_a_start(desk: Desk):
    desk.state.mkdir()
    for name in ("session.loom", "kept.loom"):
        (desk.state / name).write_bytes(b"\xff\x00broken")
    desk.start()
    desk.until(lambda: len(desk.said(Level.WARNING)) == 2)
    assert (desk.state / "session.loom.broken").read_bytes() == b"\xff\x00broken"
    assert (desk.state / "kept.loom.broken").exists()
    assert desk.controller.facts is not None


def test_a_star_set_before_the_old_ones_are_read_loses_none_of_them(open_desk: Desk):
    desk = open_desk
    desk.walk(1.0)
    desk.controller.set_starred(desk.controller.history.entries[-1].number, True)
    again = desk.reopened()
    again.controller.start()
    again.controller.set_starred(again.controller.history.entries[0].number, True)
    again.controller.edit(GoToSeed(8))
    again.controller.set_starred(again.controller.history.entries[-1].number, True)
    again.until(lambda: len(again.controller.history.kept) == 2)
    again.close()
    assert len(load_session_file(Path(again.state / "kept.loom")).kept) == 2


def rows_for(desk: Desk, seed: int = 0) -> np.ndarray:
    facts = desk.controller.facts
    assert facts is not None
    return np.random.default_rng(seed).standard_normal((facts.num_ws, facts.w_dim)).astype(np.float32)


def test_an_imported_latent_is_shown_saved_and_taken_back(open_desk: Desk):
    desk, before = open_desk, open_desk.controller.session
    stored = stored_latent(rows_for(desk))
    write_latent(desk.folder / "face.npz", stored)
    desk.controller.open_file(desk.folder / "face.npz")
    desk.until(lambda: desk.controller.session.held)
    desk.rest()
    assert desk.frames[-1].request.blend[0][0].latent.point == stored
    assert desk.labels == ["Start", "Import latent"]
    wanted = desk.controller.session
    desk.controller.save_picture(desk.folder / "face.png")
    desk.controller.save_session(desk.folder / "face.loom")
    desk.until(lambda: said(desk, "Saved face.loom.") and said(desk, "Saved face.png."))
    desk.controller.undo()
    assert desk.controller.session == before
    for name in ("face.png", "face.loom"):
        desk.controller.edit(GoToSeed(3))
        desk.controller.open_file(desk.folder / name)
        desk.until(lambda: desk.controller.session == wanted)
    again = desk.reopened()
    again.start()
    again.until(lambda: again.controller.session == wanted)
    again.close()


def test_a_latent_of_another_model_is_refused_and_changes_nothing(open_desk: Desk):
    desk, before = open_desk, open_desk.controller.session
    write_latent(desk.folder / "face.npy", stored_latent(np.zeros((3, 5), np.float32)))
    desk.controller.open_file(desk.folder / "face.npy")
    desk.until(lambda: desk.said(Level.ERROR))
    assert "face.npy has 3 rows of 5 numbers, but cats takes" in desk.said(Level.ERROR)[0]
    assert desk.controller.session == before


def test_the_rows_of_the_picture_are_exported_once_it_is_there(open_desk: Desk):
    desk = open_desk
    desk.controller.export_latent(desk.folder / "face.npz")
    assert "once its picture is there" in desk.said(Level.WARNING)[0]  # the fake renderer tells no rows
    rows = rows_for(desk)
    desk.controller._preview._frame = replace(desk.frames[-1], ws=rows)
    desk.controller.export_latent(desk.folder / "face.npz")
    desk.until(lambda: said(desk, "Saved face.npz."))
    assert read_latent(desk.folder / "face.npz") == stored_latent(rows)


def test_what_lies_between_recipes_is_kept_by_its_rows(open_desk: Desk):
    desk = open_desk
    blend = ((Recipe(Latent()), 0.5), (Recipe(Latent(Point(((4, 1.0),)))), 0.5))
    request = RenderRequest(desk.controller.session.model.model_id, blend)
    write_picture(desk.folder / "frame.png", fake_frame(request), model_name="cats")
    desk.controller.open_picture(desk.folder / "frame.png")
    desk.until(lambda: resolve(desk.controller.session) == request)
    desk.rest()
    rows = rows_for(desk)
    desk.controller._preview._frame = replace(desk.frames[-1], ws=rows)
    desk.controller.keep_current()
    assert desk.controller.session.mix[0].latent == Latent(stored_latent(rows))


def test_a_model_of_another_shape_lets_go_of_stored_latents_and_says_so(open_desk: Desk):
    facts = open_desk.controller.facts
    assert facts is not None
    stored = Latent(stored_latent(np.zeros((3, 5), np.float32)))
    session = Session(held=((Recipe(stored), 1.0),), mix=(Source(stored, (0.0,) * facts.num_ws, "kept 1"),))
    fitted = adapt(session, facts)
    assert (fitted.session.held, fitted.session.mix) == ((), ())
    assert "stored latents of another shape were taken away" in fitted.changes


def test_a_picture_of_a_model_that_is_opened_later_is_brought_back_then(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    change(desk)
    wanted = desk.controller.session
    write_picture(desk.folder / "dog.png", fake_frame(resolve(wanted)), model_name="dogs", session=wanted)
    moved = desk.folder / "elsewhere"
    moved.mkdir()
    desk.open("birds")
    desk.path("dogs").rename(moved / "dogs.pkl")
    desk.controller.open_picture(desk.folder / "dog.png")
    desk.until(lambda: said(desk, "birds shows it differently until you open dogs"))
    desk.controller.edit(GoToSeed(3))
    desk.controller.open_model(moved / "dogs.pkl")
    desk.until(lambda: desk.controller.session == wanted)


def test_the_model_of_a_picture_is_found_by_its_name_beside_it(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    wanted = desk.controller.session
    friend = desk.folder / "from a friend"
    friend.mkdir()
    write_picture(friend / "dog.png", fake_frame(resolve(wanted)), model_name="dogs", session=wanted)
    desk.path("dogs").rename(friend / "dogs.pkl")
    desk.open("birds")
    desk.controller.open_picture(friend / "dog.png")
    desk.until(lambda: desk.controller.facts and desk.controller.facts.path == str(friend / "dogs.pkl"))
    desk.until(lambda: desk.controller.session == wanted)


def test_a_latent_can_be_what_the_program_starts_with(open_desk: Desk):
    write_latent(open_desk.folder / "face.npz", stored_latent(rows_for(open_desk)))
    again = open_desk.reopened()
    again.start(document=again.folder / "face.npz")
    again.until(lambda: again.controller.session.held)
    assert again.said(Level.WARNING) == []
    assert again.labels[-1] == "Import latent"
    again.close()
