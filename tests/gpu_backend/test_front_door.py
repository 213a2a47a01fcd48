"""The front door: cheap to import, complete, and with errors that are sentences."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_backend

REPOSITORY = Path(__file__).resolve().parents[2]


def run_fresh(code: str, home: Path) -> str:
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=REPOSITORY,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert finished.stderr == ""
    return finished.stdout


def test_importing_loads_neither_torch_nor_qt_nor_numpy_and_makes_no_folder(tmp_path: Path) -> None:
    code = (
        "import sys, gpu_backend\n"
        "heavy = ('torch', 'PySide6', 'numpy', 'cuda', 'safetensors')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert run_fresh(code, tmp_path).strip() == "[]"
    assert list(tmp_path.iterdir()) == []


def test_recipes_requests_and_paths_need_no_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from gpu_backend import Recipe, RenderRequest, path_blends, plane_point, request_to_json\n"
        "request_to_json(RenderRequest('a')); plane_point(0.5, 1.0)\n"
        "path_blends([((Recipe(), 1.0),)] * 3, 'w-cubic', 4, True)\n"
        "print([name for name in ('torch', 'PySide6') if name in sys.modules])"
    )
    assert run_fresh(code, tmp_path).strip() == "[]"
    assert list(tmp_path.iterdir()) == []


def test_every_name_of_the_front_door_can_be_fetched() -> None:
    for name in gpu_backend.__all__:
        assert getattr(gpu_backend, name) is not None
        assert name in dir(gpu_backend)


def test_type_checkers_see_every_name_of_the_front_door() -> None:
    tree = ast.parse(Path(gpu_backend.__file__).read_text("utf-8"))
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    names = {alias.asname for item in typed.body if isinstance(item, ast.ImportFrom) for alias in item.names}
    assert names == set(gpu_backend.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'open_the_door'"):
        gpu_backend.open_the_door  # noqa: B018


def test_every_error_of_the_front_door_is_a_loom_error_that_keeps_its_sentence() -> None:
    kinds = [
        gpu_backend.CancelledError,
        gpu_backend.DeviceError,
        gpu_backend.ModelFileError,
        gpu_backend.RequestError,
        gpu_backend.UnsupportedModelError,
    ]
    for kind in kinds:
        error = kind("It went wrong.", details="line 1\nline 2")
        assert isinstance(error, gpu_backend.LoomError)
        assert (str(error), error.sentence, error.details) == ("It went wrong.", "It went wrong.", "line 1\nline 2")
    assert issubclass(gpu_backend.UnsupportedModelError, gpu_backend.ModelFileError)
