"""What models are called where several are listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpu_backend import printable


def distinct_names(models: Sequence[tuple[str, str]]) -> list[str]:
    """Return what models of these names and paths are called side by side.

    Models of equal names have the end of their folder that tells them apart, in one folder the name of their file.
    """
    names = [name or Path(path).stem for name, path in models]
    shown = []
    for index, (_, path) in enumerate(models):
        name, own = names[index], Path(path).parent.parts
        others = [Path(models[k][1]).parent.parts for k in range(len(models)) if k != index and names[k] == name]
        if own in others:
            name = Path(path).name
        if apart := [parts for parts in others if parts != own]:
            counts = range(1, len(own))
            count = next((n for n in counts if all(parts[-n:] != own[-n:] for parts in apart)), len(own))
            name = f"{name} ({Path(*own[-count:])})"
        shown.append(printable(name))
    return shown
