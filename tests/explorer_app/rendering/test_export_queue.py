from explorer_app.rendering.export_queue import ExportQueue
from gpu_backend import Frame, RenderRequest


class Job:
    total = 1

    def next_request(self) -> RenderRequest | None:
        return None

    def deliver(self, frame: Frame) -> None: ...

    def close(self, cancelled: bool) -> None: ...


def turns(queue: ExportQueue) -> list[tuple[Job, bool]]:
    """Finish job after job and return the order."""
    order = []
    while (turn := queue.turn()) is not None:
        order.append((turn.job, turn.is_cancelled))
        queue.finish(turn.job)
    return order


def test_the_job_that_came_first_is_worked_at_until_it_is_done():
    queue, jobs = ExportQueue(), [Job(), Job(), Job()]
    for job in jobs:
        queue.put(job)
    assert [queue.turn().job for _ in range(3)] == [jobs[0]] * 3
    assert turns(queue) == [(job, False) for job in jobs]


def test_a_single_picture_passes_the_frames_that_wait_but_not_another_picture():
    queue, sequence, first, second = ExportQueue(), Job(), Job(), Job()
    queue.put(sequence)
    queue.put(first, urgent=True)
    queue.put(second, urgent=True)
    assert [job for job, _ in turns(queue)] == [first, second, sequence]


def test_a_cancelled_job_ends_at_the_next_turn_wherever_it_stands():
    queue, first, second = ExportQueue(), Job(), Job()
    queue.put(first)
    queue.put(second)
    queue.cancel(second)
    assert turns(queue) == [(second, True), (first, False)]
    queue.cancel(second)
    assert queue.turn() is None


def test_draining_gives_every_job_once():
    queue, jobs = ExportQueue(), [Job(), Job()]
    for job in jobs:
        queue.put(job)
    queue.cancel(jobs[1])
    assert queue.drain() == jobs
    assert queue.turn() is None
    assert len(queue) == 0
