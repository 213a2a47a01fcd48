"""PySide6 is imported without what it does to every import that follows."""

from __future__ import annotations

import re

import pytest

from explorer_app.qt_import import late_patterns
from tests.helpers.own_process import run_python


def test_imports_after_qt_s_read_and_keep_no_source_text() -> None:
    done = run_python("""
        import builtins, linecache, sys
        from explorer_app.qt_import import import_qt
        import_qt()
        import_qt()
        assert builtins.__import__ is builtins.__orig_import__
        assert "PySide6.QtWidgets" in sys.modules
        cached = set(linecache.cache)
        import tomllib, wave
        assert set(linecache.cache) == cached
        from PySide6.QtWidgets import QApplication, QLabel
        qt = QApplication([])
        label = QLabel("works")
        try:
            label.resize("wide", "high")
        except TypeError as error:  # PySide parses signatures for this text
            assert "resize(w: int, h: int, /)" in str(error), error
        print(label.text())
    """)
    assert done.stdout == "works\n", done.stderr


def test_large_patterns_are_compiled_by_the_first_call_of_a_method_that_was_kept() -> None:
    before = re.compile
    with late_patterns():
        words = re.compile(r"(?x) (\w+) " + "# words\n" * 200)
        wrong = re.compile("x" * 2000 + "(")
        small = re.compile("small")
    assert re.compile is before
    assert isinstance(small, re.Pattern)
    find, search = words.findall, wrong.search
    assert find("two words") == ["two", "words"]
    assert words.groups == 1
    with pytest.raises(re.error):
        search("(")
