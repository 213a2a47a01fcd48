"""What happens before the window is on the screen, and what does not: counted, never timed."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.own_process import run_python

SHOWN = """
    import sys, threading
    from importlib.machinery import EXTENSION_SUFFIXES
    import explorer_app.app
    from explorer_app.cli import main

    def extensions():
        return {name for name, module in list(sys.modules.items())
                if (getattr(module, "__file__", None) or "").endswith(tuple(EXTENSION_SUFFIXES))}

    class Watched(explorer_app.app.App):
        def _preload(self, choice):
            self.before = extensions()
            super()._preload(choice)

        def start(self, file=None):
            self.window.canvas.painted_first.connect(self.look)
            super().start(file)

        def look(self):
            canvas, engine = self.window.canvas, self.controller.engine
            print(canvas._image is engine.stored_picture, engine.model.facts.name, canvas.frame)
            print("threads:", *(thread.name for thread in threading.enumerate() if thread.name == "rendering"))
            print("extensions:", *sorted(extensions() - self.before - {"_ctypes"}))

        def _begin(self, file):
            print(*sys.modules)
            self.window.close()

    explorer_app.app.App = Watched
    sys.exit(main([]))
"""


_HOME = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in _HOME:
        monkeypatch.setenv(variable, str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def one_start(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Lines of one start: the first picture, threads that render when it is painted, all modules when work begins."""
    environment: dict[str, Any] = dict.fromkeys(_HOME, str(tmp_path_factory.mktemp("home")))
    done = run_python(SHOWN, **environment)
    assert done.returncode == 0, done.stderr
    return tuple(line.strip() for line in done.stdout.splitlines())


@pytest.fixture
def when_shown(one_start: tuple[str, ...]) -> tuple[str, ...]:
    """Names of all modules that are imported when the window and its picture are shown."""
    return tuple(one_start[-1].split())


def those_of(modules: tuple[str, ...], *prefixes: str) -> set[str]:
    return {name for name in modules if name.startswith(prefixes)}


def test_the_window_is_shown_before_torch_and_drivers_and_libraries_that_it_may_not_need_are_imported(
    when_shown: tuple[str, ...],
) -> None:
    libraries = ("torch", "numpy", "safetensors", "pyqtgraph", "qtawesome", "qtpy", "superqt", "matplotlib", "PIL")
    assert those_of(when_shown, "cuda", "pynvml", *libraries) == set()


def test_the_window_is_shown_without_any_other_command_being_imported(when_shown: tuple[str, ...]) -> None:
    commands = {name.removeprefix("explorer_app.cli.") for name in those_of(when_shown, "explorer_app.cli.")}
    assert "window" in commands
    assert not commands & {"bench", "convert", "demo", "directions", "doctor", "render", "train", "train_bench", "tune"}


def test_the_window_is_shown_before_anything_that_reads_models_or_plans_networks_is_imported(
    when_shown: tuple[str, ...],
) -> None:
    packages = ("gpu_backend.plan.", "gpu_backend.ops.", "gpu_backend.model_runner", "gpu_backend.model.reading")
    assert those_of(when_shown, *packages) == set()


def test_time_start_prints_the_steps_and_closes_the_window(home: Path) -> None:
    done = run_python("import sys; from explorer_app.cli import main; sys.exit(main(['--time-start', '--device=cpu']))")
    assert (done.returncode, done.stderr) == (0, "")
    table, _, _ = done.stdout.partition("\n\n")  # a note may follow
    steps = [line[:28].strip() for line in table.splitlines()[1:]]
    assert steps[:4] == ["interpreter", "QApplication", "imports of the window", "window built"]
    assert steps[4:6] == ["window shown", "window and picture painted"], "and torch only then"
    assert set(steps[6:]) == {
        "torch imported",
        "model read",
        "renderer ready",
        "first live picture shown",
        "first full picture shown",
    }


def test_panels_and_dialogs_are_not_imported_before_the_window_is_painted(when_shown: tuple[str, ...]) -> None:
    modules = those_of(when_shown, "explorer_app.window.")
    panels: tuple[str, ...] = ("latent.latent_panel", "sliders.sliders_panel", "mix.mix_panel", "history.history_strip")
    panels += ("performance.performance_panel", "layers.layers_panel", "model.model_panel")
    hidden = ("layers.layer_table", "layers.spectrum_view", "layers.tap_controls", "performance.roofline_plot")
    dialogs = (
        "dialogs.about",
        "dialogs.preferences_dialog",
        "dialogs.shortcuts_dialog",
        "export.export_dialog",
        "model.model_details",
    )
    late = {f"explorer_app.window.{name}" for name in panels + hidden + dialogs}
    assert all(importlib.util.find_spec(name) for name in late)
    assert not modules & late


def test_the_picture_is_painted_before_a_thread_is_started_that_imports_torch(one_start: tuple[str, ...]) -> None:
    assert one_start[:2] == ("True loom-landscapes-256 None", "threads:"), "no thread renders yet"


def test_no_c_extension_is_imported_while_the_libraries_of_torch_are_loaded(one_start: tuple[str, ...]) -> None:
    assert one_start[2] == "extensions:", "it would wait for the dynamic loader with Python's lock"
