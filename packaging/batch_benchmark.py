"""Measure pictures a second where several are rendered at a time: ``python packaging/batch_benchmark.py [CASE ...]``.

``batch``: eight pictures of 1024 x 1024 a run, random weights. The first row is the bench's: the plan alone, bytes left
on the device. The second is `Renderer.submit_batch` with two runs in flight: recipes in, frames of the host out. Its
share of the first row is printed, and where its time goes: the device, and the calling thread's processor time.

``grid``: 25 variations of the bundled model that follow a moving position, with the preview beside them, through the
render thread as the window uses it. Printed: how often a second all 25 cells are new, how many previews came
meanwhile, and what computing the cells costs the window's thread.

``--device cpu`` shows that it works, nothing else. The render thread needs PySide6, but no event loop.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import explorer_app  # noqa: E402, F401 - before NumPy, whose library of linear algebra it keeps to one thread

# isort: split
from explorer_app.assets import bundled_model  # noqa: E402
from explorer_app.session.resolve import resolve  # noqa: E402
from explorer_app.session.session import ModelReference, Position, Session  # noqa: E402
from explorer_app.session.variations import grid_cells, random_neighbours  # noqa: E402
from gpu_backend import (  # noqa: E402
    Latent,
    Model,
    Point,
    Recipe,
    Renderer,
    RenderRequest,
    RowRange,
    random_model,
    read_model,
    shape_of,
)
from gpu_backend.bench.device_rate import DeviceRate  # noqa: E402
from gpu_backend.renderer.pending_frame import PendingFrame  # noqa: E402

BATCH = 8
SIDE = 5
"""Rows and columns of the grid."""

LIMIT_S = 60.0


def main(words: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="batch, grid; default: both")
    parser.add_argument("--device", default="auto", help="cpu, cuda or cuda:1; default: as found")
    parser.add_argument("--shape", default="ffhq1024", help="network of the case batch; default: ffhq1024")
    parser.add_argument("--seconds", type=float, default=5.0, help="time of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="the rows of batch alternate; the fastest counts")
    options = parser.parse_args(words)
    cases = options.cases or ["batch", "grid"]
    if set(cases) - {"batch", "grid"}:
        parser.error("the cases are batch and grid")
    if "batch" in cases:
        measure_batches(random_model(shape_of(options.shape), seed=1), options.device, options.seconds, options.rounds)
    if "grid" in cases:
        measure_grid(read_model(bundled_model()), options.device, options.seconds)
    return 0


class BatchLoop:
    """Renders batches with two runs in flight, and notes what they took."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._requests = batches(renderer.facts.model_id)
        self._waiting: deque[tuple[PendingFrame, ...]] = deque()
        self.device_ms: list[float] = []

    def step(self) -> int:
        """Submit a batch and wait for the one before; return how many frames came."""
        self._waiting.append(self._renderer.submit_batch(next(self._requests)))
        if len(self._waiting) < 2:
            return 0
        frames = [pending.wait() for pending in self._waiting.popleft()]
        self.device_ms += [frame.timings.device_ms or 0.0 for frame in frames]
        return len(frames)


def measure_batches(model: Model, device: str, seconds: float, rounds: int) -> None:
    """Print pictures a second of the plan alone, and of the renderer."""
    alone = through = device_ms = own_ms = 0.0
    rate = DeviceRate(model, device, "fp16", BATCH)
    with Renderer(model, device) as renderer:
        for _ in range(rounds):
            alone = max(alone, per_second(lambda: rate.render(4 * BATCH), seconds / rounds))
            loop = BatchLoop(renderer)
            own_s = time.thread_time()
            found = per_second(loop.step, seconds / rounds)
            own_s = time.thread_time() - own_s
            if found > through:
                count = len(loop.device_ms)
                through, device_ms, own_ms = found, sum(loop.device_ms) / count, 1e3 * own_s / count
    rate.close()
    tell(f"{renderer.device.name}, {model.facts.resolution} x {model.facts.resolution}, {BATCH} pictures a run")
    tell(f"  plan alone        {alone:8.1f} pictures a second")
    tell(
        f"  renderer          {through:8.1f} ({through / alone:.3f}); a picture takes {device_ms:.3f} ms of the "
        f"device, {own_ms:.3f} ms of the calling thread's processor"
    )


