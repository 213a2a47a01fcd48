"""One latent for each session, as mix sources and blends need it, also of a session that blends several recipes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from explorer_app.controller.editing import Editing
from explorer_app.session.blend import resolve_blend
from explorer_app.session.resolve import kept_latent
from explorer_app.session.session import Session
from gpu_backend import Latent, StoredLatent

TakesRows = Callable[[Sequence[StoredLatent]], None]
FetchRows = Callable[[Sequence[Session], TakesRows], None]
"""Computes the w rows of sessions with the open model, as `RowFetches.fetch` does."""


def take_latents(sessions: Sequence[Session], fetch_rows: FetchRows, take: Callable[[Sequence[Latent]], None]) -> None:
    """Pass the latents of sessions to `take`: at once, or after `fetch_rows` if a session blends several recipes.

    Such a blend is no recipe, so its rows are stored. It is made by fading an edit, or between keys of the timeline.
    """

    def take_with(rows: Sequence[StoredLatent]) -> None:
        stored = iter(rows)
        take([Latent(next(stored)) if _is_blend(session) else kept_latent(session) for session in sessions])

    blends = [session for session in sessions if _is_blend(session)]
    if blends:
        fetch_rows(blends, take_with)
    else:
        take_with(())


def take_current(editing: Editing, fetch_rows: FetchRows, take: Callable[[Latent], None]) -> None:
    """Pass the present latent to `take`: at once if its picture has arrived, else as `take_latents` does."""
    shown = editing.shown_latent

    def fetch(sessions: Sequence[Session], take_rows: TakesRows) -> None:
        if shown is None:
            fetch_rows(sessions, take_rows)
        else:
            take_rows([shown])

    take_latents([editing.session], fetch, lambda latents: take(latents[0]))


def _is_blend(session: Session) -> bool:
    return len(resolve_blend(session)) > 1
