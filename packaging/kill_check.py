"""Kill the program at every file operation of its writes: ``python packaging/kill_check.py [--every N] [CASE ...]``.

For each case a child process writes a new state over a former one and ends by SIGKILL just before its n-th file
operation, for n = 0, 1, 2 and so on: opening, creating, renaming or deleting a file or folder, and flushing one to the
disk. Another child then opens what is there, as the next start does: each file holds the former or the new state,
whole. A last child writes again, and no part file may remain after it.

Prints a line for each case, and exits with 1 if one of them failed. ``--every N`` tries every N-th operation only.
The script needs a system that can fork.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from PySide6.QtCore import QCoreApplication  # noqa: E402

from explorer_app.controller.autosave import Autosave  # noqa: E402
from explorer_app.controller.file_worker import FileWorker  # noqa: E402
from explorer_app.exporting.export_list import new_record, with_changes, with_job  # noqa: E402
from explorer_app.exporting.export_store import ExportStore  # noqa: E402
from explorer_app.exporting.job import SequenceJob  # noqa: E402
from explorer_app.exporting.keyframes import Keyframe  # noqa: E402
from explorer_app.exporting.manifest import read_manifest  # noqa: E402
from explorer_app.exporting.picture import read_picture, write_picture  # noqa: E402
from explorer_app.exporting.sequence import SequenceSettings  # noqa: E402
from explorer_app.exporting.video.video_format import VideoFormat  # noqa: E402
from explorer_app.messages import Level, MessageLog  # noqa: E402
from explorer_app.session.history import History, HistoryEntry, KeptSession  # noqa: E402
from explorer_app.session.model_places import ModelPlaces  # noqa: E402
from explorer_app.session.patch_file import load_patches, save_patches  # noqa: E402
from explorer_app.session.patches import Patch  # noqa: E402
from explorer_app.session.resolve import resolve  # noqa: E402
from explorer_app.session.session import ModelReference, Position, Session  # noqa: E402
from explorer_app.session.storage import SessionFile, load_session_file, save_session  # noqa: E402
from explorer_app.settings import Settings  # noqa: E402
from gpu_backend import (  # noqa: E402
    Frame,
    FrameTimings,
    Model,
    NamedDirections,
    RenderRequest,
    RowRange,
    random_model,
    read_directions,
    read_latent,
    read_model,
    shape_of,
    stored_latent,
    write_directions,
    write_latent,
    write_safetensors,
)

OPERATIONS = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate")
"""Audit events of file operations; flushing raises none and is counted apart."""

PATIENCE_S = 60.0
MODEL = ModelReference("", "m", "ab" * 32)
FRAMES = 9


@dataclass(frozen=True, slots=True)
class Case:
    """Something that the program writes.

    Attributes
    ----------
    write
        Writes state `number` into a folder, over that of a smaller number.
    check
        Raises AssertionError unless a folder holds state `former` or `new`, whole.
    """

    name: str
    write: Callable[[Path, int], None]
    check: Callable[[Path, int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """How often a case was killed, in how many of these its former state was left, and what went wrong."""

    name: str
    kills: int
    former: int
    problem: str = ""


def main(words: Sequence[str]) -> int:
    """Run the cases and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(case.name for case in CASES))
    options = parser.parse_args(words)
    has_failed = False
    tell(f"{'written':<16}{'kills':>8}{'former left':>14}{'new left':>10}  outcome")
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        result = tried(case, max(1, options.every))
        has_failed = has_failed or bool(result.problem)
        counts = f"{result.kills:>8}{result.former:>14}{result.kills - result.former:>10}"
        tell(f"{result.name:<16}{counts}  {result.problem or 'whole, no parts left'}")
    return int(has_failed)


