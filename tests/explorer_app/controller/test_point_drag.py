"""Strokes of dragged points over the real session and history, with an optimiser that follows its targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from explorer_app.controller import PointDrag
from explorer_app.controller.drag_points import COVERED, LOST, WEAK
from explorer_app.controller.drag_preparation import DragPreparation
from explorer_app.controller.point_drag import MOST_POINTS
from explorer_app.messages import Level
from explorer_app.session.edited_latent import edited_latent
from explorer_app.session.edits import PLACE, AddBend, AddBlend, AddSources, GoToSeed, set_transform
from explorer_app.session.parameters import SetParameter
from explorer_app.session.picture_mask import painted
from explorer_app.session.resolve import NO_MODULATION, Modulation, Modulator, resolve, resolve_blend
from explorer_app.session.session import Position, Source
from explorer_app.session.timeline.edits import SetTimeline, with_track
from explorer_app.session.tracks import WALK, Track
from gpu_backend import (
    MASK_SIDE,
    Bend,
    Latent,
    LocalEdits,
    PictureMask,
    Recipe,
    RequestError,
    StoredLatent,
    Tap,
    Transform,
)
from tests.helpers.controller_harness import Harness
from tests.helpers.fake_drag import FakeDragMaker, FakeDragRenders


@dataclass
class Fixed:
    """A curve of one value."""

    value: float

    def at(self, t: float) -> float:
        return self.value


@dataclass
class Hand:
    """A point drag over a controller that is at rest, and what it is tested with."""

    harness: Harness
    renders: FakeDragRenders
    maker: FakeDragMaker
    drag: PointDrag

    @property
    def rows(self) -> float:
        """The first number of the session's rows, which counts the steps of the drags."""
        ((recipe, _),) = resolve_blend(self.harness.controller.editing.session)
        assert isinstance(recipe.latent.point, StoredLatent)
        return float(np.frombuffer(recipe.latent.point.rows, "<f4")[0])

    def stroke(self, start: tuple[float, float] = (4.0, 4.0), by: tuple[float, float] = (6.0, 0.0)) -> None:
        """Drag a new point, and let it settle."""
        assert self.drag.begin(start)
        self.drag.aim(*by)
        self.drag.release()
        self.renders.run_to_rest()

    @property
    def steps(self) -> list[str]:
        return self.harness.labels


@pytest.fixture
def hand(harness: Harness) -> Iterator[Hand]:
    """The session shows a stored latent of zeros."""
    harness.engine.gives_rows = True
    harness.start()
    controller = harness.controller
    facts = controller.engine.model.facts
    assert facts is not None
    renders, maker = FakeDragRenders(), FakeDragMaker()
    engine = controller.engine
    drag = PointDrag(
        renders,
        engine.model,
        engine.preview,
        controller.editing,
        controller.playback,
        harness.messages,
        lambda: maker,
        lambda: harness.now_s,
    )
    renders.point_drag = drag
    zeros = StoredLatent(np.zeros((1, facts.w_dim), "<f4").tobytes(), 1, facts.w_dim)
    controller.editing.edit(SetParameter("pinned_blend", ((Recipe(Latent(zeros)), 1.0),)))
    yield Hand(harness, renders, maker, drag)
    drag.close()


def test_a_stroke_follows_the_hand_and_is_one_step_of_undo(hand: Hand) -> None:
    before = list(hand.steps)
    assert hand.drag.begin((4.0, 4.0))
    hand.drag.aim(3.0, 0.0)
    hand.renders.advance()
    assert hand.drag.phase == "moving"
    assert hand.rows == 1.0
    hand.drag.aim(9.0, 2.0)
    hand.renders.advance()
    assert hand.rows == 2.0
    assert hand.steps == before, "no step while the hand moves"
    hand.drag.release()
    hand.renders.run_to_rest()
    assert hand.steps == [*before, "Drag a point"]
    assert [point.place for point in hand.drag.points] == [(13.0, 6.0)]
    hand.harness.controller.editing.undo()
    assert hand.rows == 0.0
    assert hand.drag.points == (), "the handle's content is elsewhere now"


