"""Stored latents: imported, exported, kept, and those of another model."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from explorer_app.exporting.picture import write_picture
from explorer_app.messages import Level
from explorer_app.session.adapting import adapt
from explorer_app.session.edits import AddSources, GoToSeed
from explorer_app.session.history import KeptSession
from explorer_app.session.parameters import SetParameter
from explorer_app.session.resolve import resolve
from explorer_app.session.session import ModelReference, Position, Session, Source
from explorer_app.session.timeline.edits import SetTimeline, with_state
from explorer_app.session.tracks import Timeline
from gpu_backend import (
    Latent,
    Point,
    Recipe,
    RenderRequest,
    RequestError,
    Transform,
    read_latent,
    stored_latent,
    write_latent,
    write_latents,
)
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_engine import fake_frame


def rows_for(harness: Harness, seed: int = 0) -> np.ndarray:
    facts = harness.controller.engine.model.facts
    assert facts is not None
    return np.random.default_rng(seed).standard_normal((facts.num_ws, facts.w_dim)).astype(np.float32)


def test_an_imported_latent_and_a_restored_picture_are_shown_beside_keys_of_pictures(open_harness: Harness) -> None:
    harness, editing = open_harness, open_harness.controller.editing
    harness.controller.pictures.save(harness.folder / "start.png")
    harness.until(lambda: harness.has_said("Saved start.png."))
    first, second = (GoToSeed(seed).apply(editing.session) for seed in (5, 7))
    editing.edit(SetTimeline(with_state(with_state(Timeline(), first, Fraction(0)), second, Fraction(4))))
    assert editing.session.position == first.position
    stored = stored_latent(rows_for(harness))
    write_latent(harness.folder / "face.npz", stored)
    harness.controller.files.open(harness.folder / "face.npz")
    harness.until(lambda: harness.labels[-1] == "Import latent")
    assert editing.session.pinned_blend[0][0].latent.point == stored
    harness.controller.files.open(harness.folder / "start.png")
    harness.until(lambda: harness.labels[-1] != "Import latent")
    assert editing.session.position == Position()
    assert not editing.session.pinned_blend
    assert len(editing.session.timeline.tracks) == 1
    harness.controller.playback.seek(Fraction(4))
    assert editing.session.position == second.position
    harness.rest()


def test_a_file_of_torch_that_is_dropped_is_a_latent_or_a_model(open_harness: Harness) -> None:
    harness = open_harness
    stored = stored_latent(rows_for(harness))
    write_latent(harness.folder / "face.pt", stored)
    harness.controller.files.open(harness.folder / "face.pt")
    harness.until(lambda: harness.controller.editing.session.pinned_blend)
    assert harness.labels == ["Start", "Import latent"]
    (harness.folder / "dogs.pt").write_bytes(b"a model")
    harness.controller.files.open(harness.folder / "dogs.pt")
    harness.until(lambda: (facts := harness.controller.engine.model.facts) and facts.name == "dogs")
    harness.rest()


def test_an_imported_latent_is_shown_saved_and_taken_back(open_harness: Harness) -> None:
    harness, before = open_harness, open_harness.controller.editing.session
    stored = stored_latent(rows_for(harness))
    write_latent(harness.folder / "face.npz", stored)
    harness.controller.files.open(harness.folder / "face.npz")
    harness.until(lambda: harness.controller.editing.session.pinned_blend)
    harness.rest()
    assert harness.frames[-1].request.blend[0][0].latent.point == stored
    assert harness.labels == ["Start", "Import latent"]
    wanted = harness.controller.editing.session
    harness.controller.pictures.save(harness.folder / "face.png")
    harness.controller.files.save_session(harness.folder / "face.loom")
    harness.until(lambda: harness.has_said("Saved face.loom.") and harness.has_said("Saved face.png."))
    harness.controller.editing.undo()
    assert harness.controller.editing.session == before
    for name in ("face.png", "face.loom"):
        harness.controller.editing.edit(GoToSeed(3))
        harness.controller.files.open(harness.folder / name)
        harness.until(lambda: harness.controller.editing.session == wanted)
    again = harness.reopened()
    again.start()
    again.until(lambda: again.controller.editing.session == wanted)
    again.close()


def test_a_latent_of_another_model_is_refused_and_changes_nothing(open_harness: Harness) -> None:
    harness, before = open_harness, open_harness.controller.editing.session
    write_latent(harness.folder / "face.npy", stored_latent(np.zeros((3, 5), np.float32)))
    harness.controller.files.open(harness.folder / "face.npy")
    harness.until(lambda: harness.said(Level.ERROR))
    assert "face.npy has 3 rows of 5 numbers, but cats takes" in harness.said(Level.ERROR)[0]
    assert harness.controller.editing.session == before


def test_the_rows_of_the_picture_are_exported_once_it_is_there(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.files.export_latent(harness.folder / "face.npz")
    assert "once its picture is rendered" in harness.said(Level.WARNING)[0]  # the fake renderer tells no rows
    rows = rows_for(harness)
    harness.controller.engine.preview._frame = replace(harness.frames[-1], ws=rows)
    harness.controller.files.export_latent(harness.folder / "face.npz")
    harness.until(lambda: harness.has_said("Saved face.npz."))
    assert read_latent(harness.folder / "face.npz") == stored_latent(rows)


def test_latents_of_the_library_are_exported_with_their_names_and_imported_as_kept_ones(open_harness: Harness) -> None:
    harness = open_harness
    editing, files = harness.controller.editing, harness.controller.files
    sessions = [(f"seed\n{seed}", GoToSeed(seed).apply(editing.session)) for seed in (3, 8)]
    files.export_latents(sessions, harness.folder / "both.npz")
    harness.until(lambda: harness.has_said("Saved both.npz."))
    files.import_kept(harness.folder / "both.npz")
    harness.until(lambda: harness.has_said("2 latents from both.npz kept."))
    assert [entry.label for entry in editing.history.kept] == ["seed 3", "seed 8"]
    files.import_latent(harness.folder / "both.npz")
    harness.until(lambda: harness.said(Level.ERROR))
    assert "both.npz holds latents of 2 pictures, and one can be shown" in harness.said(Level.ERROR)[0]
    editing.go_to_kept(editing.history.kept[1].number)
    assert editing.session.pinned_blend[0][0].latent.point == stored_latent(np.full_like(rows_for(harness), 8.0))
    write_latents(harness.folder / "others.npz", [("a", stored_latent(np.zeros((3, 5), np.float32)))])
    files.import_kept(harness.folder / "others.npz")
    harness.until(lambda: any("another model" in words for words in harness.said(Level.ERROR)))
    assert len(editing.history.kept) == 2


def test_imported_latents_are_shown_as_the_file_has_them_without_the_directions_and_sources_of_the_session(
    open_harness: Harness,
) -> None:
    harness, editing, files = open_harness, open_harness.controller.editing, open_harness.controller.files
    stored = stored_latent(rows_for(harness))
    write_latent(harness.folder / "face.npz", stored)
    for edit in (AddSources((Source(Latent(), (1.0,) * stored.num_ws, "seed 0"),)), SetParameter("slider/sefa/1", 2.0)):
        editing.edit(edit)
    before = editing.session
    alone = resolve(Session(before.model, pinned_blend=((Recipe(Latent(stored), before.truncation), 1.0),))).blend
    files.import_kept(harness.folder / "face.npz")
    harness.until(lambda: editing.history.kept)
    files.import_latent(harness.folder / "face.npz")
    harness.until(lambda: editing.session.pinned_blend)
    for session in (editing.history.kept[0].session, editing.session):
        assert session.mix == (replace(before.mix[0], strengths=(0.0,) * stored.num_ws),), "it can be mixed in again"
        assert session.sliders == ()
        assert resolve(replace(session, mix=())).blend == alone
    editing.undo()
    assert editing.session == before


def test_latents_that_cannot_be_computed_are_reported_once(open_harness: Harness) -> None:
    harness = open_harness
    sessions = [(f"seed {seed}", GoToSeed(seed).apply(harness.controller.editing.session)) for seed in (3, 8, 9)]
    harness.engine.failing = RequestError("No.")
    harness.controller.files.export_latents(sessions, harness.folder / "all.npz")
    harness.until(lambda: harness.said(Level.WARNING))
    harness.rest()
    assert harness.said(Level.WARNING) == ["The latents could not be computed with this model."]
    assert not (harness.folder / "all.npz").exists()


def test_kept_pictures_are_mixed_in_and_put_on_the_timeline_as_one_step_each(open_harness: Harness) -> None:
    harness = open_harness
    editing = harness.controller.editing
    sessions = [GoToSeed(seed).apply(editing.session) for seed in (3, 8)]
    editing.kept.add(tuple(KeptSession(session, f"seed {session.position.x:.0f}") for session in sessions))
    numbers = [entry.number for entry in editing.history.kept]
    harness.controller.mixing.add_kept(numbers)
    assert [source.label for source in editing.session.mix] == ["seed 3", "seed 8"]
    assert all(strength == 0.0 for source in editing.session.mix for strength in source.strengths)
    harness.controller.playback.keep_entries(numbers, None)
    track = editing.session.timeline.track("state")
    assert track is not None
    assert [(key.time, key.value.position.x) for key in track.keys] == [(0, 3.0), (2, 8.0)]
    assert harness.labels[-2:] == ["Mix in several", "Put on the timeline"]
    editing.kept.tag(numbers, "snow, night")
    editing.kept.drop(numbers[:1])
    assert [(entry.label, entry.tags) for entry in editing.history.kept] == [("seed 8", ("snow", "night"))]


def test_kept_pictures_of_another_model_are_fitted_when_they_are_put_on_the_timeline(open_harness: Harness) -> None:
    editing = open_harness.controller.editing
    other = replace(
        editing.session,
        model=ModelReference("other.pkl", "other", "sha of other"),
        classes=((3, 1.0),),
        transform=Transform(0.1, 0.0, 30.0, 1.5),
    )
    editing.kept.add((KeptSession(other, "other"),))
    open_harness.controller.playback.keep_entries([editing.history.kept[0].number])
    shown = editing.session
    assert (shown.classes, shown.transform) == ((), Transform())
    assert editing.history.kept[0].session.transform == other.transform, "it is as it was with its own model"
    open_harness.rest()
    assert open_harness.said(Level.WARNING) == []


def test_a_latent_between_recipes_is_kept_as_rows(open_harness: Harness) -> None:
    harness = open_harness
    blend = ((Recipe(Latent()), 0.5), (Recipe(Latent(Point(((4, 1.0),)))), 0.5))
    request = RenderRequest(harness.controller.editing.session.model.model_id, blend)
    write_picture(harness.folder / "frame.png", fake_frame(request), model_name="cats")
    harness.controller.files.open_picture(harness.folder / "frame.png")
    harness.until(lambda: resolve(harness.controller.editing.session) == request)
    harness.rest()
    rows = rows_for(harness)
    harness.controller.engine.preview._frame = replace(harness.frames[-1], ws=rows)
    harness.controller.mixing.add_current()
    assert harness.controller.editing.session.mix[0].latent == Latent(stored_latent(rows))


def test_latents_between_recipes_are_computed_before_they_are_mixed_in(open_harness: Harness) -> None:
    harness, controller = open_harness, open_harness.controller
    editing = controller.editing
    blend = ((Recipe(Latent()), 0.5), (Recipe(Latent(Point(((4, 1.0),)))), 0.5))
    between, seed = replace(editing.session, pinned_blend=blend), GoToSeed(8).apply(editing.session)
    editing.kept.add((KeptSession(between, "between"), KeptSession(seed, "seed 8")))
    numbers = [entry.number for entry in editing.history.kept]
    rows = np.zeros_like(rows_for(harness))
    controller.mixing.add_kept(numbers)
    harness.until(lambda: editing.session.mix)
    assert [source.latent.point for source in editing.session.mix] == [stored_latent(rows), Point(((8, 1.0),))]
    assert [source.label for source in editing.session.mix] == ["between", "seed 8"]
    assert harness.labels[-1] == "Mix in several"
    controller.local_editing.blend_with_kept(numbers[0])
    harness.until(lambda: editing.session.blends)
    assert editing.session.blends[0].latent == Latent(stored_latent(rows))
    editing.restore(between, "Between", time_s=0.0)
    controller.mixing.add_current()  # before its picture
    harness.until(lambda: editing.session.mix)
    assert [source.latent for source in editing.session.mix] == [Latent(stored_latent(rows))]
    harness.rest()


def test_a_model_of_another_shape_lets_go_of_stored_latents_and_reports_it(open_harness: Harness) -> None:
    facts = open_harness.controller.engine.model.facts
    assert facts is not None
    stored = Latent(stored_latent(np.zeros((3, 5), np.float32)))
    session = Session(pinned_blend=((Recipe(stored), 1.0),), mix=(Source(stored, (0.0,) * facts.num_ws, "kept 1"),))
    fitted = adapt(session, facts)
    assert (fitted.session.pinned_blend, fitted.session.mix) == ((), ())
    assert "stored latents of another shape were removed" in fitted.changes


def test_a_latent_can_be_what_the_program_starts_with(open_harness: Harness) -> None:
    write_latent(open_harness.folder / "face.npz", stored_latent(rows_for(open_harness)))
    again = open_harness.reopened()
    again.start(document=again.folder / "face.npz")
    again.until(lambda: again.controller.editing.session.pinned_blend)
    assert again.said(Level.WARNING) == []
    assert again.labels[-1] == "Import latent"
    again.close()
