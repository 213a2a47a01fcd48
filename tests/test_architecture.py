"""The rules of ARCHITECTURE.md, held against the code."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import explorer_app.version

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("gpu_backend", "explorer_app")
COLOUR = re.compile(r"""["']#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})["']""")


def sources(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found, folders
    return found


def names(paths: list[Path]) -> list[str]:
    return [path.relative_to(ROOT).as_posix() for path in paths]


def test_every_import_contract_is_kept() -> None:
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_every_folder_of_the_packages_says_what_it_is_for() -> None:
    folders = {path.parent for path in sources(*PACKAGES)}
    silent = [
        str(folder.relative_to(ROOT))
        for folder in sorted(folders)
        if not (folder / "__init__.py").is_file()
        or not ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_no_module_is_called_by_what_it_is_not() -> None:
    vague = {"utils", "util", "misc", "common", "helpers", "helper"}
    assert [name for name in names(sources(*PACKAGES)) if vague & set(Path(name).with_suffix("").parts)] == []


def test_colours_are_written_in_the_theme_only() -> None:
    theme = ROOT / "explorer_app" / "window" / "look" / "theme.py"
    spilled = [path for path in sources("explorer_app") if path != theme and COLOUR.search(path.read_text("utf-8"))]
    assert names(spilled) == []
    assert COLOUR.search(theme.read_text("utf-8")), "the rule knows a colour when it sees one"


def test_only_the_window_itself_knows_the_whole_controller() -> None:
    def takes_all(path: Path) -> bool:
        imported = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ImportFrom))
        return any(alias.name == "Controller" for node in imported for alias in node.names)

    knowing = [path for path in sources("explorer_app/window") if takes_all(path)]
    assert names(knowing) == ["explorer_app/window/shell/main_window.py"]
    kept = re.findall(r"self\._\w+ = controller$", knowing[0].read_text("utf-8"), re.MULTILINE)
    assert kept == [], "it hands out the controller's parts and does not keep the whole"


def test_nothing_in_the_packages_is_left_unfinished() -> None:
    marks = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX|HACK)\b")
    assert names([path for path in sources(*PACKAGES, "packaging") if marks.search(path.read_text("utf-8"))]) == []


def test_frozen_classes_that_a_start_imports_compile_their_methods_on_first_use() -> None:
    frozen = re.compile(r"^\s*@dataclass\((?=[^)]*frozen=True)(?=[^)]*slots=True)", re.MULTILINE)
    slow = re.compile(r"^from dataclasses import (?:\([^)]*|.*)\bdataclass\b", re.MULTILINE)
    started = ("explorer_app", *(f"gpu_backend/{part}" for part in ("cpu", "cuda", "latent", "model", "ops", "plan")))
    files = [*sources(*started, "gpu_backend/renderer"), *sorted((ROOT / "gpu_backend").glob("*.py"))]
    texts = {path: path.read_text("utf-8") for path in files if path.name != "quick_dataclass.py"}
    assert names([path for path, text in texts.items() if frozen.search(text) and slow.search(text)]) == []


def test_there_is_one_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert explorer_app.version.__version__ in changelog
    assert 'path = "explorer_app/version.py"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_opening_the_front_door_loads_neither_torch_nor_qt() -> None:
    heavy = "[name for name in ('torch', 'PySide6', 'numpy') if name in sys.modules]"
    command = f"import sys, gpu_backend, explorer_app; print({heavy})"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_each_dependency_has_its_reason_beside_it() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = text[text.index("dependencies = [") : text.index("[project.optional-dependencies]")].splitlines()
    bare = [line.strip() for line in listed if line.strip().startswith('"') and "#" not in line]
    assert bare == []
