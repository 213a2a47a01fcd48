from __future__ import annotations

from explorer_app.messages import Level
from explorer_app.session.edits import AddSource, SetParameter, set_truncation
from explorer_app.session.session import Position, Source
from gpu_backend import DeviceError, Latent, Truncation
from tests.helpers.desk import Desk


def test_a_start_opens_the_bundled_model(open_desk: Desk):
    controller = open_desk.controller
    assert controller.facts is not None
    assert (controller.facts.name, controller.is_bundled) == ("cats", True)
    assert controller.device is not None
    assert controller.device.name == "CPU"
    assert controller.directions is not None
    assert controller.loading is None
    assert controller.recent_models == ()
    assert open_desk.said() == []


def test_a_start_with_a_file_opens_that_model(desk: Desk):
    desk.start(model=desk.path("dogs"))
    assert desk.controller.facts is not None
    assert (desk.controller.facts.name, desk.controller.is_bundled) == ("dogs", False)


def test_a_first_session_on_the_bundled_model_begins_at_its_own_seed(desk: Desk):
    desk.bundled_seed = 344
    desk.start()
    assert desk.controller.session.position == Position(44.0, 3.0)
    assert desk.labels == ["Start"]
    assert len(desk.engine.requests) == 1
    desk.open("dogs")
    assert desk.controller.session.position == Position(44.0, 3.0), "a person who is somewhere stays there"


def test_a_first_session_on_another_model_begins_at_seed_0(desk: Desk):
    desk.bundled_seed = 344
    desk.start(model=desk.path("dogs"))
    assert desk.controller.session.position == Position()
    desk.open("cats")
    assert desk.controller.session.position == Position()


def test_a_session_that_comes_back_stays_where_it_was(desk: Desk):
    desk.bundled_seed = 344
    desk.start()
    desk.walk(0.0)
    again = desk.reopened()
    again.bundled_seed = 344
    again.start()
    assert again.controller.session.position == Position()
    again.close()


def test_the_last_model_comes_back_at_the_next_start(open_desk: Desk):
    open_desk.open("dogs")
    again = open_desk.reopened()
    again.start()
    assert again.controller.facts is not None
    assert again.controller.facts.name == "dogs"
    again.close()


def test_a_last_model_that_has_gone_gives_way_to_the_bundled_one_with_a_word(open_desk: Desk):
    open_desk.open("dogs")
    again = open_desk.reopened()
    again.path("dogs").unlink()
    again.start()
    assert again.controller.is_bundled
    assert any("dogs is not where it was" in sentence for sentence in again.said(Level.WARNING))
    again.close()


def test_a_first_model_that_is_broken_gives_way_to_the_bundled_one(desk: Desk):
    desk.path("dogs").write_text("broken")
    desk.start(model=desk.path("dogs"))
    assert desk.controller.is_bundled
    assert desk.said(Level.ERROR) == ["dogs.pkl is broken."]


def test_without_any_model_the_program_starts_and_says_so(desk: Desk):
    desk.bundled = None
    desk.controller.start()
    assert desk.controller.facts is None
    assert desk.controller.loading is None
    assert "No model came with this installation" in desk.said(Level.WARNING)[0]
    desk.walk(1.0)
    desk.controller.keep_current()
    desk.controller.request_thumbnail("key", desk.controller.session)
    desk.open("dogs")
    desk.rest()


def test_a_broken_file_leaves_the_open_model_and_its_picture_alone(open_desk: Desk):
    desk = open_desk
    desk.path("dogs").write_text("broken")
    desk.controller.open_model(desk.path("dogs"))
    desk.until(lambda: desk.controller.loading is None)
    assert desk.said(Level.ERROR) == ["dogs.pkl is broken."]
    desk.walk(1.0)
    desk.rest()
    assert desk.controller.facts is not None
    assert desk.controller.facts.name == "cats"


def test_a_model_that_the_device_refuses_leaves_the_open_one_alone(open_desk: Desk):
    desk = open_desk
    desk.engine.refusing = DeviceError("There is not enough memory for dogs.")
    desk.controller.open_model(desk.path("dogs"))
    desk.until(lambda: desk.said(Level.ERROR))
    assert desk.controller.loading is None
    desk.walk(1.0)
    desk.rest()


def test_the_open_model_answers_while_another_one_is_read(open_desk: Desk):
    desk = open_desk
    desk.library.gate.shut()
    desk.controller.open_model(desk.path("dogs"))
    desk.until(lambda: desk.controller.loading and desk.controller.loading.done == 1)
    assert desk.controller.loading is not None
    assert (desk.controller.loading.share, desk.controller.loading.stage) == (0.5, "Reading")
    desk.walk(1.0)
    desk.rest()
    desk.library.gate.open()
    desk.until(lambda: desk.controller.loading is None)
    assert desk.controller.facts is not None
    assert desk.controller.facts.name == "dogs"


