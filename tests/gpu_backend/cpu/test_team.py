"""A team does every lane's part, raises what a lane raised, and ends its threads."""

import threading
import time

import pytest
import torch

from gpu_backend.cpu.team import CHANNEL_SPLIT_MAX_SIDE, Team, division_of, layer_parts, spans


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("total", [0, 1, 3, 4, 17])
def test_spans_cover_everything_once(total: int, lanes: int) -> None:
    parts = spans(total, lanes)
    assert len(parts) == lanes
    assert [item for first, end in parts for item in range(first, end)] == list(range(total))


def test_small_layers_are_split_by_channels_and_large_ones_by_rows_of_tiles() -> None:
    assert layer_parts(CHANNEL_SPLIT_MAX_SIDE, 7, 2) == [((0, 32), (0, 3)), ((0, 32), (3, 7))]
    assert layer_parts(64, 7, 3) == [((0, 20), (0, 7)), ((20, 40), (0, 7)), ((40, 64), (0, 7))]


def test_one_lane_is_the_calling_thread() -> None:
    team = Team(1)
    ran: list[tuple[int, int]] = []
    team.run(lambda lane: ran.append((lane, threading.get_ident())))
    assert ran == [(0, threading.get_ident())]
    team.close()


def test_each_lane_runs_once_with_one_torch_thread() -> None:
    team = Team(3)
    for _ in range(20):
        ran: dict[int, int] = {}
        team.run(lambda lane, ran=ran: ran.update({lane: torch.get_num_threads()}))  # type: ignore[misc]
        assert ran == {0: 1, 1: 1, 2: 1}
    team.close()


def test_up_to_three_threads_are_lanes_and_more_are_divided_between_two() -> None:
    divisions = [division_of(threads) for threads in range(1, 17)]
    assert divisions[:8] == [(1, 1), (2, 1), (3, 1), (2, 2), (2, 2), (2, 3), (2, 3), (2, 4)]
    assert divisions[15] == (2, 8)
    used = [lanes * width for lanes, width in divisions]
    assert used == sorted(used)


