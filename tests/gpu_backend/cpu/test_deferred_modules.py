"""Modules that are executed when their first attribute is read."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpu_backend.cpu.deferred_modules import Deferral, DeferredModule, DeferringFinder, forget


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A package ``slowly`` with two modules, on the path and deferred; the list says what was executed."""
    folder = tmp_path / "slowly"
    folder.mkdir()
    (folder / "__init__.py").write_text("import told\ntold.append(__name__)\nfrom slowly.part import PART\nVALUE = 1\n")
    (folder / "part.py").write_text("import told\nimport slowly\ntold.append(__name__)\nPART = 2\n")
    (folder / "other.py").write_text(
        "import told\nfrom slowly import VALUE\ntold.append(__name__)\nOTHER = VALUE + 2\n"
    )
    (folder / "late.py").write_text("import told\ntold.append(__name__)\ndef twice(number):\n    return 2 * number\n")
    told: list[str] = []
    monkeypatch.setitem(sys.modules, "told", told)  # as good as a module here
    monkeypatch.syspath_prepend(tmp_path)
    finder = DeferringFinder([Deferral("slowly"), Deferral("slowly.late", after="slowly.other", functions=("twice",))])
    sys.meta_path.insert(0, finder)
    yield told
    forget(finder)
    forget(finder)
    for name in [name for name in sys.modules if name.partition(".")[0] == "slowly"]:
        del sys.modules[name]


def test_an_import_executes_nothing_and_an_attribute_does(package: list[str]) -> None:
    import slowly  # type: ignore[import-not-found]

    again = importlib.import_module("slowly")
    assert isinstance(again, DeferredModule)
    assert slowly.__name__ == "slowly"
    assert slowly.__spec__.name == "slowly"
    assert not hasattr(slowly, "__wrapped__")
    assert package == []
    assert (slowly.VALUE, slowly.PART) == (1, 2)
    assert package == ["slowly", "slowly.part"]
    assert not isinstance(slowly, DeferredModule)
    with pytest.raises(AttributeError):
        slowly.missing  # noqa: B018


@pytest.mark.parametrize(("name", "value"), [("part", 2), ("other", 3)])
def test_a_submodule_is_imported_once_and_after_its_package(name: str, value: int, package: list[str]) -> None:
    importlib.import_module("slowly")
    module = importlib.import_module(f"slowly.{name}")
    assert vars(module)[name.upper()] == value
    assert sorted(package) == sorted({"slowly", "slowly.part", f"slowly.{name}"})
    assert module.__spec__ is not None
    assert module.__spec__.origin == module.__file__


def test_names_are_imported_from_it(package: list[str]) -> None:
    from slowly import PART, VALUE

    assert (VALUE, PART) == (1, 2)


def test_a_function_that_is_imported_from_it_executes_it_when_called_and_after_the_module_that_comes_first(
    package: list[str],
) -> None:
    from slowly.late import twice  # type: ignore[import-not-found]

    assert package == ["slowly", "slowly.part"]
    assert (twice(2), twice.__name__) == (4, "twice")
    assert package == ["slowly", "slowly.part", "slowly.other", "slowly.late"]
    assert not isinstance(sys.modules["slowly.late"], DeferredModule)


def test_a_failed_import_is_tried_again(package: list[str]) -> None:
    slowly = importlib.import_module("slowly")
    told = sys.modules["told"]
    sys.modules["told"] = None  # type: ignore[assignment]
    with pytest.raises(ModuleNotFoundError):
        slowly.VALUE  # noqa: B018
    sys.modules["told"] = told
    assert slowly.VALUE == 1


def test_threads_that_use_it_at_once_all_see_it_whole(package: list[str]) -> None:
    slowly = importlib.import_module("slowly")
    seen: list[int] = []
    threads = [threading.Thread(target=lambda: seen.append(slowly.VALUE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 8
    assert package == ["slowly", "slowly.part"]
