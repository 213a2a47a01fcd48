"""Every test: no display, none of the person's own folders, and quiet.

A log at WARNING or above, a Qt message or a thread that goes on fails the test; Python's warnings do so by the
configuration. A test that expects a log clears it.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Not in pyproject.toml: where the backend is tested alone there is no pytest-qt, which would be the one to know it.
os.environ.setdefault("PYTEST_QT_API", "pyside6")
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:
    # Tests that run side by side share the cores; torch reads this when it is imported, here and in what is started.
    _share = (os.cpu_count() or 1) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, _share)))

# One list of the system's fonts for all tests and runs: making it takes matplotlib seconds, once for every home folder.
os.environ.setdefault("MPLCONFIGDIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "matplotlib"))

import pytest
from _pytest.runner import runtestprotocol

_FOLDERS = {
    "HOME": "home",
    "USERPROFILE": "home",
    "APPDATA": "home/roaming",
    "LOCALAPPDATA": "home/local",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_STATE_HOME": "home/.local/state",
}

_CACHE_FOLDERS = ("LOCALAPPDATA", "XDG_CACHE_HOME")
"""Those of them that a cache lies in."""

_UNAVOIDABLE = "This plugin does not support "
"""Said by the off-screen platform whenever a dialog has a fixed size or a popup opens."""

_SLOW_MACHINE = "Matplotlib is building the font cache"
"""Logged as a warning where reading the system's fonts takes more than five seconds."""

_FEW_CORES = 3
"""Up to so many cores a worker more than these is worth its collection."""

_WORKER_NBYTES = 5 << 29
"""Memory for a worker and what it starts: at the end it holds 1.8 GB."""

_POOLS_OF_LIBRARIES = {
    "InductorSubproc": "torch.compile: hears what its compiling processes answer",
    "subproc_worker_timer": "torch.compile: puts those processes to sleep when they have nothing to do",
    "tqdm_monitor": "tqdm, which torch.compile shows its progress with: refreshes bars",
}
"""Threads that a library starts once and keeps for as long as the program runs."""

_THREAD_END_S = 30.0
"""Patience with a thread that is ending, on a machine that is busy with other things."""


def pytest_configure(config: pytest.Config) -> None:
    """Hear Ctrl-C, flush nothing to the disk, and let every second worker collect from the other end.

    A shell lets what it runs in the background ignore Ctrl-C, and what tests start would inherit that.
    Files of tests need not survive a power failure, and a flush takes milliseconds. Workers that collect from both ends
    share the rewriting of assertions, half of the time of a collection: what one has rewritten another one reads.
    """
    gc.disable()  # what is collected stays; afterwards see `guarded`
    if config.pluginmanager.has_plugin("pytest-qt"):
        from explorer_app.qt_import import import_qt

        import_qt()  # before torch and the tests, whose sources Qt's bindings would read
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.fsync = _check_descriptor
    folder = Path(__file__).parent
    is_second = os.environ.get("PYTEST_XDIST_WORKER", "gw0")[-1] in "13579"
    if is_second and [config.invocation_params.dir / argument for argument in config.args] == [folder]:
        # What is named is collected though it is to be ignored, hence left out here.
        left_out = {config.invocation_params.dir / path for path in config.getoption("ignore") or ()}
        left_out.add(folder / "__pycache__")
        entries = {path for path in folder.iterdir() if path.is_dir() or path.match("test_*.py")} - left_out
        config.args = [str(path) for path in sorted(entries, reverse=True)]


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """With ``-n auto`` run one worker more than a few cores: a quarter of a worker's time passes waiting.

    Tests wait for processes that they start, for timers of the window and for other threads.
    """
    count = yield
    has_room = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}) and (
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >= (count + 1) * _WORKER_NBYTES
    )
    return count + 1 if count <= _FEW_CORES and has_room else count


def _check_descriptor(fd: Any) -> None:
    """Raise for what is no open file, as `os.fsync` does."""
    os.fstat(fd if isinstance(fd, int) else fd.fileno())


def _missing_gpu() -> str:
    """Return why tests on a GPU are skipped; empty where there is one, and where they are to fail without."""
    if os.environ.get("REQUIRE_GPU") == "1":
        return ""
    from gpu_backend.cuda.driver.probe import probe

    found = probe()
    return "" if found.gpus else found.problem


