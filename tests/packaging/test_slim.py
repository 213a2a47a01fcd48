"""The list for an installation without torch."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_slim_list_is_that_of_the_project_without_torch() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / "packaging" / "slim.txt").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        item for item in wanted if not item.startswith("torch")
    ]
