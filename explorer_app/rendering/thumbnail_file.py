"""Small pictures on disk, so that what was kept shows at once, without its model.

One SQLite database for all windows of a user: what a power cut leaves is whole, and two windows may write at a time. It
is a cache: a damaged database is created again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from explorer_app.rendering.thumbnails import THUMBNAIL_PX
from explorer_app.session.session import Session, as_still
from explorer_app.session.storage import session_bytes
from gpu_backend import LazyModule, dataclass

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray
else:
    np = LazyModule("numpy")
    sqlite3 = LazyModule("sqlite3")

MAX_ENTRIES = 20_000
"""Pictures that are stored; the ones that were added first are dropped beyond it."""

_VERSION = 1
_PATIENCE_S = 2.0
_SIDE_PX = 4 * THUMBNAIL_PX


@dataclass(frozen=True, slots=True)
class StoredThumbnail:
    """A small picture: (height, width, 4) uint8 B, G, R, X, and the signature of its latent, (n,) float16, if known."""

    pixels: NDArray[np.uint8]
    signature: NDArray[np.float16] | None


class ThumbnailFile:
    """Small pictures by the digest of their session. Not thread-safe: one thread calls everything."""

    def __init__(self, path: Path, capacity: int = MAX_ENTRIES) -> None:
        self._path = path
        self._capacity = capacity
        self._connection: sqlite3.Connection | None = None
        self._is_broken = False

    def get(self, digest: bytes) -> StoredThumbnail | None:
        """Return a picture; None if it is not stored or cannot be read."""
        try:
            row = self._open().execute(
                "SELECT width, height, pixels, signature FROM thumbnails WHERE digest = ?", (digest,)
            )
            found = row.fetchone()
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last of names in a damaged database
            self._fail(error)
            return None
        return None if found is None else _thumbnail(*found)

    def put(self, entries: Iterable[tuple[bytes, StoredThumbnail]]) -> None:
        """Store pictures in one transaction. A disk that refuses costs only the pictures."""
        rows = [
            (
                digest,
                item.pixels.shape[1],
                item.pixels.shape[0],
                item.pixels.tobytes(),
                b"" if item.signature is None else item.signature.tobytes(),
            )
            for digest, item in entries
        ]
        try:
            connection = self._open()
            with connection:
                connection.executemany(
                    "INSERT OR REPLACE INTO thumbnails (digest, width, height, pixels, signature) "
                    "VALUES (?, ?, ?, ?, ?)",
                    rows,
                )
                connection.execute(
                    "DELETE FROM thumbnails WHERE number <= (SELECT MAX(number) FROM thumbnails) - ?", (self._capacity,)
                )
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last of names in a damaged database
            self._fail(error)

    def close(self) -> None:
        """Close the database. May be called twice."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._is_broken:
            raise sqlite3.OperationalError("The database failed before.")
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self._path, timeout=_PATIENCE_S, check_same_thread=False)
            self._connection = connection
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if not _is_current(connection):
                with connection:
                    connection.execute("BEGIN IMMEDIATE")
                    if not _is_current(connection):  # still: another window may have created it meanwhile
                        connection.execute("DROP TABLE IF EXISTS thumbnails")
                        connection.execute(
                            "CREATE TABLE thumbnails (number INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB UNIQUE, "
                            "width INTEGER, height INTEGER, pixels BLOB, signature BLOB)"
                        )
                        connection.execute(f"PRAGMA user_version = {_VERSION}")
        return self._connection

    def _fail(self, error: sqlite3.Error | OSError | UnicodeDecodeError) -> None:
        """Recreate a damaged database; give up one that cannot be used."""
        self.close()
        if _is_damage(error) and not self._is_broken:
            for suffix in ("", "-wal", "-shm"):
                with contextlib.suppress(OSError):
                    self._path.with_name(self._path.name + suffix).unlink()
        elif not _is_busy(error):
            self._is_broken = True


def _is_current(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == _VERSION)


def _is_damage(error: BaseException) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR  # the table, or a column, is missing
    return isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError)


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "sqlite_errorcode", 0) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def session_digest(session: Session) -> bytes:
    """Return the SHA-256 of what a session's picture follows from: its model and itself, without timeline and mask."""
    return hashlib.sha256(session_bytes(replace(as_still(session), mask=None))).digest()


def _thumbnail(width: int, height: int, pixels: bytes, signature: bytes) -> StoredThumbnail | None:
    if not (0 < width <= _SIDE_PX and 0 < height <= _SIDE_PX and len(pixels) == 4 * width * height):
        return None
    if len(signature) % 2:
        return None
    picture = np.frombuffer(pixels, np.uint8).reshape(height, width, 4)
    return StoredThumbnail(picture, np.frombuffer(signature, np.float16) if signature else None)