@pytest.mark.parametrize("what", ["new session", "drift"])
def test_a_stroke_that_settles_ends_before_another_session_or_a_drift(hand: Hand, what: str) -> None:
    editing, before = hand.harness.controller.editing, list(hand.steps)
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(30.0, 0.0)
    hand.renders.advance()
    hand.drag.release()
    if what == "drift":
        editing.set_drifting(True)
    else:
        hand.harness.controller.files.new_session()
    assert hand.drag.phase == "rest"
    assert hand.renders.drag is None
    assert hand.steps[: len(before) + 1] == [*before, "Drag a point"]
    if what == "new session":
        assert editing.session.pinned_blend == ()
        assert not editing.is_gesturing
        editing.undo()
        assert hand.rows == 1.0, "what the stroke had reached"
    editing.set_drifting(False)


def test_escape_returns_to_the_start_of_the_stroke(hand: Hand) -> None:
    hand.stroke()
    before, points, rows = list(hand.steps), hand.drag.points, hand.rows
    assert hand.drag.begin((10.0, 4.0), 0)
    hand.drag.aim(0.0, 8.0)
    hand.renders.advance()
    assert hand.rows != rows
    assert hand.drag.cancel()
    assert (hand.steps, hand.drag.points, hand.rows) == (before, points, rows)
    assert not hand.drag.cancel()


