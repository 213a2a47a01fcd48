"""PySide6 is imported without what it does to every import that follows."""

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
        print(QLabel("works").text())
    """)
    assert done.stdout == "works\n", done.stderr
