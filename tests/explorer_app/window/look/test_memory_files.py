"""Files in memory that Qt opens."""

from __future__ import annotations

from PySide6.QtCore import QDir, QFile, QIODevice

from explorer_app.window.look.memory_files import register


def content_of(path: str) -> bytes:
    file = QFile(path)
    assert file.open(QIODevice.OpenModeFlag.ReadOnly)
    try:
        return bytes(file.readAll().data())
    finally:
        file.close()


def test_qt_opens_every_file_by_its_path() -> None:
    files = {f"drawing-{number}.svg": b"x" * number for number in range(100)} | {
        "a": b"",
        "\u00e4\u03c8.txt": b"\0\xff",
    }
    paths = register("test-memory-files", files)
    assert {name: content_of(path) for name, path in paths.items()} == files
    assert sorted(QDir(":/test-memory-files").entryList()) == sorted(files)
    assert not QFile.exists(":/test-memory-files/other")


def test_folders_are_independent() -> None:
    first, second = register("test-first", {"same": b"1"}), register("test-second", {"same": b"2"})
    assert [content_of(paths["same"]) for paths in (first, second)] == [b"1", b"2"]