def test_reports_of_a_stroke_that_ended_are_dropped(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(9.0, 0.0)
    drag, number = hand.renders.drag, hand.renders.number
    hand.drag.cancel()
    hand.renders.drag, hand.renders.number = drag, number
    hand.renders.advance(2)
    assert hand.rows == 0.0
    assert hand.drag.phase == "rest"


def test_a_new_press_while_the_last_stroke_settles_keeps_what_it_has_reached(hand: Hand) -> None:
    before = len(hand.steps)
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(10.0, 0.0)
    hand.renders.advance()
    hand.drag.release()
    hand.drag.begin((2.0, 2.0))
    assert len(hand.steps) == before + 1
    assert hand.maker.made[-1].start == hand.maker.made[0].latent


def test_undo_while_a_stroke_settles_reverts_the_stroke(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(10.0, 0.0)
    hand.renders.advance()
    hand.drag.release()
    hand.harness.controller.editing.undo()
    assert hand.rows == 0.0
    assert hand.drag.phase == "rest"


def test_an_edit_from_elsewhere_ends_the_stroke_first(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(10.0, 0.0)
    hand.renders.advance()
    hand.harness.controller.editing.edit(SetParameter("slider/sefa/0", 1.0))
    assert hand.steps[-2:] == ["Drag a point", "Slider"]
    assert hand.drag.phase == "rest"


def test_sliders_and_mix_are_part_of_the_rows_that_were_dragged(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    editing.edit(SetParameter("slider/sefa/0", 1.5))
    editing.edit(AddSources((Source(Latent(), (1.0, 0.0), "a"),)))
    hand.harness.rest()
    hand.stroke()
    session = editing.session
    assert session.slider("sefa/0").amount == 0.0
    assert session.mix[0].strengths == (0.0, 0.0)
    edited = edited_latent(session)
    assert edited is not None
    assert edited.before.latent.directions[0].amount == 1.5, "the slider fades back in with the picture before"


def test_pins_go_along_and_are_not_moved(hand: Hand) -> None:
    hand.drag.add((1.0, 1.0), is_pin=True)
    hand.stroke()
    (made,) = hand.maker.made
    assert made.settings.pins == ((1.0, 1.0),)
    assert [handle.source for handle in made.handles] == [(4.0, 4.0)]
    assert [point.is_pin for point in hand.drag.points] == [True, False]


def test_what_is_frozen_is_kept_by_the_drag(hand: Hand) -> None:
    hand.harness.controller.editing.edit(SetParameter("mask", painted(None, [(0.5, 0.5)], 0.2, 0.0, freezes=True)))
    hand.stroke()
    (made,) = hand.maker.made
    assert made.settings.mask is not None
    assert made.settings.mask.shape == (MASK_SIDE, MASK_SIDE)
    assert made.settings.mask[64, 64] == 1.0
    assert made.settings.mask[0, 0] == 0.0


def test_a_new_point_takes_the_place_of_the_former_handles_but_not_of_pins(hand: Hand) -> None:
    hand.drag.add((1.0, 1.0), is_pin=True)
    hand.stroke((4.0, 4.0))
    hand.stroke((9.0, 9.0), (2.0, 0.0))
    assert [point.place for point in hand.drag.points] == [(1.0, 1.0), (11.0, 9.0)]


def test_handles_move_together_by_what_the_pointer_moves(hand: Hand) -> None:
    hand.drag.add((2.0, 2.0), is_pin=False)
    hand.drag.begin((8.0, 8.0), together=True)
    hand.drag.aim(3.0, 1.0)
    hand.drag.release()
    hand.renders.run_to_rest()
    assert [point.place for point in hand.drag.points] == [(5.0, 3.0), (11.0, 9.0)]


def test_a_handle_that_is_dragged_alone_leaves_the_others_where_they_are(hand: Hand) -> None:
    hand.drag.add((2.0, 2.0), is_pin=False)
    hand.drag.add((8.0, 8.0), is_pin=False)
    hand.drag.begin((2.0, 2.0), 0)
    hand.drag.aim(0.0, 4.0)
    hand.drag.release()
    hand.renders.run_to_rest()
    assert [point.place for point in hand.drag.points] == [(2.0, 6.0), (8.0, 8.0)]


def test_arrows_nudge_in_one_stroke_while_it_settles(hand: Hand) -> None:
    hand.drag.add((2.0, 2.0), is_pin=False)
    before = len(hand.steps)
    hand.drag.nudge(1.0, 0.0)
    hand.drag.nudge(1.0, 0.0)
    hand.drag.nudge(0.0, -1.0)
    hand.renders.run_to_rest()
    assert hand.drag.points[0].place == (4.0, 1.0)
    assert len(hand.steps) == before + 1


def test_a_stroke_sets_no_more_points_than_clicks_may(hand: Hand) -> None:
    for number in range(MOST_POINTS):
        hand.drag.add((number / 8, 2.0), is_pin=number > 0)
    assert not hand.drag.begin((5.0, 5.0), together=True)
    assert hand.harness.has_said(f"{MOST_POINTS} points are set")
    assert hand.drag.begin((5.0, 5.0)), "it takes the place of the handle"
    hand.drag.finish()
    assert len(hand.drag.points) == MOST_POINTS


def test_arrows_nudge_a_pin_without_a_stroke(hand: Hand) -> None:
    before = list(hand.steps)
    hand.drag.add((4.0, 4.0), is_pin=True)
    hand.drag.nudge(1.0, 0.0)
    hand.drag.nudge(0.0, -9.0)
    assert [(point.place, point.target) for point in hand.drag.points] == [((5.0, 0.0), (5.0, 0.0))]
    assert (hand.drag.phase, hand.steps, hand.drag.selected) == ("rest", before, 0)


def test_a_target_stays_in_the_picture(hand: Hand) -> None:
    hand.stroke((4.0, 4.0), (-50.0, 5000.0))
    side = hand.harness.controller.engine.model.facts.resolution  # type: ignore[union-attr]
    assert hand.drag.points[0].place == (0.0, side - 1.0)


def test_a_handle_without_texture_reports_it_and_leaves_no_step(hand: Hand) -> None:
    before = list(hand.steps)
    hand.maker.weak = {0}
    hand.stroke()
    assert hand.drag.problem == WEAK
    assert hand.steps == before
    assert hand.drag.points[0].target == hand.drag.points[0].place == (4.0, 4.0)


def test_a_handle_on_another_picture_of_a_blend_reports_it_and_leaves_no_step(hand: Hand) -> None:
    before = list(hand.steps)
    hand.drag.begin((4.0, 4.0))
    hand.renders.drag.covered = {0}
    hand.drag.aim(8.0, 0.0)
    hand.renders.advance()
    assert hand.drag.problem == COVERED
    assert hand.drag.distance == 0.0
    hand.drag.release()
    hand.renders.run_to_rest()
    assert hand.steps == before


TOP = PictureMask(bytes([255]) * (MASK_SIDE**2 // 2) + bytes(MASK_SIDE**2 // 2))


def blend_rows(hand: Hand) -> tuple[object, str]:
    """The first number of the blend's rows, and its label."""
    (blend,) = hand.harness.controller.editing.session.blends
    point = blend.latent.point
    found = float(np.frombuffer(point.rows, "<f4")[0]) if isinstance(point, StoredLatent) else point
    return found, blend.label


def test_a_stroke_under_the_mask_of_a_blend_moves_the_second_picture(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    editing.edit(AddBlend(Latent(), TOP, "seed 0"))
    seed, _ = blend_rows(hand)
    before, number = list(hand.steps), editing.session.blends[0].number
    hand.stroke((4.0, 2.0), (6.0, 0.0))
    assert hand.steps == [*before, "Drag a point"]
    assert hand.maker.made[-1].settings.blend == 0
    assert hand.rows == 0.0, "the picture's own latent stays"
    assert blend_rows(hand) == (1.0, "seed 0, dragged")
    assert [point.place for point in hand.drag.points] == [(10.0, 2.0)]
    assert hand.drag.share is None
    assert not hand.drag.has_stroke
    hand.stroke((4.0, 2.0), (12.0, 0.0))
    assert blend_rows(hand) == (2.0, "seed 0, dragged")
    assert hand.steps == [*before, "Drag a point", "Drag a point"]
    for _ in range(2):
        editing.undo()
    assert blend_rows(hand) == (seed, "seed 0")
    assert hand.drag.begin((4.0, 2.0))
    hand.drag.aim(6.0, 0.0)
    hand.renders.advance()
    assert blend_rows(hand)[0] == 1.0
    assert hand.drag.cancel()
    assert blend_rows(hand) == (seed, "seed 0")
    editing.edit(SetParameter(f"blend/{number}/strength", 0.2))
    assert hand.drag.begin((4.0, 2.0))
    hand.drag.aim(6.0, 0.0)
    hand.renders.advance()
    assert hand.maker.made[-1].settings.blend is None, "most of this place is the first picture"


def test_a_stroke_outside_the_mask_of_a_blend_moves_the_first_picture(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    editing.edit(AddBlend(Latent(), TOP, "seed 0"))
    before = blend_rows(hand)
    side = hand.harness.controller.engine.model.facts.resolution  # type: ignore[union-attr]
    hand.stroke((4.0, side - 3.0), (6.0, 0.0))
    assert hand.maker.made[-1].settings.blend is None
    assert hand.rows > 0.0
    assert blend_rows(hand) == before


def test_a_lost_handle_freezes_and_is_reported(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(12.0, 0.0)
    hand.renders.advance()
    hand.renders.drag.lost = {0}
    hand.renders.advance()
    assert hand.drag.problem == LOST
    target = hand.drag.points[0].target
    hand.drag.aim(14.0, 0.0)
    assert hand.drag.points[0].target == target, "it is frozen"
    hand.drag.release()
    hand.renders.run_to_rest()
    assert hand.steps[-1] == "Drag a point", "what was reached stays"
    hand.drag.begin((4.0, 4.0))
    assert hand.drag.problem == ""


def test_content_that_stays_behind_is_reported_although_the_optimiser_has_arrived(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(12.0, 0.0)
    hand.renders.advance()
    hand.renders.drag.follows = 0.25
    hand.renders.advance(3)
    assert hand.renders.drag.report.is_settled
    assert hand.drag.distance == 9.0, "tracking finds it there; the optimiser is at the target"
    assert hand.drag.problem == "", "the hand may still move on"
    hand.drag.release()
    hand.renders.run_to_rest()
    assert hand.drag.problem == LOST
    assert [point.place for point in hand.drag.points] == [(7.0, 4.0)], "the handle is where its content is"
    hand.stroke()
    assert hand.drag.problem == ""


def test_a_handle_is_at_its_content_after_a_stroke_that_ends_a_little_short(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(12.0, 0.0)
    hand.renders.advance()
    hand.renders.drag.follows = 0.75
    hand.drag.release()
    hand.renders.run_to_rest()
    assert hand.drag.problem == ""
    assert [(point.place, point.target) for point in hand.drag.points] == [((13.0, 4.0), (13.0, 4.0))]


def test_a_stroke_that_comes_no_nearer_ends_by_itself(hand: Hand) -> None:
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(90.0, 0.0)
    hand.renders.advance()
    drag = hand.renders.drag
    place = drag.places[0]
    drag.set_target = lambda index, target: None
    hand.drag.release()
    original = drag.step

    def stuck() -> object:
        report = original()
        drag.places[0] = place
        return report

    drag.step = stuck
    hand.renders.run_to_rest()
    assert hand.steps[-1] == "Drag a point"
    assert hand.drag.problem == LOST, "the model has no picture that is nearer"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (SetParameter("layer", Tap("b8.conv0")), "layer"),
        (set_transform(Transform(x=0.25)), "transform"),
    ],
)
def test_an_obstacle_is_reported_in_a_sentence(hand: Hand, change: object, words: str) -> None:
    editing = hand.harness.controller.editing
    editing._editor.set_transient(change.apply(editing.session))  # type: ignore[attr-defined]
    assert not hand.drag.begin((4.0, 4.0))
    assert words in hand.harness.said(Level.WARNING)[-1]
    assert hand.drag.phase == "rest"


def test_what_moves_the_picture_is_named_where_no_stroke_can_begin(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    idle = Modulator("noise.gain", Fixed(0.5))
    moving = Modulation((idle, Modulator("slider/sefa/1", Fixed(1.0))))

    def refusal() -> str:
        assert not hand.drag.begin((4.0, 4.0))
        return hand.harness.said(Level.WARNING)[-1]

    editing.sound_of = lambda session: moving
    assert refusal() == "Sound moves Direction 2; switch that off in Controllers to drag points."
    editing.sound_of = lambda session: NO_MODULATION
    editing.sample_with(lambda session: moving)
    editing.follow_inputs()
    hand.harness.until(lambda: editing.moved_by)
    assert refusal() == "A controller moves Direction 2; switch that off in Controllers to drag points."
    assert hand.harness.controller.photo_projection.obstacle.endswith("in Controllers to search for a photo.")
    editing.sample_with(lambda session: NO_MODULATION)
    editing.follow_inputs()
    hand.harness.until(lambda: not editing.moved_by)
    walk = Track(WALK, period=Fraction(4), radius=0.5)
    editing.edit(SetTimeline(with_track(editing.session.timeline, walk)))
    editing.advance(Fraction(1), live=False)
    assert refusal() == "A walk moves the picture; mute its track in the timeline to drag points."


def test_a_drag_that_cannot_be_made_says_why_and_leaves_everything(hand: Hand) -> None:
    before = list(hand.steps)
    hand.maker.error = RequestError("There is no such block.")
    hand.drag.begin((4.0, 4.0))
    hand.drag.aim(4.0, 0.0)
    hand.renders.advance()
    assert hand.harness.said(Level.ERROR) == ["There is no such block."]
    assert (hand.drag.phase, hand.drag.points, hand.steps) == ("rest", (), before)


def test_without_a_model_nothing_begins(hand: Hand) -> None:
    hand.renders.model = None
    assert not hand.drag.begin((4.0, 4.0))


def test_rows_that_are_not_known_yet_are_waited_for(hand: Hand) -> None:
    harness = hand.harness
    harness.engine.gate.shut()
    harness.controller.editing.edit(GoToSeed(17))
    assert hand.drag.begin((4.0, 4.0))
    hand.drag.aim(5.0, 0.0)
    assert hand.maker.made == []
    harness.engine.gate.open()
    harness.rest()
    (made,) = hand.maker.made
    assert made.targets == [(9.0, 4.0)], "it aims at where the pointer is by now"


def test_the_edit_fades_between_the_pictures_before_and_after_and_undo_is_one_step(hand: Hand) -> None:
    assert hand.drag.share is None
    hand.stroke()
    assert hand.drag.share == 1.0
    editing = hand.harness.controller.editing
    before = len(hand.steps)
    for share in (0.8, 0.4):
        hand.drag.fade(share, False)
    hand.drag.fade(0.25)
    assert len(hand.steps) == before + 1
    assert [weight for _, weight in resolve_blend(editing.session)] == [0.75, 0.25]
    hand.drag.fade(0.0)
    assert hand.rows == 0.0, "the picture before, alone"
    editing.undo()
    assert hand.drag.share in (1.0, 0.25)


def test_a_second_stroke_fades_back_to_the_picture_before_the_first(hand: Hand) -> None:
    hand.stroke()
    hand.stroke((8.0, 8.0))
    hand.drag.fade(0.0)
    assert hand.rows == 0.0


def test_a_stroke_becomes_keys_of_the_timeline(hand: Hand) -> None:
    assert not hand.drag.has_stroke
    hand.drag.begin((4.0, 4.0))
    for step in range(1, 5):
        hand.harness.now_s += 0.5
        hand.drag.aim(8.0 * step, 0.0)
        hand.renders.advance()
    hand.drag.release()
    hand.renders.run_to_rest()
    hand.drag.keep_as_keys()
    timeline = hand.harness.controller.editing.session.timeline
    track = timeline.track("pinned_blend")
    assert track is not None
    firsts = [float(np.frombuffer(key.value[0][0].latent.point.rows, "<f4")[0]) for key in track.keys]
    assert firsts == sorted(firsts)
    assert firsts[0] == 0.0
    assert [track.keys[0].time, track.keys[-1].time] == [Fraction(0), Fraction(2)]
    assert hand.steps[-1] == "Keep stroke as keys"


def test_a_stroke_drags_the_picture_with_its_edits_and_its_result_keeps_them(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    editing.edit(AddBend("b8.conv0", "gain"))
    editing.edit(SetParameter("bend/1/gain", 2.0))
    hand.stroke()
    assert hand.maker.edits == [LocalEdits((Bend("b8.conv0", "gain", 2.0),))]
    assert resolve(editing.session).edits == hand.maker.edits[0]
    assert hand.steps[-1] == "Drag a point"


def test_edits_remove_handles_once_they_change_the_picture(hand: Hand) -> None:
    editing = hand.harness.controller.editing
    hand.drag.add((3.0, 3.0), is_pin=False)
    editing.edit(AddBend("b8.conv0", "gain"))
    assert hand.drag.points, "a bend at rest changes nothing"
    editing.edit(SetParameter("bend/1/gain", 2.0))
    assert not hand.drag.points


def test_a_slower_way_is_announced_once_until_another_one_is_taken(hand: Hand) -> None:
    hand.maker.slower_because = "Steps take longer."
    hand.stroke()
    hand.stroke()
    hand.maker.slower_because = ""
    hand.stroke()
    assert [message.sentence for message in hand.harness.messages.messages] == ["Steps take longer."]
    hand.maker.slower_because = "Steps take longer."
    hand.stroke()
    assert len(hand.harness.messages.messages) == 2


def test_a_walk_removes_handles_and_leaves_pins(hand: Hand) -> None:
    hand.drag.add((1.0, 1.0), is_pin=True)
    hand.drag.add((3.0, 3.0), is_pin=False)
    hand.harness.controller.editing.edit(SetParameter(PLACE, Position(5.0, 0.0)))
    assert [point.is_pin for point in hand.drag.points] == [True]


@pytest.mark.parametrize("is_nudge", [False, True], ids=["pressed", "nudged"])
def test_a_handle_whose_picture_has_played_on_becomes_a_new_one(
    hand: Hand, monkeypatch: pytest.MonkeyPatch, is_nudge: bool
) -> None:
    controller = hand.harness.controller
    hand.drag.add((3.0, 3.0), is_pin=False)
    hand.drag.add((20.0, 20.0), is_pin=True)
    hand.drag.select(0)

    def pause(on: bool) -> None:
        controller.editing.edit(SetParameter(PLACE, Position(5.0, 0.0)))

    monkeypatch.setattr(controller.playback, "set_playing", pause)
    if is_nudge:
        hand.drag.nudge(0.0, 0.0)
    else:
        assert hand.drag.begin((3.0, 3.0), 0)
    assert [(point.place, point.is_pin) for point in hand.drag.points] == [((20.0, 20.0), True), ((3.0, 3.0), False)]
    assert hand.drag.selected == 1


def test_another_model_forgets_points_and_network(hand: Hand) -> None:
    made: list[FakeDragMaker] = []

    def make() -> FakeDragMaker:
        made.append(FakeDragMaker())
        return made[-1]

    hand.drag._preparation = DragPreparation(make)
    hand.stroke()
    hand.drag.forget()
    assert hand.drag.points == ()
    hand.stroke()
    assert len(made) == 2


def test_a_stroke_on_the_real_render_thread(harness: Harness) -> None:
    maker = FakeDragMaker()
    harness.make_drag_maker = lambda: maker
    harness.engine.gives_rows = True
    harness.start()
    drag = harness.controller.point_drag
    assert drag.begin((4.0, 4.0))
    drag.aim(20.0, 0.0)
    harness.until(lambda: drag.phase == "moving")
    drag.release()
    harness.until(lambda: drag.phase == "rest")
    assert harness.labels[-1] == "Drag a point"
    assert drag.points[0].place == (24.0, 4.0)
    assert edited_latent(harness.controller.editing.session) is not None