def test_a_loading_that_is_cancelled_leaves_the_open_model(open_desk: Desk):
    desk = open_desk
    desk.library.gate.shut()
    desk.controller.open_model(desk.path("dogs"))
    desk.controller.cancel_loading()
    assert desk.controller.loading is None
    desk.library.gate.open()
    desk.walk(1.0)
    desk.rest()
    assert desk.controller.facts is not None
    assert desk.controller.facts.name == "cats"


def test_of_two_models_opened_in_a_row_the_second_one_stays(open_desk: Desk):
    desk = open_desk
    desk.controller.open_model(desk.path("dogs"))
    desk.controller.open_model(desk.path("birds"))
    desk.until(lambda: desk.controller.facts and desk.controller.facts.name == "birds")
    desk.rest()
    assert [item.name for item in desk.controller.recent_models] == ["birds"]


def test_opened_models_are_remembered_newest_first_and_once(open_desk: Desk):
    desk = open_desk
    for name in ("dogs", "birds", "dogs"):
        desk.open(name)
    assert [item.name for item in desk.controller.recent_models] == ["dogs", "birds"]


def test_a_recent_model_that_has_gone_is_forgotten(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.open("birds")
    desk.path("dogs").unlink()
    desk.controller.open_model(desk.path("dogs"))
    desk.until(lambda: desk.said(Level.ERROR))
    assert [item.name for item in desk.controller.recent_models] == ["birds"]


def test_the_session_is_fitted_to_a_model_with_fewer_rows_and_it_is_said(open_desk: Desk):
    desk = open_desk
    desk.library.options["dogs"] = {"resolution": 32}
    desk.controller.edit(set_truncation(Truncation(0.5, 11)))
    desk.controller.edit(AddSource(Source(Latent(), (0.5,) * 12, "seed 0")))
    desk.open("dogs")
    desk.rest()
    session = desk.controller.session
    assert session.truncation == Truncation(0.5, 8)
    assert session.mix[0].strengths == (0.5,) * 8
    assert "fitted to dogs: the cutoff was lowered, mix strengths were fitted" in desk.said()[-1]
    assert desk.labels[-1] == "Open dogs"


def name_of(desk: Desk) -> str:
    return desk.controller.facts.name if desk.controller.facts is not None else ""


def test_undo_leads_back_to_the_model_before_and_redo_to_the_one_after(open_desk: Desk):
    desk = open_desk
    desk.library.options["dogs"] = {"resolution": 32}
    desk.controller.edit(AddSource(Source(Latent(), (0.5,) * 12, "seed 0")))
    desk.open("dogs")
    desk.walk(3.0)
    desk.rest()
    labels = desk.labels
    desk.controller.undo()
    desk.controller.undo()
    desk.until(lambda: name_of(desk) == "cats")
    desk.rest()
    assert len(desk.controller.session.mix[0].strengths) == 12, "as it was, and not as it was fitted"
    desk.controller.redo()
    desk.until(lambda: name_of(desk) == "dogs")
    desk.rest()
    assert len(desk.controller.session.mix[0].strengths) == 8
    desk.controller.redo()
    desk.rest()
    assert desk.x == 3.0
    assert desk.labels == labels, "going there is no step"
    desk.controller.go_to(0)
    desk.until(lambda: name_of(desk) == "cats")
    assert desk.controller.session.mix == ()
    assert desk.said(Level.WARNING) == []


def test_a_model_that_undo_leads_to_is_given_up_when_redo_leaves_it(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.library.gate.shut()
    desk.controller.undo()
    assert desk.controller.loading is not None
    desk.controller.redo()
    assert desk.controller.loading is None
    desk.library.gate.open()
    desk.walk(1.0)
    desk.rest()
    assert name_of(desk) == "dogs"


def test_an_edit_before_the_model_of_undo_is_there_is_kept(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.library.gate.shut()
    desk.controller.undo()
    desk.walk(2.0)
    desk.library.gate.open()
    desk.until(lambda: name_of(desk) == "cats")
    desk.rest()
    assert desk.x == 2.0
    assert desk.labels[-1] == "Open cats"


def test_where_the_model_of_a_step_has_gone_the_open_one_shows_it_and_it_is_said_once(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.walk(1.0)
    desk.open("birds")
    desk.path("dogs").unlink()
    for _ in range(2):
        desk.controller.undo()
        desk.controller.redo()
    desk.controller.undo()
    desk.rest()
    assert name_of(desk) == "birds"
    assert desk.x == 1.0
    assert desk.said(Level.WARNING) == ["“Walk” was made with dogs, which is not at hand; birds shows it."]


def test_a_picture_that_waits_for_its_model_is_forgotten_where_a_step_leads_to_another_one(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.walk(5.0)
    desk.controller.save_picture(desk.folder / "dog.png")
    desk.until(lambda: any("Saved" in sentence for sentence in desk.said()))
    desk.open("birds")
    desk.library.gate.shut()
    desk.controller.open_picture(desk.folder / "dog.png")
    desk.until(lambda: desk.controller.loading is not None)
    while desk.controller.history.can_undo:
        desk.controller.undo()
    desk.library.gate.open()
    desk.until(lambda: name_of(desk) == "cats")
    desk.rest()
    assert desk.x == 0.0
    assert desk.said(Level.WARNING) == []


def keep(desk: Desk) -> int:
    number = desk.controller.history.entries[-1].number
    desk.controller.set_starred(number, True)
    return number


def test_what_was_kept_leads_back_to_the_model_that_it_was_kept_with(open_desk: Desk):
    desk = open_desk
    desk.library.options["dogs"] = {"resolution": 32}
    desk.controller.edit(AddSource(Source(Latent(), (0.5,) * 12, "seed 0")))
    number = keep(desk)
    desk.open("dogs")
    desk.walk(3.0)
    desk.controller.go_to_kept(number)
    desk.until(lambda: name_of(desk) == "cats")
    desk.rest()
    assert len(desk.controller.session.mix[0].strengths) == 12, "as it was kept, and not fitted to dogs"
    assert desk.x == 0.0
    assert desk.labels[-3:] == ["Open dogs", "Walk", "Kept"]
    desk.controller.undo()
    desk.until(lambda: name_of(desk) == "dogs")
    desk.rest()
    assert desk.x == 3.0
    assert desk.said(Level.WARNING) == []


def test_a_model_that_something_kept_leads_to_is_given_up_for_something_else_kept(open_desk: Desk):
    desk = open_desk
    of_cats = keep(desk)
    desk.open("dogs")
    desk.walk(3.0)
    of_dogs = keep(desk)
    desk.library.gate.shut()
    desk.controller.go_to_kept(of_cats)
    assert desk.controller.loading is not None
    desk.controller.go_to_kept(of_dogs)
    assert desk.controller.loading is None
    desk.library.gate.open()
    desk.rest()
    assert (name_of(desk), desk.x) == ("dogs", 3.0)
    assert desk.labels[-2:] == ["Kept", "Kept"]


def test_where_the_model_of_something_kept_has_gone_the_open_one_shows_it_and_it_is_said_once(open_desk: Desk):
    desk = open_desk
    desk.open("dogs")
    desk.walk(1.0)
    number = keep(desk)
    desk.open("birds")
    desk.path("dogs").unlink()
    desk.walk(2.0)
    desk.controller.go_to_kept(number)
    desk.controller.go_to_kept(number)
    desk.rest()
    assert (name_of(desk), desk.x) == ("birds", 1.0)
    assert desk.said(Level.WARNING) == ["“Kept” was made with dogs, which is not at hand; birds shows it."]


def test_a_class_that_the_next_model_lacks_gives_way_to_its_first(open_desk: Desk):
    desk = open_desk
    desk.library.options["dogs"] = {"c_dim": 5}
    desk.library.options["birds"] = {"c_dim": 2}
    desk.open("dogs")
    assert desk.controller.session.classes == ((0, 1.0),)
    desk.controller.edit(SetParameter("classes", ((4, 1.0),)))
    desk.open("birds")
    assert desk.controller.session.classes == ((0, 1.0),)
    assert "the class was reset" in desk.said()[-1]
    desk.open("cats")
    assert desk.controller.session.classes == ()


def test_small_pictures_of_the_former_model_are_forgotten(open_desk: Desk):
    desk = open_desk
    desk.controller.request_thumbnail("key", desk.controller.session)
    desk.until(lambda: len(desk.controller.thumbnails))
    desk.open("dogs")
    assert len(desk.controller.thumbnails) == 0


def test_warnings_about_a_model_are_told(open_desk: Desk, monkeypatch):
    desk = open_desk
    from dataclasses import replace

    make = desk.engine.make_renderer

    def warned(model, choice):
        renderer = make(model, choice)
        renderer.facts = replace(renderer.facts, warnings=("w_avg holds NaN.",))
        return renderer

    monkeypatch.setattr(desk.engine, "make_renderer", warned)
    desk.open("dogs")
    assert desk.said(Level.WARNING) == ["w_avg holds NaN."]


def test_closing_while_a_model_is_read_leaves_no_thread(open_desk: Desk):
    open_desk.library.gate.shut()
    open_desk.controller.open_model(open_desk.path("dogs"))
    open_desk.controller.close()
    open_desk.controller.close()
    assert open_desk.controller.loading is None
