"""Names of files in locales that are not UTF-8: ``LC_ALL=C`` without Python's UTF-8 mode."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorer_app.exporting.errors import ExportError
from explorer_app.exporting.file_names import name_of_text, text_of_name
from explorer_app.exporting.keyframes import Keyframe
from explorer_app.exporting.manifest import manifest_bytes, read_manifest
from explorer_app.exporting.sequence import SequenceSettings, check_name
from explorer_app.session.session import ModelReference
from gpu_backend import Latent, Noise, Point, Recipe

IN_C = "\udcc3\udca4"
"""An a umlaut as the name of a file in the locale C."""


@pytest.fixture
def c_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")


def test_in_utf_8_names_are_texts() -> None:
    for name in ("ä", "\udce4", "a"):
        assert text_of_name(name) == name_of_text(name) == name


@pytest.mark.usefixtures("c_locale")
def test_letters_beyond_ascii_are_bytes_of_utf_8_in_the_locale_c() -> None:
    assert text_of_name(f"{IN_C} 1") == "ä 1"
    assert name_of_text("ä 1") == f"{IN_C} 1"
    assert text_of_name("a") == name_of_text("a") == "a"
    check_name(IN_C)
    with pytest.raises(ExportError, match="does not fit file names"):
        check_name("\udce4")
    with pytest.raises(ExportError, match="set LC_ALL to"):
        check_name("ä")


def test_letters_of_another_locale_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "iso8859-1")
    assert text_of_name("ä") == name_of_text("ä") == "ä"
    assert name_of_text("\ud800") == "\ud800", "of a damaged manifest"


@pytest.mark.usefixtures("c_locale")
def test_a_manifest_has_the_letters_that_a_name_means(tmp_path: Path) -> None:
    key = Keyframe(((Recipe(Latent(Point(((1, 1.0),)))), 1.0),), Noise())
    model = ModelReference("", "m", "ab" * 32)
    data = manifest_bytes(
        SequenceSettings((key, key), tmp_path, IN_C, model, "w-cubic", 7, True, 64, 256), "unfinished", None
    )
    assert b'"name": "\\u00e4"' in data
    path = tmp_path / f"{IN_C}.manifest.json"
    path.write_bytes(data)
    assert read_manifest(path).settings.name == IN_C


def test_python_gives_names_so_in_the_locale_c() -> None:
    code = "import sys; from explorer_app.exporting.sequence import check_name; check_name(sys.argv[1])"
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, "ä"], env={**os.environ, **locale}, check=True)