def tell(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def tried(case: Case, every: int) -> Result:
    """Kill a case at every file operation, each time over the same former state."""
    kills = former_left = 0
    with tempfile.TemporaryDirectory(prefix="kill-check-") as name:
        start, folder = Path(name) / "start", Path(name) / "now"
        start.mkdir()
        problem = in_child(lambda: case.write(start, 1))[1]
        operation = 0
        while not problem:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(start, folder)
            was_killed, problem = in_child(functools.partial(killed, case, folder, operation))
            if not was_killed:
                break
            kills += 1
            problem = problem or in_child(lambda: case.check(folder, 1, 2))[1]
            if not problem and not in_child(lambda: case.check(folder, 1, 1))[1]:
                former_left += 1
            problem = problem or in_child(lambda: case.write(folder, 3))[1]
            problem = problem or in_child(lambda: case.check(folder, 3, 3))[1]
            left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.part"))
            if left and not problem:
                problem = f"the next start leaves {', '.join(left)}"
            if problem:
                problem = f"killed before operation {operation}: {problem}"
            operation += every
    return Result(case.name, kills, former_left, problem)


def killed(case: Case, folder: Path, operation: int) -> None:
    """Write state 2; end by SIGKILL before the file operation of that number within the folder."""
    left = [operation]
    inside = str(folder)

    def count() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event in OPERATIONS and any(inside in str(argument) for argument in arguments[:2]):
            count()

    flush = os.fsync

    def flushed(descriptor: int) -> None:
        count()
        flush(descriptor)

    os.fsync = flushed
    sys.addaudithook(hear)
    case.write(folder, 2)


def in_child(task: Callable[[], None]) -> tuple[bool, str]:
    """Run a task in a child process; return whether it was killed, and in one line what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(int(PATIENCE_S))
        try:
            task()
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            os.write(writer, f"{type(error).__name__} in {where.name}: {error}".encode()[:4000])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        said = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return os.WIFSIGNALED(status), " ".join(said.split())


def session_of(number: float) -> Session:
    """Return the session of a state."""
    return Session(model=MODEL, position=Position(float(number), 0.0))


# -- the user's state folder ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def autosave(folder: Path) -> Iterator[tuple[Autosave, dict[str, object], MessageLog]]:
    """Load the state folder as a start does, wait for what comes later, and close at the end."""
    application = QCoreApplication.instance() or QCoreApplication([])
    messages = MessageLog()
    worker = FileWorker(messages)
    saver = Autosave(folder, worker, messages)
    loaded: dict[str, object] = {}
    arrived: list[None] = []
    saver.history_loaded.connect(lambda file: loaded.update(history=file))
    saver.kept_merged.connect(lambda kept, gone: loaded.update(kept=kept))
    loaded["session"] = saver.load()
    worker.fetch(lambda: None, arrived.append)
    end = time.monotonic() + PATIENCE_S
    while not arrived and time.monotonic() < end:
        application.processEvents()
    try:
        yield saver, loaded, messages
    finally:
        saver.close()
        worker.close()


def write_state(folder: Path, number: int) -> None:
    """Walk on and keep a session: session, history and kept sessions are written."""
    with autosave(folder) as (saver, loaded, _):
        kept = loaded.get("kept", ())
        assert isinstance(kept, tuple)
        sessions = [session_of(x) for x in range(number + 1)]
        steps = tuple(HistoryEntry(place, session, "Walk") for place, session in enumerate(sessions, 1))
        saver.remember(sessions[-1], History(steps, number, next_number=number + 2))
        saver.keep((*kept, KeptSession(sessions[-1], f"state {number}", 1.0)))
        saver.flush()


def check_state(folder: Path, former: int, new: int) -> None:
    """Expect the session, the history and what was kept, each former or new."""
    with autosave(folder) as (_, loaded, messages):
        said = [message.sentence for message in messages.messages if message.level >= Level.WARNING]
        assert not said, said
        assert loaded["session"] in (session_of(former), session_of(new)), loaded["session"]
        history, kept = loaded["history"], loaded["kept"]
        assert isinstance(history, SessionFile)
        assert isinstance(kept, tuple)
        assert len(history.steps) in (former + 1, new + 1), len(history.steps)
        assert history.position == len(history.steps) - 1
        labels = {item.label for item in kept}
        assert labels >= {f"state {former}"}, labels
        assert former != new or f"state {new}" in labels
    assert not list(folder.glob("*.broken"))


def write_settings(folder: Path, number: int) -> None:
    """Change the preferences."""
    settings = Settings(folder / "settings.json", MessageLog())
    settings.change(last_model=f"model {number}", choices={"state": str(number)})
    settings.save()


def check_settings(folder: Path, former: int, new: int) -> None:
    """Expect one of both, without a message."""
    messages = MessageLog()
    values = Settings(folder / "settings.json", messages).values
    assert not messages.messages, messages.messages
    assert values.last_model in (f"model {former}", f"model {new}"), values.last_model
    assert values.choices["state"] == values.last_model.removeprefix("model ")


def write_places(folder: Path, number: int) -> None:
    """Open one model more."""
    ModelPlaces(folder / "models.json").remember(f"{number:064x}", folder / f"{number}.pkl")


def check_places(folder: Path, former: int, new: int) -> None:
    """Expect the former place, and of the new one nothing or all."""
    places = ModelPlaces(folder / "models.json")
    found = [Path(places.last_seen(ModelReference("", "", f"{number:064x}"))).name for number in range(1, 4)]
    assert found[former - 1] == f"{former}.pkl", found
    assert found[new - 1] in ("", f"{new}.pkl"), found
    assert not any(found[new:]), found


def write_exports(folder: Path, number: int) -> None:
    """Take over what the last start left, put one export behind the others and begin it."""
    store = ExportStore(folder, folder)
    store.claim()
    key = Keyframe.of(resolve(session_of(0)))
    settings = SequenceSettings((key, key), folder / "out", f"walk{number}", MODEL, "w-linear", FRAMES - 1, z_dim=8)
    record = new_record(settings, store.owner)
    store.add(record, settings, lambda jobs: with_job(jobs, record))
    store.update(lambda jobs: with_changes(jobs, record.job_id, state="running"))
    store.close()


def check_exports(folder: Path, former: int, new: int) -> None:
    """Expect every export but perhaps the newest, with its settings."""
    store = ExportStore(folder, folder)
    jobs, _ = store.claim()
    names = [job.name for job in jobs]
    assert f"walk{former}" in names, names
    assert former != new or names[-1] == f"walk{new}", names
    for job in jobs:
        assert job.state == "paused", job
        assert store.settings(job).name == job.name
    assert not list(folder.glob("*.broken"))
    store.close()


# -- files of a user ----------------------------------------------------------------------------------------------


def write_session(folder: Path, number: int) -> None:
    """Save a session under its name."""
    session = session_of(number)
    save_session(folder / "mine.loom", session, (KeptSession(session, "kept"),), ((session, "Walk"),), 0)


def check_session(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    file = load_session_file(folder / "mine.loom")
    assert file.session in (session_of(former), session_of(new))
    assert file.kept[0].session == file.steps[0][0] == file.session


def frame_of(request: RenderRequest) -> Frame:
    """Return a small picture, another one for another request."""
    chance = np.random.default_rng(zlib.crc32(repr(request).encode()))
    pixels = chance.integers(0, 256, (8, 8, 4), np.uint8)
    pixels[..., 3] = 255
    pixels.setflags(write=False)
    return Frame(request, pixels, FrameTimings(0.0, 0.0, 0.0))


def write_png(folder: Path, number: int) -> None:
    """Save a picture."""
    session = session_of(number)
    write_picture(folder / "picture.png", frame_of(resolve(session)), model_name="m", session=session)


def check_png(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    assert read_picture(folder / "picture.png").session in (session_of(former), session_of(new))


def write_frames(folder: Path, *, stop_after: int = -1, video: VideoFormat | None = None) -> None:
    """Export a sequence, the same in every state, or continue it."""
    key = Keyframe.of(resolve(session_of(0)))
    other = Keyframe.of(resolve(session_of(5)))
    settings = SequenceSettings((key, other), folder, "walk", MODEL, "w-linear", FRAMES - 1, z_dim=8, video=video)
    job = SequenceJob(settings)
    job.start()
    count = 0
    while count != stop_after and job.wait():
        request = job.next_request()
        if request is not None:
            job.deliver(frame_of(request))
            count += 1
    if count == stop_after:
        job.stop(cancelled=False)
    assert job.join(PATIENCE_S)
    assert job.error is None, job.error


def write_export(folder: Path, number: int) -> None:
    """Begin an export in state 1; end it in later ones."""
    write_frames(folder, stop_after=2 if number == 1 else -1)


def check_export(folder: Path, former: int, new: int) -> None:
    """Expect a manifest, and whole frames with their recipes, all of them where it says so."""
    manifest = read_manifest(folder / "walk.manifest.json")
    frames = sorted(folder.glob("walk_*.png"))
    for path in frames:
        read_picture(path)
    assert manifest.state in ("unfinished", "complete")
    assert manifest.state == "unfinished" or len(frames) == manifest.frames_written == FRAMES
    assert (former, new) != (1, 1) or len(frames) < FRAMES
    assert (former, new) != (3, 3) or manifest.state == "complete"


def write_animation(folder: Path, number: int) -> None:
    """Begin an animation in state 1; end it in later ones."""
    write_frames(folder, stop_after=2 if number == 1 else -1, video=VideoFormat("gif"))


def check_animation(folder: Path, former: int, new: int) -> None:
    """Expect a manifest, and the whole animation where it says that there is one; no segments beside a finished one."""
    manifest = read_manifest(folder / "walk.manifest.json")
    path = folder / "walk.gif"
    if path.exists():
        with Image.open(path) as image:
            assert getattr(image, "n_frames", 1) == FRAMES
    assert manifest.state in ("unfinished", "complete")
    assert manifest.state == "unfinished" or path.exists()
    assert (former, new) != (1, 1) or not path.exists()
    left = sorted(item.name for item in folder.iterdir() if item.name not in ("walk.gif", "walk.manifest.json"))
    assert (former, new) != (3, 3) or (manifest.state == "complete" and not left), left


def model_of(number: int) -> Model:
    """Return a small model of a state."""
    return random_model(shape_of("16:64:8"), seed=number)


def write_model(folder: Path, number: int) -> None:
    """Convert a model."""
    write_safetensors(model_of(number), folder / "m.safetensors")


def check_model(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    weights = read_model(folder / "m.safetensors").weights
    assert any(
        all(np.array_equal(array, weights[name]) for name, array in model_of(number).weights.items())
        for number in {former, new}
    )


def write_latent_file(folder: Path, number: int) -> None:
    """Save a latent."""
    write_latent(folder / "w.npz", stored_latent(np.full((4, 8), number, np.float32)))


def check_latent_file(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    latent = read_latent(folder / "w.npz")
    assert np.frombuffer(latent.rows, np.float32)[0] in (former, new)


def write_beside_model(folder: Path, number: int) -> None:
    """Write directions beside a model."""
    vectors = np.full((1, 4), number, np.float32)
    found = NamedDirections(("world/a",), vectors, (RowRange(0, 1),), (1.0,), (0.0,), ({},))
    write_directions(found, folder / "m.directions.safetensors", MODEL.model_id)


def check_beside_model(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    found = read_directions(folder / "m.directions.safetensors", MODEL.model_id, 4, 2)
    assert found.vectors[0, 0] in (former, new)


def write_preset(folder: Path, number: int) -> None:
    """Save a preset of a controller."""
    save_patches(folder / "pad.patches.json", tuple(Patch(f"midi/{n}/1", "noise.gain") for n in range(number)))


def check_preset(folder: Path, former: int, new: int) -> None:
    """Expect one of both."""
    assert len(load_patches(folder / "pad.patches.json")) in (former, new)


CASES = (
    Case("autosave", write_state, check_state),
    Case("settings", write_settings, check_settings),
    Case("model places", write_places, check_places),
    Case("export list", write_exports, check_exports),
    Case("session", write_session, check_session),
    Case("picture", write_png, check_png),
    Case("export", write_export, check_export),
    Case("animation", write_animation, check_animation),
    Case("convert", write_model, check_model),
    Case("latent", write_latent_file, check_latent_file),
    Case("beside a model", write_beside_model, check_beside_model),
    Case("preset", write_preset, check_preset),
)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
