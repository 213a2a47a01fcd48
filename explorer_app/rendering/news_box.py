"""News wait here, in order and none dropped, until the window takes them. No Qt."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from explorer_app.rendering.news import News


class NewsBox:
    """Safe to use from every thread.

    Parameters
    ----------
    announce
        Called, on the thread that tells, only if there was nothing to take before.
    """

    def __init__(self, announce: Callable[[], object]) -> None:
        self._announce = announce
        self._lock = threading.RLock()
        self._news: deque[News] = deque()
        self._is_closed = False

    def tell(self, news: News) -> None:
        """Leave news behind the others."""
        with self._lock:
            was_empty = not self._news
            self._news.append(news)
            if was_empty and not self._is_closed:
                self._announce()

    def take(self) -> list[News]:
        """Take all news, oldest first."""
        with self._lock:
            news = list(self._news)
            self._news.clear()
            return news

    def close(self) -> None:
        """Announce nothing any more: whoever heard it goes, and a thread that looks for a driver may not have ended."""
        with self._lock:
            self._is_closed = True
