"""Commands that change what the window shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from explorer_app.messages import MessageLog
from explorer_app.window.canvas.canvas import Canvas
from explorer_app.window.canvas.comparing import Comparing
from explorer_app.window.docks.workspace import Workspace
from explorer_app.window.output.outputs import Outputs
from explorer_app.window.shell.editing_tools import EditingTools

if TYPE_CHECKING:
    from explorer_app.window.grids.variation_view import VariationView
    from explorer_app.window.history.history_strip import HistoryStrip
    from explorer_app.window.layers.layers_panel import LayersPanel

_ZOOM_STEP = 1.25


class ViewParts(Protocol):
    """The parts of the main window that these commands use; they exist once the window is built."""

    canvas: Canvas
    comparing: Comparing
    workspace: Workspace
    outputs: Outputs
    tools: EditingTools

    @property
    def variations(self) -> VariationView:
        """The grid over the canvas. Like the panels it is created on first access."""
        ...

    @property
    def history(self) -> HistoryStrip:
        """The panel of steps and kept pictures. Like the other panels it is created on first access."""
        ...

    @property
    def layers(self) -> LayersPanel:
        """The panel of the model's layers."""
        ...

    def set_picture_alone(self, on: bool) -> None:
        """Show only the canvas in full screen, or restore the window."""
        ...


class ViewCommands:
    """Zoom, comparisons, workspaces and panels."""

    def __init__(self, parts: ViewParts, messages: MessageLog) -> None:
        self._parts = parts
        self._messages = messages

    def fit(self) -> None:
        """Show the whole picture."""
        self._parts.canvas.fit()

    def one_to_one(self) -> None:
        """Show the picture's own pixels."""
        self._parts.canvas.one_to_one()

    def zoom_in(self) -> None:
        """Enlarge."""
        self._parts.canvas.zoom_by(_ZOOM_STEP)

    def zoom_out(self) -> None:
        """Shrink."""
        self._parts.canvas.zoom_by(1 / _ZOOM_STEP)

    def before(self, on: bool) -> None:
        """Show the picture before the last step; False shows the current picture again."""
        self._parts.comparing.show_before(on)

    def compare(self) -> None:
        """Compare the selected kept pictures, or the picture with the one before the last step."""
        numbers = self._parts.history.selected_numbers()
        if len(numbers) > 2:
            self._messages.info("Select one or two kept pictures to compare.")
        elif not self._parts.comparing.compare(numbers):
            self._messages.info("There is nothing to compare yet: change the picture, or select kept pictures.")

    def variations(self, on: bool) -> None:
        """Show the grid of variations; False shows the picture."""
        self._parts.variations.show_grid(on)

    def transform(self, on: bool) -> None:
        """Enter or leave transform mode."""
        self._parts.canvas.transform.set_on(on)

    def drag_points(self, on: bool) -> None:
        """Enter or leave the tool that drags points."""
        self._parts.tools.points.set_on(on)

    def layer(self, on: bool) -> None:
        """Show the layer that was shown last; False shows the picture."""
        self._parts.layers.toggle(on)

    def workspace_explore(self, on: bool = True) -> None:
        """Show the workspace for finding pictures."""
        self._parts.workspace.switch_to("explore")

    def workspace_animate(self, on: bool = True) -> None:
        """Show the workspace for moving pictures."""
        self._parts.workspace.switch_to("animate")

    def workspace_measure(self, on: bool = True) -> None:
        """Show the workspace for kernels."""
        self._parts.workspace.switch_to("measure")

    def panels(self, on: bool) -> None:
        """Show all panels, or hide them."""
        self._parts.workspace.set_panels_shown(on)

    def picture_alone(self, on: bool) -> None:
        """Show only the canvas in full screen, or restore the window."""
        self._parts.set_picture_alone(on)

    def output(self, on: bool) -> None:
        """Show the picture alone on another screen, or close it there."""
        self._parts.outputs.toggle(on)

    def next_panel(self) -> None:
        """Move the keyboard focus to the next panel."""
        self._parts.workspace.focus_order.pass_focus(1)

    def previous_panel(self) -> None:
        """Move the keyboard focus to the previous panel."""
        self._parts.workspace.focus_order.pass_focus(-1)

    def reset_layout(self) -> None:
        """Reset the workspace to its first layout."""
        self._parts.workspace.reset()
