from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from explorer_app.messages import Level
from explorer_app.rendering.device_choice import DeviceChoice
from explorer_app.rendering.render_events import ModelRefused
from explorer_app.session.edits import AddSources, GoToSeed, set_truncation
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import ModelReference, Position, Source
from gpu_backend import DeviceError, Latent, Model, Recipe, StoredLatent, Truncation
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_renderer import Library


def test_a_start_opens_the_bundled_model(open_harness: Harness) -> None:
    controller = open_harness.controller
    assert controller.engine.model.facts is not None
    assert (controller.engine.model.facts.name, controller.engine.model.is_bundled) == ("cats", True)
    assert controller.engine.devices.state.device is not None
    assert controller.engine.devices.state.device.name == "CPU"
    assert controller.engine.model.directions is not None
    assert controller.engine.model.loading is None
    assert open_harness.settings.values.recent_models == ()
    assert open_harness.said() == []


def test_a_start_with_a_file_opens_that_model(harness: Harness) -> None:
    harness.start(model=harness.path("dogs"))
    assert harness.controller.engine.model.facts is not None
    assert (harness.controller.engine.model.facts.name, harness.controller.engine.model.is_bundled) == ("dogs", False)


def test_a_first_session_on_the_bundled_model_begins_at_its_own_seed(harness: Harness) -> None:
    harness.bundled_seed = 344
    harness.start()
    assert harness.controller.editing.session.position == Position(44.0, 3.0)
    assert harness.labels == ["Start"]
    assert len(harness.engine.requests) == 1
    harness.open("dogs")
    assert harness.controller.editing.session.position == Position(44.0, 3.0), "a person who is somewhere stays there"


def test_a_first_session_on_another_model_begins_at_seed_0(harness: Harness) -> None:
    harness.bundled_seed = 344
    harness.start(model=harness.path("dogs"))
    assert harness.controller.editing.session.position == Position()
    harness.open("cats")
    assert harness.controller.editing.session.position == Position()


def test_a_session_that_comes_back_stays_where_it_was(harness: Harness) -> None:
    harness.bundled_seed = 344
    harness.start()
    harness.drag(0.0)
    again = harness.reopened()
    again.bundled_seed = 344
    again.start()
    assert again.controller.editing.session.position == Position()
    again.close()


def test_the_last_model_comes_back_at_the_next_start(open_harness: Harness) -> None:
    open_harness.open("dogs")
    again = open_harness.reopened()
    again.start()
    assert again.controller.engine.model.facts is not None
    assert again.controller.engine.model.facts.name == "dogs"
    again.close()


@pytest.mark.parametrize("names", [("dogs", "cats"), ("cats", "dogs"), ("dogs", "birds"), ("birds", "dogs")])
def test_of_equal_files_that_which_was_open_comes_back_with_the_directions_beside_it(
    harness: Harness, names: tuple[str, ...]
) -> None:
    class EqualFiles(Library):
        def __call__(self, path: Path, **how: Any) -> Model:
            model = super().__call__(path, **how)
            return replace(model, facts=replace(model.facts, model_id="5" * 64))

    harness.library = EqualFiles()
    harness.start()
    for name in names:
        harness.open(name)
    again = harness.reopened()
    again.start()
    assert again.controller.engine.model.facts is not None
    assert again.controller.engine.model.facts.name == names[-1]
    again.close()


def test_a_last_model_that_is_gone_is_replaced_by_the_bundled_one_with_a_message(open_harness: Harness) -> None:
    open_harness.open("dogs")
    again = open_harness.reopened()
    again.path("dogs").unlink()
    again.start()
    assert again.controller.engine.model.is_bundled
    assert any("dogs was moved or deleted" in sentence for sentence in again.said(Level.WARNING))
    again.close()


def test_a_first_model_that_is_broken_is_replaced_by_the_bundled_one(harness: Harness) -> None:
    harness.path("dogs").write_text("broken")
    harness.start(model=harness.path("dogs"))
    assert harness.controller.engine.model.is_bundled
    assert harness.said(Level.ERROR) == ["dogs.pkl is broken."]


