"""How the session was fitted to the open model, so that another model brings back what this one lacks."""

from __future__ import annotations

from dataclasses import replace

from explorer_app.session.adapting import FitOrigin, adapt
from explorer_app.session.session import Session
from gpu_backend import ModelFacts


class ModelFit:
    """Fits the session to one model after the other, and remembers what it was fitted from."""

    def __init__(self) -> None:
        self._origin: FitOrigin | None = None
        """What the session was fitted to the open model from; None once it is another session."""
        self._is_of_snapshots = False

    def forget(self) -> None:
        """Take the session for another one than that which was fitted last."""
        self._origin = None

    def fit(
        self, session: Session, facts: ModelFacts, before: ModelFacts | None, *, is_browsing: bool
    ) -> tuple[Session, str]:
        """Return the session for a model, and a sentence that says what the fit changed; empty if that is known.

        What the model before lacked comes back with the model that had it.

        Parameters
        ----------
        before
            The model that was open until now.
        is_browsing
            Whether the models are snapshots of one training, gone through one after the other.
        """
        is_of_before = before is not None and before.model_id == session.model.model_id
        origin = FitOrigin(session, session, before.usual_cutoff if before is not None and is_of_before else None)
        earlier = self._origin
        if earlier is not None and self._goes_back_to(earlier, session, facts, is_browsing=is_browsing):
            origin = replace(earlier, before=earlier.restored(session))
        fitted = adapt(origin.before, facts, origin.usual_cutoff)
        is_told = fitted.changes == origin.changes
        self._origin = replace(origin, fitted=fitted.session, changes=fitted.changes)
        self._is_of_snapshots = is_browsing
        if not fitted.changes or is_told:
            return fitted.session, ""
        back = ""
        if is_browsing:
            back = "; a snapshot that has them brings them back"
        elif origin.before.model.model_id not in ("", facts.model_id):
            back = f"; {origin.before.model.name} brings back what was"
        return fitted.session, f"The session was fitted to {facts.name}: {', '.join(fitted.changes)}{back}."

    def _goes_back_to(self, origin: FitOrigin, session: Session, facts: ModelFacts, *, is_browsing: bool) -> bool:
        """Return whether a session that was fitted from `origin` is fitted to a model from there, and not as it is."""
        if is_browsing and self._is_of_snapshots:
            return True
        if not origin.changes or origin.fitted.model.model_id != session.model.model_id:
            return False
        return session == origin.fitted or origin.before.model.model_id == facts.model_id
