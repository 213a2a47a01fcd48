"""Small pictures under keys of pictures, and on the way from one to the next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from PySide6.QtGui import QPixmap

from explorer_app.session.session import Session
from explorer_app.session.timeline.evaluation import track_session
from explorer_app.session.tracks import STATE
from explorer_app.window.timeline.timeline_scene import Scene
from explorer_app.window.timeline.track_rows import TrackRow, times_of

_MOST = 2000


class KeyPictures:
    """Keeps the pictures that were painted last, and requests missing ones.

    Parameters
    ----------
    request
        Gets the key of a picture and the session that it shows; `show` answers.

    Attributes
    ----------
    may_request
        Whether missing pictures are requested: not while a gesture changes what they show or which are seen.
    """

    def __init__(self, request: Callable[[object, Session], None]) -> None:
        self._request = request
        self._pictures: OrderedDict[Any, QPixmap] = OrderedDict()
        self.may_request = True

    def show(self, key: object, image: Any) -> None:
        """Take a picture that was requested."""
        self._pictures[key] = QPixmap.fromImage(image)
        while len(self._pictures) > _MOST:
            self._pictures.popitem(last=False)

    def clear(self) -> None:
        """Forget every picture."""
        self._pictures.clear()

    def of_key(self, scene: Scene, row: TrackRow, index: int) -> QPixmap | None:
        """Return the picture of a key; None until it is rendered."""
        value = row.track.keys[index].value
        shown = value if row.track.path == STATE else Session(pinned_blend=value)
        return self._picture(scene, shown, lambda: shown)

    def between(self, scene: Scene, row: TrackRow, index: int, share: Fraction) -> QPixmap | None:
        """Return the picture at a share of the way from a key to the next one; None until it is rendered."""
        track = row.track
        keys = track.keys[max(0, index - 1) : index + 3]  # a spline depends on the neighbours, too
        times = times_of(scene.timeline, track)
        t = times[index] + float(share) * (times[index + 1] - times[index])
        key = (track.path, track.way, keys, index, share)
        return self._picture(scene, key, lambda: track_session(scene.session, track, t))

    def _picture(self, scene: Scene, key: Any, session: Callable[[], Session]) -> QPixmap | None:
        picture = self._pictures.get(key)
        if picture is not None:
            self._pictures.move_to_end(key)
        elif self.may_request:
            self._request(key, replace(session(), model=scene.session.model))
        return picture