def test_without_any_model_the_program_starts_with_a_message(harness: Harness) -> None:
    harness.bundled = None
    harness.controller.start()
    assert harness.controller.engine.model.facts is None
    assert harness.controller.engine.model.loading is None
    assert "The bundled model is missing from this installation" in harness.said(Level.WARNING)[0]
    harness.drag(1.0)
    harness.controller.mixing.add_current()
    harness.controller.thumbnails.request("key", harness.controller.editing.session)
    harness.open("dogs")
    harness.rest()


def test_a_broken_file_leaves_the_open_model_and_its_picture_alone(open_harness: Harness) -> None:
    harness = open_harness
    harness.path("dogs").write_text("broken")
    harness.controller.files.open_model(harness.path("dogs"))
    harness.until(lambda: harness.controller.engine.model.loading is None)
    assert harness.said(Level.ERROR) == ["dogs.pkl is broken."]
    harness.drag(1.0)
    harness.rest()
    assert harness.controller.engine.model.facts is not None
    assert harness.controller.engine.model.facts.name == "cats"


def test_a_model_that_the_device_refuses_leaves_the_open_one_alone(open_harness: Harness) -> None:
    harness = open_harness
    harness.engine.refusing = DeviceError("There is not enough memory for dogs.")
    harness.controller.files.open_model(harness.path("dogs"))
    harness.until(lambda: harness.said(Level.ERROR))
    assert harness.controller.engine.model.loading is None
    harness.drag(1.0)
    harness.rest()


def test_a_refusal_of_a_model_that_is_opened_no_longer_leaves_the_next_one_alone(open_harness: Harness) -> None:
    harness, model = open_harness, open_harness.controller.engine.model
    late = ModelRefused(str(harness.path("birds")), DeviceError("There is not enough memory for birds."))
    harness.library.gate.shut()
    harness.controller.files.open_model(harness.path("dogs"))
    model.take_refused(late)
    assert model.loading is not None
    harness.library.gate.open()
    harness.until(lambda: model.facts and model.facts.name == "dogs")
    harness.until(lambda: model.loading is None)
    harness.controller.files.open_model(harness.path("birds"))
    harness.controller.files.cancel_loading()
    model.take_refused(late)
    assert harness.said(Level.ERROR) == []


