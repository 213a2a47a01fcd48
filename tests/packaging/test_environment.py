"""environment.sh finds an interpreter, installs once, and says in a sentence what is missing."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="this machine has no POSIX shell")

FAKE_PYTHON = """#!/bin/bash
log={log}
case "$*" in
  *version_info\\ \\<*) exit {too_old} ;;
  *"import venv"*) exit {no_venv} ;;
  *"print("*) echo 3.12 ;;
  *"-m venv "*) echo venv >> $log; mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;;
  *"-m pip"*) echo "pip ${{@: -1}}" >> $log ;;
  *"-m compileall"*) echo "${{@: -2}}" >> $log-compiled; exit 1 ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "clone" / "packaging").mkdir(parents=True)
    shutil.copy(ROOT / "packaging" / "environment.sh", tmp_path / "clone" / "packaging")
    shutil.copy(ROOT / "pyproject.toml", tmp_path / "clone")
    (tmp_path / "bin").mkdir()
    for name in ("bash", "env", "dirname", "cksum", "readlink", "cat", "rm", "mkdir", "cp"):
        found = shutil.which(name)  # passes over folders that this user may not read
        assert found is not None, name
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path / "clone"


def python(clone: Path, name: str = "python3.12", *, too_old: int = 0, no_venv: int = 0) -> None:
    path = clone.parent / "bin" / name
    path.write_text(FAKE_PYTHON.format(log=clone.parent / "log", too_old=too_old, no_venv=no_venv))
    path.chmod(0o755)


def run(clone: Path, want: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone.parent / "bin" / "bash"), str(clone / "packaging" / "environment.sh"), want],
        env={"PATH": str(clone.parent / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )


def log(clone: Path) -> list[str]:
    path = clone.parent / "log"
    return path.read_text().splitlines() if path.exists() else []


def test_a_second_call_installs_nothing(clone: Path) -> None:
    python(clone)
    assert run(clone, "run").returncode == 0
    assert log(clone) == ["venv", f"pip {clone}"]
    again = run(clone, "run")
    assert (again.returncode, again.stderr) == (0, "")
    assert len(log(clone)) == 2


def test_tests_need_more_than_the_program_and_satisfy_it(clone: Path) -> None:
    python(clone)
    run(clone, "run")
    run(clone, "test")
    assert log(clone)[-1] == f"pip {clone}[dev]"
    (clone / ".venv" / "installed-run").unlink()
    run(clone, "run")
    assert len(log(clone)) == 3


def test_measurements_need_what_draws_plots_and_satisfy_the_program(clone: Path) -> None:
    python(clone)
    run(clone, "bench")
    assert log(clone) == ["venv", f"pip {clone}[bench]"]
    run(clone, "run")
    run(clone, "bench")
    assert len(log(clone)) == 2


def test_the_program_is_compiled_once_and_where_that_fails_it_is_installed_all_the_same(clone: Path) -> None:
    python(clone)
    for _ in range(2):
        assert run(clone, "run").returncode == 0
    compiled = (clone.parent / "log-compiled").read_text().splitlines()
    assert compiled == [f"{clone}/explorer_app {clone}/gpu_backend"]


def test_an_unknown_name_is_refused(clone: Path) -> None:
    done = run(clone, "everything")
    assert (done.returncode, log(clone)) == (2, [])
    assert "not 'everything'" in done.stderr


def test_a_changed_list_of_packages_is_installed(clone: Path) -> None:
    python(clone)
    run(clone, "run")
    with (clone / "pyproject.toml").open("a") as file:
        file.write("\n# changed\n")
    run(clone, "run")
    assert log(clone) == ["venv", f"pip {clone}", f"pip {clone}"]


def test_an_old_interpreter_is_passed_over(clone: Path) -> None:
    python(clone, "python3.12", too_old=1)
    python(clone, "python3")
    assert run(clone, "run").returncode == 0


def test_without_an_interpreter_a_sentence_says_what_to_do(clone: Path) -> None:
    done = run(clone, "run")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr


def test_without_venv_the_sentence_names_the_package(clone: Path) -> None:
    python(clone, no_venv=1)
    done = run(clone, "run")
    assert done.returncode != 0
    assert "apt-get install python3.12-venv" in done.stderr
    assert log(clone) == []
