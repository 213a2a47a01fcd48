"""Commands that edit the session."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from explorer_app.controller import Editing, Mixing
from explorer_app.session.edits import ZeroSliders, set_truncation
from explorer_app.session.session import Session
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.gestures.drag_holder import undo_drag_of
from explorer_app.window.shell.recipe_clipboard import RecipeClipboard


class EditCommands:
    """Undo, kept pictures, and edits without a widget of their own."""

    def __init__(self, editing: Editing, mixing: Mixing, canvas: Canvas, recipes: RecipeClipboard) -> None:
        self._editing = editing
        self._mixing = mixing
        self._canvas = canvas
        self._recipes = recipes

    def undo(self) -> None:
        """Cancel what is being drawn in the picture or dragged in a panel, else undo the last step.

        A running glide ends first and is the last step.
        """
        if not self._canvas.cancel_stroke() and not undo_drag_of(QApplication.focusWidget()):
            self._canvas.stop_glide()
            self._editing.undo()

    def redo(self) -> None:
        """Redo the step that was undone last."""
        self._canvas.stop_glide()
        self._editing.redo()

    def mix_in_current(self) -> None:
        """Add the current latent as a mix source."""
        self._mixing.add_current()

    def keep_current(self) -> None:
        """Add the current step to the kept pictures, or remove it from them."""
        history = self._editing.history
        if history.current is not None:
            number = history.current.number
            self._editing.kept.star(number, not history.is_kept(number))

    def copy_command(self) -> None:
        """Copy the command that renders the picture."""
        self._recipes.copy(self._editing.effective, "command")

    def copy_python(self) -> None:
        """Copy the Python program that renders the picture."""
        self._recipes.copy(self._editing.effective, "python")

    def zero_sliders(self) -> None:
        """Set every direction slider to zero."""
        self._editing.edit(ZeroSliders(), True)

    def reset_truncation(self) -> None:
        """Reset truncation to the value of a new session."""
        self._editing.edit(set_truncation(Session().truncation), True)

    def random_seed(self) -> None:
        """Jump to a random seed."""
        self._editing.random_seed()

    def drift(self, on: bool) -> None:
        """Start or stop drifting over the seed plane."""
        self._editing.set_drifting(on)