_CASES = pytest.StashKey[dict[str, int]]()
"""How many cases a test on a GPU has that is collected once, by its node."""


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Without a GPU, collect one case of a test that needs one: making a thousand items takes seconds."""
    yield
    cases = metafunc._calls
    if len(cases) > 1 and metafunc.definition.get_closest_marker("gpu") and _missing_gpu():
        metafunc.config.stash.setdefault(_CASES, {})[metafunc.definition.nodeid] = len(cases)
        del cases[1:]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long; the order is the same however the tests were collected."""
    items.sort(key=lambda item: (item.get_closest_marker("long") is None, str(item.path)))
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (problem := _missing_gpu()):
        items[:] = _skipped_once_a_file(items, on_gpu, config.stash.get(_CASES, {}), problem)
    if "hypothesis" in sys.modules:
        _read_no_constants()


def _read_no_constants() -> None:
    """Keep hypothesis from parsing a thousand sources in every worker, to try the constants that stand in them.

    The strategies of these tests name the values that matter.
    """
    from hypothesis.internal.conjecture import providers

    known = providers._local_constants
    providers._get_local_constants = lambda: known


def _skipped_once_a_file(
    items: list[pytest.Item], on_gpu: list[pytest.Item], cases: dict[str, int], problem: str
) -> list[pytest.Item]:
    """Return the tests with one skipped one for all of a file that need a GPU; its reason says how many they are."""
    numbers: dict[Path, int] = {}
    first: dict[Path, pytest.Item] = {}
    for item in on_gpu:
        number = cases.get(item.nodeid.partition("[")[0], 1)
        numbers[item.path] = numbers.get(item.path, 0) + number
        first.setdefault(item.path, item)
    for path, item in first.items():
        item.add_marker(pytest.mark.skip(reason=f"{problem} ({numbers[path]} tests of this file)"))
    left_out = set(on_gpu).difference(first.values())
    return [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Keep what was imported out of every garbage collection: it stays, and many tests ask for one."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Let a worker report a test once, unless its setup or teardown failed: each report costs a millisecond of a core.

    Reports in files and tables of durations count the other two phases, and get them.
    """
    config = item.config
    if "PYTEST_XDIST_WORKER" not in os.environ or config.getoption("durations") or config.getoption("xmlpath"):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.fixture(scope="session", autouse=True)
def own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of a person who exists for the tests of this process only; made when something writes there.

    A test of the cache itself asks for `empty_cache` too.
    """
    root = tmp_path_factory.getbasetemp() / "person"
    with pytest.MonkeyPatch.context() as environment:
        for name, folder in _FOLDERS.items():
            environment.setenv(name, str(root / folder))
        yield root


@pytest.fixture
def empty_cache(own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of this test's own that the cache lies in."""
    for name in (*_CACHE_FOLDERS, "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def guarded(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[set[threading.Thread]]:
    """No log at WARNING or above, and every thread that the test started has ended, but for pools of libraries.

    One fixture, since each costs every test a tenth of a millisecond. Garbage is collected between tests, or when one
    asks: on a thread that a test started, it could be Qt's. What was replaced by `monkeypatch` stays so until all
    other fixtures of the test are gone.

    Yields the threads that ran before the test and its fixtures: what an earlier test left is not this one's fault.
    """
    before = set(threading.enumerate())
    if request.node.get_closest_marker("gpu") and "PYTEST_XDIST_WORKER" in os.environ:
        # Tests on a GPU that run side by side have one cache, since compiling takes most of their time.
        base = request.getfixturevalue("tmp_path_factory").getbasetemp()
        for name in _CACHE_FOLDERS:
            monkeypatch.setenv(name, str(base.parent / "gpu-cache"))
    gc.disable()
    yield before
    said = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.WARNING]
    said = [message for message in said if not message.startswith(_SLOW_MACHINE)]
    _collect_garbage()
    left = [thread for thread in threading.enumerate() if thread not in before]
    left = [thread for thread in left if thread.name not in _POOLS_OF_LIBRARIES]
    for thread in left:
        thread.join(_THREAD_END_S)
    assert not said, f"logged: {said}"
    assert not any(thread.is_alive() for thread in left), f"still running: {left}"


def _collect_garbage() -> None:
    """Collect what is due.

    What has survived a collection of everything is looked at no more: later collections would take a third of a second.
    """
    from explorer_app.collector import collect_due

    before = gc.get_stats()[2]["collections"]
    collect_due()
    if gc.get_stats()[2]["collections"] > before:
        gc.freeze()


@pytest.fixture
def threads_before(guarded: set[threading.Thread]) -> set[threading.Thread]:
    """Return the threads that ran before the test and its fixtures."""
    return guarded


@pytest.fixture
def quiet_qt(qtlog: Any) -> Iterator[None]:
    """No Qt message."""
    yield
    said = [record.message for record in qtlog.records if not record.message.startswith(_UNAVOIDABLE)]
    assert not said, f"Qt said: {said}"
