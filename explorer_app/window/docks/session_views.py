"""Passes sessions to visible widgets whose part of it changed; hidden widgets update when they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar, Protocol

from explorer_app.session.session import Session


class SessionView(Protocol):
    """A widget that shows some fields of a session and edits them."""

    SESSION_PARTS: ClassVar[tuple[str, ...]]
    """Names of the `Session` fields that the widget shows."""

    edited: Any
    """Signal with an Edit, and whether it is the last one of a gesture."""

    def show_session(self, session: Session) -> None:
        """Show a session, without emitting."""
        ...


class SessionViews:
    """Passes sessions to widgets.

    A widget that has emitted an edit always gets the next session, even while hidden: it may show the requested value,
    and the edit may have been clamped or rejected.
    """

    def __init__(self, views: Iterable[SessionView] = ()) -> None:
        self._session: Session | None = None
        self._views: list[SessionView] = []
        self._shown: dict[SessionView, Session] = {}
        """The last session passed to each widget; a widget without an entry is always updated."""
        self._hidden: set[SessionView] = set()
        self._ahead: set[SessionView] = set()
        """Widgets that have emitted an edit since their last update."""
        for view in views:
            self.add(view)

    def add(self, view: SessionView) -> None:
        """Register a widget, and pass it the current session if there is one."""
        self._views.append(view)
        view.edited.connect(partial(self._edited, view))
        self._update(view)

    def show(self, session: Session) -> None:
        """Pass a session to visible widgets whose fields changed."""
        self._session = session
        for view in self._views:
            if view not in self._hidden or view in self._ahead:
                self._update(view)

    def refresh(self, session: Session) -> None:
        """Update all visible widgets now and all others when they are shown, because another model was opened."""
        self._shown.clear()
        self.show(session)

    def set_on_show(self, view: SessionView, on: bool) -> None:
        """Record whether a widget is visible; a widget that becomes visible gets the current session."""
        if on:
            self._hidden.discard(view)
            self._update(view)
        else:
            self._hidden.add(view)

    def _edited(self, view: SessionView, _edit: object, _is_final: bool) -> None:
        self._ahead.add(view)

    def _update(self, view: SessionView) -> None:
        session = self._session
        if session is None:
            return
        before = self._shown.get(view)
        is_behind = before is None or _differ(before, session, view.SESSION_PARTS)
        if not is_behind and view not in self._ahead:
            return
        self._ahead.discard(view)
        self._shown[view] = session
        view.show_session(session)


def _differ(before: Session, after: Session, parts: tuple[str, ...]) -> bool:
    for part in parts:
        old, new = getattr(before, part), getattr(after, part)
        if old is not new and old != new:
            return True
    return False
