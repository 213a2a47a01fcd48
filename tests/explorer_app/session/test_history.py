from fractions import Fraction

import pytest

from explorer_app.session.history import History, KeptSession, tags_of
from explorer_app.session.parameters import SetParameter
from explorer_app.session.session import Position, Session
from explorer_app.session.timeline.edits import with_key
from explorer_app.session.timeline.evaluation import keyed_at
from explorer_app.session.tracks import Timeline
from gpu_backend import MAX_KEPT, MAX_STEPS


def at(x: float) -> Session:
    return Session(position=Position(float(x), 0.0))


def history(*xs: float) -> History:
    made = History()
    for x in xs:
        made = made.added(at(x), f"Step {x}")
    return made


def test_a_new_history_has_nothing_to_take_back() -> None:
    made = History()
    assert made.current is None
    assert not made.can_undo
    assert not made.can_redo
    assert (made.undo_label, made.redo_label) == ("", "")


def test_labels_say_what_undo_and_redo_would_do() -> None:
    made = history(0, 1, 2).moved(1)
    assert (made.undo_label, made.redo_label) == ("Step 1", "Step 2")


def test_a_step_after_going_back_replaces_what_came_then() -> None:
    made = history(0, 1, 2).moved(0).added(at(9), "New")
    assert [entry.session.position.x for entry in made.entries] == [0, 9]


def test_the_oldest_steps_are_forgotten_but_what_was_kept_stays() -> None:
    made = history(0).starred(1, True)
    for x in range(MAX_STEPS + 20):
        made = made.added(at(x), "Walk")
    assert len(made.entries) == MAX_STEPS
    assert made.position == MAX_STEPS - 1
    assert [entry.number for entry in made.kept] == [1]
    assert made.entry(1) is not None


def test_numbers_are_never_given_twice() -> None:
    made = history(0, 1, 2).moved(0).added(at(3), "New").amended(at(4))
    numbers = [entry.number for entry in made.entries]
    assert numbers == [1, 5]
    assert made.entries[-1].label == "New"


def test_going_where_no_step_is_is_refused() -> None:
    with pytest.raises(IndexError, match=r"0\.\.1"):
        history(0, 1).moved(2)


def test_five_thousand_kept_latents_are_kept_and_no_star_is_lost() -> None:
    made = History().with_kept(tuple(KeptSession(at(x), f"kept {x}") for x in range(5000)))
    assert len(made.kept) == 5000
    assert made.kept[4999].number == 5000
    full = made.with_kept(tuple(KeptSession(at(x), "more") for x in range(MAX_KEPT)))
    assert len(full.kept) == MAX_KEPT
    assert full.added(at(1), "Walk").starred(full.next_number, True).kept == full.kept


def test_a_star_is_set_once_and_taken_away() -> None:
    made = history(0, 1).starred(2, True).starred(2, True).starred(77, True)
    assert [entry.number for entry in made.kept] == [2]
    assert made.is_kept(2)
    assert made.starred(2, False).kept == ()


def test_a_kept_entry_is_called_after_its_place_until_it_is_renamed() -> None:
    made = History().added(at(3), "Walk").added(at(3.4), "Walk").starred(1, True, 9.0).starred(2, True, 8.0)
    assert [(entry.label, entry.kept_s) for entry in made.kept] == [("Seed 3", 9.0), ("Near seed 3", 8.0)]
    assert [entry.label for entry in made.renamed(2, "Dawn").kept] == ["Seed 3", "Dawn"]
    assert [entry.label for entry in made.renamed(2, "Dawn").entries] == ["Walk", "Walk"]
    assert made.renamed(77, "Dawn") == made


@pytest.mark.parametrize(
    ("number", "before", "order"),
    [(3, 1, [3, 1, 2]), (1, 3, [2, 1, 3]), (1, None, [2, 3, 1]), (2, 2, [1, 2, 3]), (99, 1, [1, 2, 3])],
)
def test_kept_entries_are_put_in_another_order(number: int, before: int | None, order: list[int]) -> None:
    made = History()
    for x in range(3):
        made = made.added(at(x), "Walk").starred(x + 1, True)
    assert [entry.number for entry in made.moved_kept(number, before).kept] == order