def batches(model_id: str) -> Iterator[list[RenderRequest]]:
    """Return lists of requests for pictures on the way from one seed to the next, as exports and walks have them."""
    number = 0
    while True:
        made = []
        for _ in range(BATCH):
            seed, share = divmod(number, 60)
            ends = tuple(
                (Recipe(Latent(Point((((seed + end) % 64, 1.0),)))), weight)
                for end, weight in ((0, 1.0 - share / 60), (1, share / 60))
            )
            made.append(RenderRequest(model_id, ends if share else ends[:1]))
            number += 1
        yield made


def per_second(work: Callable[[], int], seconds: float) -> float:
    """Return how much a function does a second, after it was called a few times."""
    for _ in range(4):
        work()
    start = time.perf_counter()
    done = 0
    while (took := time.perf_counter() - start) < seconds:
        done += work()
    return done / took


def measure_grid(model: Model, device: str, seconds: float) -> None:
    """Print how often a second the cells of a grid are all new."""
    from explorer_app.rendering.backend import Backend
    from explorer_app.rendering.device_choice import DeviceChoice
    from explorer_app.rendering.render_events import GridFailed, GridRendered, ModelOpened, ModelRefused
    from explorer_app.rendering.render_thread import RenderThread
    from explorer_app.rendering.tasks.grid import GridOrder

    facts = model.facts
    thread = RenderThread(Backend(), DeviceChoice(device))
    thread.start()
    thread.open(model)
    arrived: dict[int, int] = {}
    opened = [False]
    previews = [0]

    def listen() -> None:
        previews[0] += thread.take_frame() is not None
        for event in thread.take_events():
            if isinstance(event, ModelRefused | GridFailed):
                raise SystemExit(str(event.error))
            opened[0] = opened[0] or isinstance(event, ModelOpened)
            if isinstance(event, GridRendered):
                arrived[event.number] = arrived.get(event.number, 0) + len(event.cells)

    def until(is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + LIMIT_S
        while not is_so():
            listen()
            time.sleep(0.0001)
            if time.monotonic() > end:
                raise SystemExit(f"Nothing came for {LIMIT_S:g} s.")

    cells = grid_cells(SIDE, SIDE)
    base = Session(model=ModelReference("", facts.name, facts.model_id))
    own_s = [0.0]

    def order(number: int, *, with_preview: bool) -> None:
        start = time.thread_time()
        session = replace(base, position=Position(0.01 * number, 0.0))
        made = random_neighbours(session, cells, 1, 0.3, rows, facts.num_ws)
        items = tuple((cell, resolve(one)) for cell, one in zip(cells, made, strict=True))
        own_s[0] += time.thread_time() - start
        if with_preview:
            thread.submit(resolve(session), None)
        thread.request_grid(GridOrder(number, items, (), 256))

    rows = RowRange()
    try:
        until(lambda: opened[0])
        number = 0
        for with_preview in (False, True):
            first = None
            while True:
                number += 1
                order(number, with_preview=with_preview)
                until(lambda: arrived.get(number, 0) >= len(cells))  # noqa: B023
                if first is None and number % 10 == 0:
                    first, start, own_s[0], previews[0] = number, time.perf_counter(), 0.0, 0
                if first is not None and time.perf_counter() - start > seconds:
                    break
            took, count = time.perf_counter() - start, number - first
            beside = f" and {previews[0] / took:.1f} previews beside them" if with_preview else ""
            tell(
                f"{len(cells)} variations of {facts.resolution} x {facts.resolution}: {count / took:.1f} times a "
                f"second ({len(cells) * count / took:.0f} pictures){beside}; {1e3 * own_s[0] / count:.2f} ms of the "
                "window's thread for the cells"
            )
    finally:
        thread.close()


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