def test_the_open_model_answers_while_another_one_is_read(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.gate.shut()
    harness.controller.files.open_model(harness.path("dogs"))
    harness.until(lambda: harness.controller.engine.model.loading and harness.controller.engine.model.loading.done == 1)
    assert harness.controller.engine.model.loading is not None
    assert (harness.controller.engine.model.loading.share, harness.controller.engine.model.loading.stage) == (
        0.5,
        "Reading",
    )
    harness.drag(1.0)
    harness.rest()
    harness.library.gate.open()
    harness.until(lambda: harness.controller.engine.model.loading is None)
    assert harness.controller.engine.model.facts is not None
    assert harness.controller.engine.model.facts.name == "dogs"


def test_a_loading_that_is_cancelled_leaves_the_open_model(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.gate.shut()
    harness.controller.files.open_model(harness.path("dogs"))
    harness.controller.files.cancel_loading()
    assert harness.controller.engine.model.loading is None
    harness.library.gate.open()
    harness.drag(1.0)
    harness.rest()
    assert harness.controller.engine.model.facts is not None
    assert harness.controller.engine.model.facts.name == "cats"


def test_of_two_models_opened_in_a_row_the_second_one_stays(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.files.open_model(harness.path("dogs"))
    harness.controller.files.open_model(harness.path("birds"))
    harness.until(
        lambda: harness.controller.engine.model.facts and harness.controller.engine.model.facts.name == "birds"
    )
    harness.rest()
    assert [item.name for item in harness.settings.values.recent_models] == ["birds"]


def test_opened_models_are_remembered_newest_first_and_once(open_harness: Harness) -> None:
    harness = open_harness
    for name in ("dogs", "birds", "dogs"):
        harness.open(name)
    assert [item.name for item in harness.settings.values.recent_models] == ["dogs", "birds"]


def test_a_recent_model_that_has_gone_is_forgotten(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.open("birds")
    harness.path("dogs").unlink()
    harness.controller.files.open_model(harness.path("dogs"))
    harness.until(lambda: harness.said(Level.ERROR))
    assert [item.name for item in harness.settings.values.recent_models] == ["birds"]


def test_the_session_is_fitted_to_a_model_with_fewer_rows_and_it_is_said(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.options["dogs"] = {"resolution": 32}
    harness.controller.editing.edit(set_truncation(Truncation(0.5, 11)))
    harness.controller.editing.edit(AddSources((Source(Latent(), (0.5,) * 12, "seed 0"),)))
    harness.open("dogs")
    harness.rest()
    session = harness.controller.editing.session
    assert session.truncation == Truncation(0.5, 8)
    assert session.mix[0].strengths == (0.5,) * 8
    assert "fitted to dogs: the cutoff was lowered, mix strengths were fitted" in harness.said()[-1]
    assert harness.labels[-1] == "Open dogs"


def test_what_a_model_lacks_comes_back_with_the_one_that_had_it_unless_it_was_edited_or_left(
    open_harness: Harness,
) -> None:
    harness, editing = open_harness, open_harness.controller.editing
    harness.library.options["dogs"] = {"resolution": 32}
    harness.library.options["birds"] = {"resolution": 32}
    editing.edit(GoToSeed(5))
    editing.edit(set_truncation(Truncation(0.5, 11)))
    editing.edit(AddSources((Source(Latent(), (0.25,) * 12, "seed 0"),)))
    width = harness.controller.engine.model.facts.w_dim if harness.controller.engine.model.facts is not None else 0
    found = StoredLatent(np.full((1, width), 0.5, "<f4").tobytes(), 1, width)
    pinned = replace(editing.session, pinned_blend=((Recipe(Latent(found), Truncation(0.5, 11)), 1.0),))
    editing.restore(pinned, "Import latent")
    before = editing.session
    harness.library.options["dogs"] |= {"w_dim": 2 * width, "z_dim": 2 * width}
    harness.library.options["birds"] |= {"w_dim": 2 * width, "z_dim": 2 * width}
    harness.open("dogs")
    harness.rest()
    assert editing.session.truncation == Truncation(0.5, 8)
    assert harness.said()[-1].endswith("; cats brings back what was.")
    count = len(harness.said())
    harness.open("birds")
    harness.rest()
    assert len(harness.said()) == count, "the same is lacking, and was said"
    editing.edit(SetParameter("noise.gain", 0.5))
    harness.open("cats")
    harness.rest()
    assert editing.session == replace(before, noise=replace(before.noise, gain=0.5))
    harness.open("dogs")
    harness.rest()
    editing.edit(GoToSeed(6))
    harness.open("cats")
    harness.rest()
    assert (editing.session.position.x, editing.session.pinned_blend) == (6.0, ()), "a pinned latent would hide it"
    assert editing.session.mix == before.mix
    harness.open("dogs")
    harness.rest()
    harness.controller.files.new_session()
    harness.open("cats")
    harness.rest()
    assert editing.session.mix == (), "that is of another session"


def name_of(harness: Harness) -> str:
    return harness.controller.engine.model.facts.name if harness.controller.engine.model.facts is not None else ""


def test_undo_leads_back_to_the_model_before_and_redo_to_the_one_after(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.options["dogs"] = {"resolution": 32}
    harness.controller.editing.edit(AddSources((Source(Latent(), (0.5,) * 12, "seed 0"),)))
    harness.open("dogs")
    harness.drag(3.0)
    harness.rest()
    labels = harness.labels
    harness.controller.editing.undo()
    harness.controller.editing.undo()
    harness.until(lambda: name_of(harness) == "cats")
    harness.rest()
    assert len(harness.controller.editing.session.mix[0].strengths) == 12, "as it was, and not as it was fitted"
    harness.controller.editing.redo()
    harness.until(lambda: name_of(harness) == "dogs")
    harness.rest()
    assert len(harness.controller.editing.session.mix[0].strengths) == 8
    harness.controller.editing.redo()
    harness.rest()
    assert harness.x == 3.0
    assert harness.labels == labels, "going there is no step"
    harness.controller.editing.go_to(0)
    harness.until(lambda: name_of(harness) == "cats")
    assert harness.controller.editing.session.mix == ()
    assert harness.said(Level.WARNING) == []


def test_loading_a_model_by_undo_is_cancelled_by_redo(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.library.gate.shut()
    harness.controller.editing.undo()
    assert harness.controller.engine.model.loading is not None
    harness.controller.editing.redo()
    assert harness.controller.engine.model.loading is None
    harness.library.gate.open()
    harness.drag(1.0)
    harness.rest()
    assert name_of(harness) == "dogs"


def test_an_edit_before_the_model_of_undo_is_there_is_kept(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.library.gate.shut()
    harness.controller.editing.undo()
    harness.drag(2.0)
    harness.library.gate.open()
    harness.until(lambda: name_of(harness) == "cats")
    harness.rest()
    assert harness.x == 2.0
    assert harness.labels[-1] == "Open cats"


def test_where_the_model_of_a_step_has_gone_the_open_one_shows_it_and_it_is_said_once(open_harness: Harness) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.drag(1.0)
    harness.open("birds")
    harness.path("dogs").unlink()
    for _ in range(2):
        harness.controller.editing.undo()
        harness.controller.editing.redo()
    harness.controller.editing.undo()
    harness.rest()
    assert name_of(harness) == "birds"
    assert harness.x == 1.0
    assert harness.said(Level.WARNING) == ["“Walk” was made with dogs, which was not found; birds shows it."]


def test_a_step_whose_file_holds_another_model_now_is_shown_by_the_open_one_and_loses_no_steps(
    open_harness: Harness,
) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.drag(1.0)
    harness.open("birds")
    harness.drag(2.0)
    labels = harness.labels
    harness.library.options["dogs"] = {"model_id": "sha of wolves"}
    harness.controller.editing.undo()
    harness.controller.editing.undo()
    harness.until(lambda: harness.said(Level.WARNING))
    harness.until(lambda: harness.controller.engine.model.loading is None)
    harness.rest()
    assert name_of(harness) == "birds"
    assert harness.x == 1.0
    assert harness.labels == labels
    assert harness.said(Level.WARNING) == [
        "“Walk” was made with dogs, which was not found: its file holds another model now; birds shows it."
    ]
    harness.controller.editing.redo()
    harness.controller.editing.redo()
    harness.rest()
    assert harness.x == 2.0
    harness.open("dogs")  # by hand it is what it is
    assert harness.labels[-1] == "Open dogs"


def test_a_picture_that_waits_for_its_model_is_forgotten_where_a_step_leads_to_another_one(
    open_harness: Harness,
) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.drag(5.0)
    harness.controller.pictures.save(harness.folder / "dog.png")
    harness.until(lambda: any("Saved" in sentence for sentence in harness.said()))
    harness.open("birds")
    harness.library.gate.shut()
    harness.controller.files.open_picture(harness.folder / "dog.png")
    harness.until(lambda: harness.controller.engine.model.loading is not None)
    while harness.controller.editing.history.can_undo:
        harness.controller.editing.undo()
    harness.library.gate.open()
    harness.until(lambda: name_of(harness) == "cats")
    harness.rest()
    assert harness.x == 0.0
    assert harness.said(Level.WARNING) == []


def keep(harness: Harness) -> int:
    number = harness.controller.editing.history.entries[-1].number
    harness.controller.editing.kept.star(number, True)
    return number


def test_a_kept_latent_reopens_the_model_it_was_kept_with(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.options["dogs"] = {"resolution": 32}
    harness.controller.editing.edit(AddSources((Source(Latent(), (0.5,) * 12, "seed 0"),)))
    number = keep(harness)
    harness.open("dogs")
    harness.drag(3.0)
    harness.controller.editing.go_to_kept(number)
    harness.until(lambda: name_of(harness) == "cats")
    harness.rest()
    assert len(harness.controller.editing.session.mix[0].strengths) == 12, "as it was kept, and not fitted to dogs"
    assert harness.x == 0.0
    assert harness.labels[-3:] == ["Open dogs", "Walk", "Kept"]
    harness.controller.editing.undo()
    harness.until(lambda: name_of(harness) == "dogs")
    harness.rest()
    assert harness.x == 3.0
    assert harness.said(Level.WARNING) == []


def test_loading_the_model_of_something_kept_is_cancelled_for_another(open_harness: Harness) -> None:
    harness = open_harness
    of_cats = keep(harness)
    harness.open("dogs")
    harness.drag(3.0)
    of_dogs = keep(harness)
    harness.library.gate.shut()
    harness.controller.editing.go_to_kept(of_cats)
    assert harness.controller.engine.model.loading is not None
    harness.controller.editing.go_to_kept(of_dogs)
    assert harness.controller.engine.model.loading is None
    harness.library.gate.open()
    harness.rest()
    assert (name_of(harness), harness.x) == ("dogs", 3.0)
    assert harness.labels[-2:] == ["Kept", "Kept"]


def test_where_the_model_of_something_kept_has_gone_the_open_one_shows_it_and_it_is_said_once(
    open_harness: Harness,
) -> None:
    harness = open_harness
    harness.open("dogs")
    harness.drag(1.0)
    number = keep(harness)
    harness.open("birds")
    harness.path("dogs").unlink()
    harness.drag(2.0)
    harness.controller.editing.go_to_kept(number)
    harness.controller.editing.go_to_kept(number)
    harness.rest()
    assert (name_of(harness), harness.x) == ("birds", 1.0)
    assert harness.said(Level.WARNING) == ["“Kept” was made with dogs, which was not found; birds shows it."]


def test_a_class_that_the_next_model_lacks_is_replaced_by_its_first(open_harness: Harness) -> None:
    harness = open_harness
    harness.library.options["dogs"] = {"c_dim": 5}
    harness.library.options["birds"] = {"c_dim": 2}
    harness.open("dogs")
    assert harness.controller.editing.session.classes == ((0, 1.0),)
    harness.controller.editing.edit(SetParameter("classes", ((4, 1.0),)))
    harness.open("birds")
    assert harness.controller.editing.session.classes == ((0, 1.0),)
    assert "the class was reset" in harness.said()[-1]
    harness.open("cats")
    assert harness.controller.editing.session.classes == ()


def test_small_pictures_of_the_former_model_are_forgotten(open_harness: Harness) -> None:
    harness = open_harness
    harness.controller.thumbnails.request("key", harness.controller.editing.session)
    harness.until(lambda: len(harness.controller.thumbnails.store))
    harness.open("dogs")
    assert len(harness.controller.thumbnails.store) == 0


def test_warnings_about_a_model_are_reported(open_harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    harness = open_harness
    from dataclasses import replace

    make = harness.engine.make_renderer

    def warned(model: Model, choice: DeviceChoice) -> Any:
        renderer = make(model, choice)
        renderer.facts = replace(renderer.facts, warnings=("w_avg holds NaN.",))
        return renderer

    monkeypatch.setattr(harness.engine, "make_renderer", warned)
    harness.open("dogs")
    assert harness.said(Level.WARNING) == ["w_avg holds NaN."]


def test_closing_while_a_model_is_read_leaves_no_thread(open_harness: Harness) -> None:
    open_harness.library.gate.shut()
    open_harness.controller.files.open_model(open_harness.path("dogs"))
    open_harness.controller.close()
    open_harness.controller.close()
    assert open_harness.controller.engine.model.loading is None


def test_a_last_model_whose_path_is_too_long_for_a_file_is_gone(harness: Harness) -> None:
    harness.settings.change(last_model="/" + "a" * 4000)
    model = harness.controller.engine.model
    assert model.first_path(None, ModelReference()) == harness.path("cats")
    assert model.known_path(ModelReference("/" + "a" * 4000, "m", "cd" * 32)) is None
