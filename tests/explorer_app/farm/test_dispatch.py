from explorer_app.farm.dispatch import MAX_CHUNK_FRAMES, MAX_FAILURES, MAX_RETURNED_FRAMES, UnitPool, WorkerRecord


def take(pool: UnitPool, worker: WorkerRecord, *others: str, is_returned: bool = False) -> range | None:
    return pool.take(worker, workers=1 + len(others), others=others, is_returned=is_returned)


def fast() -> WorkerRecord:
    worker = WorkerRecord("fast")
    worker.note_chunk(1000, 1.0)
    return worker


def test_the_first_chunk_of_a_worker_is_small_and_later_ones_take_a_few_seconds() -> None:
    pool = UnitPool(range(10_000), 1)
    worker = WorkerRecord("one")
    assert take(pool, worker) == range(2)
    worker.note_chunk(2, 0.05)
    assert take(pool, worker) == range(2, 162)
    worker.note_chunk(16_000, 1.0)
    assert len(take(pool, worker) or ()) == MAX_CHUNK_FRAMES


def test_chunks_that_come_back_as_a_message_are_small() -> None:
    assert len(take(UnitPool(range(10_000), 1), fast(), is_returned=True) or ()) == MAX_RETURNED_FRAMES


def test_the_last_chunks_are_small_so_that_all_workers_end_together() -> None:
    pool = UnitPool(range(40), 1)
    lengths = []
    while units := take(pool, fast(), "other"):
        lengths.append(len(units))
    assert lengths[0] == 10
    assert lengths[-1] == 1
    assert sum(lengths) == 40


def test_a_chunk_has_no_gaps() -> None:
    pool = UnitPool([0, 1, 2, 7, 8], 1)
    assert take(pool, fast()) == range(3)
    assert take(pool, fast()) == range(7, 8)


def test_units_of_a_video_are_segments() -> None:
    pool = UnitPool(range(100), 60)
    worker = WorkerRecord("one")
    worker.note_chunk(60, 2.0)
    assert take(pool, worker) == range(2)


def test_a_failed_chunk_is_retried_on_another_worker_if_possible() -> None:
    pool = UnitPool(range(3), 1)
    one = WorkerRecord("one")
    units = take(pool, one, "two")
    assert units is not None
    pool.give_back(units)
    assert not pool.note_failure(units, "one")
    taken = take(pool, one, "two")
    assert taken is not None
    assert not set(taken) & set(units)
    assert take(pool, WorkerRecord("two"), "one") == range(units[0], units[0] + 1)
    pool.give_back(range(units[0], units[0] + 1))
    assert take(pool, one) == range(units[0], units[0] + 1)  # no other worker is left


def test_a_unit_that_fails_too_often_is_reported() -> None:
    pool = UnitPool(range(8), 1)
    units = take(pool, fast())
    assert units is not None
    assert not pool.note_failure(units, "fast")  # which of them it was is not known
    pool.give_back(units)
    failures = []
    for _ in range(MAX_FAILURES):
        alone = take(pool, fast())
        assert alone == range(1)
        failures.append(pool.note_failure(alone, "fast"))
        pool.give_back(alone)
    assert failures == [False, False, True]


def test_a_worker_that_fails_three_times_is_set_aside() -> None:
    worker = WorkerRecord("one")
    assert [worker.note_failure("It broke.") for _ in range(3)] == [False, False, True]
    assert worker.is_set_aside
    assert worker.last_error == "It broke."


def test_a_death_is_laid_to_a_chunk_only_when_it_happens_again() -> None:
    pool = UnitPool(range(40), 1)
    units = take(pool, fast())
    assert units == range(20)
    assert not pool.note_death(units, "one")
    pool.give_back(units)
    assert take(pool, fast()) == range(20)  # together, as before
    assert not pool.note_death(units, "two")
    pool.give_back(units)
    assert take(pool, fast()) == range(1)