@pytest.mark.parametrize("lanes", [1, 2])
def test_each_lane_has_its_torch_threads_and_the_caller_keeps_its_own(lanes: int) -> None:
    before = torch.get_num_threads()
    team, found = Team(lanes, before + 1), list[int]()
    team.run(lambda lane: found.append(torch.get_num_threads()))
    team.run_alone(lambda: found.append(torch.get_num_threads()))
    assert found == [before + 1] * (lanes + 1)
    with pytest.raises(ZeroDivisionError):
        team.run_alone(lambda: found.append(1 // 0))
    assert torch.get_num_threads() == before
    team.close()


def test_work_that_runs_narrow_has_one_torch_thread_a_lane() -> None:
    before, team, found = torch.get_num_threads(), Team(2, 3), list[int]()

    def look(lane: int) -> None:
        found.append(torch.get_num_threads())

    team.run_narrow(lambda: team.run(look))
    assert found == [1, 1]
    with pytest.raises(ZeroDivisionError):
        team.run_narrow(lambda: found.append(1 // 0))
    team.run(look)
    assert found[2:] == [3, 3]
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [before]
    assert torch.get_num_threads() == before
    team.close()


def test_an_error_in_a_lane_is_raised_and_the_team_goes_on() -> None:
    team = Team(2)

    def fail(lane: int) -> None:
        if lane == 1:
            raise RuntimeError("lane 1 fell over")

    with pytest.raises(RuntimeError, match="fell over"):
        team.run(fail)
    ran: set[int] = set()
    team.run(ran.add)
    assert ran == {0, 1}
    team.close()
    team.close()


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_closed_team_works_no_more(lanes: int) -> None:
    team = Team(lanes)
    team.run(lambda lane: None)
    team.close()
    with pytest.raises(RuntimeError, match="was closed"):
        team.run(lambda lane: None)


@pytest.mark.parametrize("lanes", [1, 2])
def test_closing_from_another_thread_waits_for_the_task_under_way(lanes: int) -> None:
    team = Team(lanes)
    begun, go_on = threading.Event(), threading.Event()
    done: list[int] = []

    def task(lane: int) -> None:
        begun.set()
        assert go_on.wait(30)
        done.append(lane)

    worker = threading.Thread(target=team.run, args=(task,))
    worker.start()
    assert begun.wait(30)
    closer = threading.Thread(target=team.close)
    closer.start()
    go_on.set()
    worker.join(30)
    closer.join(30)
    assert not worker.is_alive()
    assert not closer.is_alive()
    assert sorted(done) == list(range(lanes))


@pytest.mark.parametrize("lanes", [1, 3])
def test_serial_work_runs_once_with_one_torch_thread(lanes: int) -> None:
    team, found = Team(lanes), list[int]()
    team.run_alone(lambda: found.append(torch.get_num_threads()))
    assert len(found) == 1
    assert lanes == 1 or found == [1]
    with pytest.raises(ZeroDivisionError):
        team.run_alone(lambda: found.append(1 // 0))
    team.close()
    with pytest.raises(RuntimeError, match="closed"):
        team.run_alone(lambda: None)


def test_inside_of_what_is_done_alone_the_first_lane_goes_on_without_a_change_of_thread() -> None:
    team, ran = Team(3), list[tuple[int, int]]()
    threads: list[int] = []

    def picture() -> None:
        threads.append(threading.get_ident())
        for _ in range(4):
            team.run(lambda lane: ran.append((lane, threading.get_ident())))

    team.run_alone(picture)
    assert sorted(lane for lane, _ in ran) == [0] * 4 + [1] * 4 + [2] * 4
    assert {thread for lane, thread in ran if lane == 0} == set(threads)
    assert threads[0] not in {thread for lane, thread in ran if lane != 0} | {threading.get_ident()}
    team.close()


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_inside_of_what_is_done_alone_waits_for_the_other_lanes(failing: int) -> None:
    team = Team(2)
    go_on, ended = threading.Event(), list[int]()

    def task(lane: int) -> None:
        if lane == failing:
            go_on.set()
            raise RuntimeError(f"lane {lane} fell over")
        assert go_on.wait(30)
        ended.append(lane)

    with pytest.raises(RuntimeError, match=f"lane {failing} fell over"):
        team.run_alone(lambda: team.run(task))
    assert ended == [1 - failing]
    team.run(ended.append)
    assert sorted(ended[1:]) == [0, 1]
    team.close()


def test_a_team_whose_threads_cannot_start_reports_it_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    team = Team(2)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        team.run(lambda lane: None)
    team.close()


def test_a_team_works_after_a_start_that_failed_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def refuse_the_second(thread: threading.Thread) -> None:
        if len(started) == 1:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    team = Team(2)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse_the_second)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            team.run(lambda lane: None)
    assert not started[0].is_alive()
    lanes: list[int] = []
    working = threading.Thread(target=team.run, args=(lanes.append,), daemon=True)
    working.start()
    working.join(10.0)
    assert sorted(lanes) == [0, 1]
    team.close()


class Interrupted:
    """Stands for the queue of a lane's results: the next wait ends with Ctrl-C."""

    def __init__(self, team: Team) -> None:
        self._team, self._queue = team, team._results[0]
        team._results[0] = self  # type: ignore[call-overload]

    def put(self, result: BaseException | None) -> None:
        self._queue.put(result)

    def get(self) -> None:
        self._team._results[0] = self._queue
        raise KeyboardInterrupt


def interrupted_team(gate: threading.Event, done: list[int]) -> Team:
    """Return a team whose first lane waits at a gate, with a layer to share, after Ctrl-C."""
    team = Team(2)
    team.run(lambda lane: None)
    Interrupted(team)

    def picture() -> None:
        gate.wait()
        team.run(done.append)

    with pytest.raises(KeyboardInterrupt):
        team.run_alone(picture)
    return team


def test_a_team_that_ctrl_c_interrupted_is_closed_when_its_picture_is_done() -> None:
    gate, done = threading.Event(), list[int]()
    team = interrupted_team(gate, done)
    closing = threading.Thread(target=team.close, daemon=True)
    closing.start()
    while not team._is_closed:
        time.sleep(0.001)
    gate.set()
    closing.join(60)
    assert not closing.is_alive(), "the first lane waits for no lane that has ended"
    assert sorted(done) == [0, 1]


def test_a_team_that_ctrl_c_interrupted_finishes_its_picture_before_the_next() -> None:
    gate, done = threading.Event(), list[int]()
    team = interrupted_team(gate, done)
    gate.set()
    team.run_alone(lambda: done.append(7))
    assert sorted(done[:2]) == [0, 1]
    assert done[2:] == [7]
    team.close()
