"""Technical details of a file that was refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from gpu_backend.model.refusal import shown
from gpu_backend.plain_text import printable

_MOST_NAMES = 40
_MOST_BYTES = 16


@dataclass(slots=True)
class Particulars:
    """What came to light of a file until it was refused.

    Attributes
    ----------
    nbytes, head
        Its size and its first bytes; None where it could not be opened.
    kind
        What those bytes begin: "a pickle".
    imports
        Names that it imports, ``"module name"``, including the refused one.
    facts
        Its content as far as known, a line each.
    """

    path: Path
    nbytes: int | None = None
    head: bytes | None = None
    kind: str = ""
    imports: set[str] = field(default_factory=set)
    facts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One particular a line; nothing of the file in it can steer a terminal."""
        lines = [f"File: {printable(str(self.path))}"]
        if self.nbytes is not None:
            lines.append(f"Size: {self.nbytes:,} bytes")
        if self.head:
            lines.append(f"First bytes: {self.head[:_MOST_BYTES].hex(' ')} ({self.kind})")
        lines.extend(_printable(fact) for fact in self.facts)
        if self.imports:
            lines.append("It asks to import (nothing was run):")
            names = sorted(self.imports)
            lines.extend(f"  {shown(name)[1:-1]}" for name in names[:_MOST_NAMES])
            if len(names) > _MOST_NAMES:
                lines.append(f"  and {len(names) - _MOST_NAMES} more")
        return "\n".join(lines)


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in text)