@pytest.mark.parametrize("steps_first", [True, False], ids=["steps first", "kept first"])
def test_steps_that_were_kept_have_their_star_after_a_restart(steps_first: bool) -> None:
    made = History().added(at(0), "Start")
    for x in (1, 2, 3):
        made = made.added(at(x), "Walk")
    made = made.starred(2, True).starred(4, True)
    steps = [(entry.session, entry.label) for entry in made.entries]
    kept = tuple(KeptSession(entry.session, entry.label) for entry in made.kept)
    again = History().added(at(3), "Start")
    again = again.preceded_by(steps, 3).with_kept(kept) if steps_first else again.with_kept(kept).preceded_by(steps, 3)
    assert [entry.session for entry in again.entries] == [at(x) for x in range(4)]
    assert [again.is_kept(entry.number) for entry in again.entries] == [False, True, False, True]
    assert [entry.session for entry in again.kept] == [at(1), at(3)]
    assert len({entry.number for entry in again.entries}) == 4
    assert all(entry.number < again.next_number for entry in (*again.entries, *again.kept))


def test_a_kept_session_gives_its_star_to_one_step_alone() -> None:
    made = History().added(at(0), "Start").added(at(1), "Walk").added(at(0), "Walk")
    made = made.with_kept((KeptSession(at(0), "here"), KeptSession(at(7), "elsewhere")))
    assert [made.is_kept(entry.number) for entry in made.entries] == [False, False, True]
    assert len({entry.number for entry in (*made.entries, *made.kept)}) == 4


def test_tags_are_words_between_commas_without_doubles() -> None:
    assert tags_of(" snow,  first   snow ,SNOW,, ") == ("SNOW", "first snow")
    assert [len(tag) for tag in tags_of("x" * 99)] == [40]
    assert len(tags_of(",".join(map(str, range(99))))) == 16


def test_tagging_several_replaces_what_all_have_and_leaves_what_some_have() -> None:
    made = History().with_kept(
        (
            KeptSession(at(1), "a", tags=("snow", "night")),
            KeptSession(at(2), "b", tags=("snow",)),
            KeptSession(at(3), "c"),
        )
    )
    first, second, third = (entry.number for entry in made.kept)
    assert made.common_tags((first, second)) == ("snow",)
    assert made.common_tags(()) == ()
    tagged = made.tagged((first, second), ("fog",))
    assert [entry.tags for entry in tagged.kept] == [("fog", "night"), ("fog",), ()]
    assert tagged.tagged((third,), ("sun",)).kept[2].tags == ("sun",)


def test_a_step_keeps_what_was_set_by_hand_if_the_playhead_has_moved_before_the_end_of_the_run() -> None:
    timeline = with_key(with_key(Timeline(), "truncation.psi", Fraction(0), 0.0), "truncation.psi", Fraction(8), 1.0)
    by_hand = SetParameter("truncation.psi", 0.3).apply(Session(timeline=timeline))
    moved = keyed_at(by_hand, 6.0)
    steps = [(at(0), "Start"), (by_hand, "Truncation")]
    again = History().added(moved, "Start", 6.0).preceded_by(steps, 1, (0.0, 2.0))
    assert [entry.session for entry in again.entries] == [at(0), by_hand]
    assert [entry.time_s for entry in again.entries] == [0.0, 2.0]
    assert again.position == 1


def test_a_gesture_on_keyed_values_that_a_crash_cut_short_is_a_step_after_the_last_one() -> None:
    timeline = with_key(Timeline(), "truncation.psi", Fraction(0), 0.0)
    step = keyed_at(Session(timeline=timeline), 0.0)
    moved = SetParameter("truncation.psi", 0.3).apply(step)
    again = History().added(moved, "Start", 0.0).preceded_by([(at(0), "Start"), (step, "Key")], 1, (0.0, 0.0))
    assert [entry.session for entry in again.entries] == [at(0), step, moved]
    assert again.position == 2
