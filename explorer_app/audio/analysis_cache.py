"""Analyses of sounds, kept in the user's cache folder by the SHA-256 of the file."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from explorer_app.audio.analysis import VERSION, Analysis, analyse
from explorer_app.session.envelopes import Envelope
from explorer_app.session.patches import FEATURES
from gpu_backend import LazyModule, read_regular_file, write_whole

if TYPE_CHECKING:
    import numpy as np
else:
    np = LazyModule("numpy")

_log = logging.getLogger(__name__)

_MAX_FILES = 500
_MAX_NBYTES = 256 << 20


def cache_folder() -> Path:
    """Return where analyses are kept."""
    return platformdirs.user_cache_path("latentloom", appauthor=False) / "sounds"


def analysis_of(
    path: Path, digest: str, should_stop: Callable[[], bool] = lambda: False, folder: Path | None = None
) -> Analysis:
    """Return the analysis of a file with this SHA-256, from the cache if it is there. Raises SoundError."""
    folder = folder or cache_folder()
    kept = folder / f"{digest}-{VERSION}.npz"
    found = _read(kept)
    if found is None:
        found = analyse(path, should_stop)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(kept, _packed(found))
            _forget_oldest(folder)
        except OSError as error:
            _log.info("The analysis of %s was not kept: %s", path.name, error)
    return found


def envelope_of(analysis: Analysis, digest: str, feature: str) -> Envelope:
    """Return one envelope of an analysis."""
    return Envelope(digest, feature, analysis.envelopes[feature].astype("<u2").tobytes())


def _packed(found: Analysis) -> bytes:
    target = io.BytesIO()
    np.savez_compressed(
        target,
        envelopes=np.stack([found.envelopes[name] for name in FEATURES]),
        peaks=found.peaks,
        beats=found.beats,
        seconds=np.float64(found.seconds),
        grid=np.array(
            [found.bpm.numerator, found.bpm.denominator, found.first_beat.numerator, found.first_beat.denominator]
        ),
    )
    return target.getvalue()


def _read(path: Path) -> Analysis | None:
    """Return a kept analysis; None if there is none, or it is damaged."""
    try:
        content = read_regular_file(path, _MAX_NBYTES, "an analysis")
        with np.load(io.BytesIO(content), allow_pickle=False) as data:
            envelopes, grid = data["envelopes"], [int(number) for number in data["grid"]]
            if envelopes.dtype != np.uint16 or envelopes.ndim != 2 or len(envelopes) != len(FEATURES) or len(grid) != 4:
                return None
            return Analysis(
                float(data["seconds"]),
                dict(zip(FEATURES, envelopes, strict=True)),
                data["peaks"].astype(np.int8).reshape(-1, 2),
                Fraction(grid[0], grid[1]),
                Fraction(grid[2], grid[3]),
                data["beats"].astype(np.float32),
            )
    except FileNotFoundError:
        return None
    except Exception as error:  # NumPy and zip raise nearly anything for a damaged file
        _log.info("The kept analysis %s cannot be read: %s", path.name, error)
        return None


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime)
    for path in files[:-_MAX_FILES]:
        path.unlink(missing_ok=True)
