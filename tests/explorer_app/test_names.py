"""Names that were replaced by a term of the field do not come back."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import explorer_app

RETIRED = {
    *("ModelDesk", "DeviceDesk", "ExportDesk", "ThumbnailDesk", "RendererKeeper", "NewsBox", "News"),
    *("ThumbnailCourier", "QtMessageRoad", "CanvasState", "ControllerState", "EngineControl", "FileControl"),
    *("renew", "wander", "settle", "_settle", "adopt", "give_way", "_must_turn", "_is_in_the_way", "_gives_way"),
    *("was_hasty", "_hopeless", "spare_what_stays", "abandoned", "is_abandoned", "courier", "desk", "render_desk"),
    *("hand_desk", "hands", "teller", "_hand_over", "_handed_over", "is_instead", "otherwise"),
}
ROOT = Path(explorer_app.__file__).parent
FILES = sorted([*ROOT.rglob("*.py"), *(ROOT.parent / "tests/explorer_app").rglob("*.py")])


WORDS = re.compile(rf"\b({'|'.join(map(re.escape, sorted(RETIRED)))})\b")


def names_of(path: Path) -> set[str]:
    text = path.read_text("utf-8")
    if WORDS.search(text) is None:  # a fiftieth of the time that tokens take
        return set()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {token.string for token in tokens if token.type == tokenize.NAME}


def test_no_name_of_the_app_is_a_retired_one() -> None:
    found = {str(path.relative_to(ROOT.parent)): names for path in FILES if (names := names_of(path) & RETIRED)}
    assert found == {}


def test_signals_are_named_for_requests() -> None:
    pattern = re.compile(r"\w+_asked\s*=\s*Signal")
    assert [path.name for path in FILES if pattern.search(path.read_text("utf-8"))] == []
