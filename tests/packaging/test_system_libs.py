"""system-libs.sh finds what Qt lacks, by Qt's own files, and installs or names it."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "packaging" / "linux" / "system-libs.sh"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="this machine is not a Linux system")


@dataclass
class Machine:
    """A PATH with an ldd, an fc-list, an apt-get, an id and a sudo of our own, and a PySide6 with empty files."""

    folder: Path

    def program(self, name: str, text: str) -> None:
        path = self.folder / "bin" / name
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def lacks(self, **missing: str) -> None:
        """What ldd does not find, by a part of the file's name; nothing any more once apt-get has installed."""
        cases = "\n".join(
            f'  case $file in *{part}*) for l in {libs}; do echo "    $l => not found"; done ;; esac'
            for part, libs in missing.items()
        )
        self.program("ldd", f'[ -e {self.folder}/installed ] && exit 0\nfor file in "$@"; do\n{cases}\ndone\nexit 0')

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        system = ("awk", "bash", "cat", "dirname", "env", "find", "head", "paste", "printf", "sort", "tr", "xargs")
        for name in system:
            link = self.folder / "bin" / name
            if not link.exists():
                found = shutil.which(name)  # passes over folders that this user may not read
                assert found is not None, name
                link.symlink_to(found)
        return subprocess.run(
            [str(self.folder / "bin" / "bash"), str(SCRIPT), *words],
            env={"PATH": str(self.folder / "bin"), "LATENTLOOM_VENV": str(self.folder / "venv"), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def installed(self) -> list[str]:
        log = self.folder / "apt.log"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    qt = tmp_path / "PySide6"
    for name in ("platforms/libqxcb.so", "platforms/libqoffscreen.so", "platforms/libqwayland.so"):
        path = qt / "Qt" / "plugins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for folder in ("bin", "venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.write_text(f"#!/bin/bash\necho {qt}\n")
    python.chmod(0o755)
    made.program("id", "echo 0")
    made.program("fc-list", "echo DejaVu Sans")
    return made


def with_apt(machine: Machine) -> None:
    log, done = machine.folder / "apt.log", machine.folder / "installed"
    machine.program("apt-get", f'echo "$DEBIAN_FRONTEND: $*" >> {log}\ncase $1 in install) echo > {done} ;; esac')


def test_a_machine_that_lacks_nothing_is_left_alone(machine: Machine) -> None:
    machine.lacks()
    with_apt(machine)
    done = machine.run("--install", "window", DISPLAY=":0")
    assert (done.returncode, done.stderr, machine.installed) == (0, "", [])


def test_missing_libraries_are_installed_by_their_package_names(machine: Machine) -> None:
    machine.lacks(qxcb="libxcb-cursor.so.0 libxkbcommon-x11.so.0", qoffscreen="libEGL.so.1")
    with_apt(machine)
    done = machine.run("--install", "window", DISPLAY=":0")
    assert done.returncode == 0, done.stderr
    update, install = machine.installed
    assert update.startswith("noninteractive: update")
    assert install.endswith(" libegl1 libxcb-cursor0 libxkbcommon-x11-0")


def test_sudo_is_used_only_when_not_root(machine: Machine) -> None:
    machine.lacks(qoffscreen="libEGL.so.1")
    with_apt(machine)
    machine.program("id", "echo 1000")
    machine.program("sudo", f'echo "sudo" >> {machine.folder}/apt.log; exec "$@"')
    assert machine.run("--install", "offscreen").returncode == 0
    assert machine.installed[0] == "sudo"


def test_without_apt_the_names_are_printed_and_the_status_reports_it(machine: Machine) -> None:
    machine.lacks(qoffscreen="libEGL.so.1")
    done = machine.run("--install", "offscreen")
    assert done.returncode == 1
    assert "libEGL.so.1" in done.stderr
    assert "apt-get install libegl1" in done.stderr
    assert "dnf install libglvnd-egl" in done.stderr
    assert "pacman -S libglvnd" in done.stderr


def test_tests_do_not_ask_for_what_only_a_display_needs(machine: Machine) -> None:
    machine.lacks(qxcb="libxcb-cursor.so.0")
    done = machine.run("--check", "offscreen")
    assert (done.returncode, done.stderr) == (0, "")


def test_libraries_that_only_the_other_display_needs_are_not_essential(machine: Machine) -> None:
    machine.lacks(qwayland="libwayland-cursor.so.0")
    done = machine.run("--check", "window", DISPLAY=":0")
    assert done.returncode == 0
    assert "libwayland-cursor.so.0" in done.stderr
    assert machine.run("--check", "window", WAYLAND_DISPLAY="wayland-0").returncode == 1


def test_an_unknown_library_is_named_as_it_is(machine: Machine) -> None:
    machine.lacks(qoffscreen="libquaint.so.7")
    with_apt(machine)
    done = machine.run("--check", "offscreen")
    assert done.returncode == 1
    assert "libquaint.so.7" in done.stderr
    assert machine.installed == []


def test_checking_installs_nothing(machine: Machine) -> None:
    machine.lacks(qoffscreen="libEGL.so.1")
    with_apt(machine)
    assert machine.run("--check", "offscreen").returncode == 1
    assert machine.installed == []


def test_a_window_needs_a_font_and_tests_do_not(machine: Machine) -> None:
    machine.lacks()
    machine.program("fc-list", f"[ ! -e {machine.folder}/installed ] || echo DejaVu Sans")
    with_apt(machine)
    assert machine.run("--check", "offscreen").returncode == 0
    done = machine.run("--check", "window", DISPLAY=":0")
    assert done.returncode == 1
    assert "dnf install dejavu-sans-fonts" in done.stderr
    assert machine.run("--install", "window", DISPLAY=":0").returncode == 0
    assert machine.installed[-1].endswith(" fonts-dejavu-core")


def test_packages_that_failed_to_install_are_named_again(machine: Machine) -> None:
    machine.lacks(qxcb="libxcb-cursor.so.0")
    machine.program("apt-get", "exit 100")
    done = machine.run("--install", "window", DISPLAY=":0")
    assert done.returncode == 1
    assert "Still missing: libxcb-cursor.so.0" in done.stderr
    assert "apt-get install libxcb-cursor0" in done.stderr


def test_without_root_and_sudo_the_names_are_printed(machine: Machine) -> None:
    machine.lacks(qxcb="libxcb-cursor.so.0")
    with_apt(machine)
    machine.program("id", "echo 1000")
    done = machine.run("--install", "window", DISPLAY=":0")
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert "apt-get install libxcb-cursor0" in done.stderr
    assert machine.installed == []
