"""Dragging points of the picture: handles, pins and strokes. A stroke is one step of undo.

An optimiser on the render thread follows the handles (`rendering/tasks/drag.py`). Each latent that it reports becomes
the transient latent of a gesture; when the stroke has settled, the gesture becomes a step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, Signal, Slot

import gpu_backend
from explorer_app.controller.drag_points import DragPoint, DragPoints, Pixels
from explorer_app.controller.drag_preparation import DragPreparation
from explorer_app.controller.drag_stroke import NEARER_PX, DragStroke, Phase
from explorer_app.controller.editing import Editing
from explorer_app.controller.model_opener import ModelOpener
from explorer_app.controller.playback import Playback
from explorer_app.controller.preview import Preview
from explorer_app.messages import MessageLog
from explorer_app.rendering.render_events import DragAdvanced, DragFailed
from explorer_app.rendering.tasks.drag import DragLike, MakesDrags
from explorer_app.session.edited_latent import (
    DRAG,
    FadeEdit,
    TakeBlendRows,
    TakeEditedRows,
    edited_latent,
    recipe_before,
    recipe_shown,
)
from explorer_app.session.local_blends import blend_at
from explorer_app.session.resolve import content_of, resolve
from explorer_app.session.timeline.edits import SetTimeline
from explorer_app.session.timeline.stroke import with_stroke
from gpu_backend import LoomError, RowRange, StoredLatent, Transform

if TYPE_CHECKING:
    from gpu_backend import Model

SOURCE = "PointDrag"
"""Source of the edits."""

MOST_POINTS = 32
_TOO_MANY = f"{MOST_POINTS} points are set; remove one to set another."

_MISSED = 1 / 64
"""Distance to its target, in widths of the picture, from which a handle that comes no nearer is frozen."""
_LEFT_BEHIND = 1 / 32
"""Distance to its target, in widths of the picture, from which content that tracking finds elsewhere is lost."""


class DragRenders(Protocol):
    """The part of `RenderThread` that drags."""

    @property
    def model(self) -> Model | None:
        """The model that is rendered."""
        ...

    def begin_drag(self, number: int, make: Callable[[], DragLike]) -> None:
        """Begin a drag."""
        ...

    def aim_drag(self, index: int, target: Pixels) -> None:
        """Move a target."""
        ...

    def end_drag(self) -> None:
        """End the drag."""
        ...


class PointDrag(QObject):
    """Handles and pins in the picture, and the stroke under way.

    ::

        rest ──begin──► preparing ──first report──► moving ──release──► settling ──settled──► rest, one step
          ▲                 └────────────cancel───────┴─────────────────────┘
          └──────────────────────────────┘

    Signals
    -------
    changed()
        Points, selection, phase or settings changed.

    Parameters
    ----------
    make_maker
        Makes the maker of optimisers at the first use; None for `gpu_backend.DragMaker`.
    clock
        Seconds from any origin, for the times of a stroke's keys.
    """

    changed = Signal()

    def __init__(
        self,
        renders: DragRenders,
        model: ModelOpener,
        preview: Preview,
        editing: Editing,
        playback: Playback,
        messages: MessageLog,
        make_maker: Callable[[], MakesDrags] | None = None,
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._renders = renders
        self._model = model
        self._preview = preview
        self._editing = editing
        self._playback = playback
        self._messages = messages
        self._preparation = DragPreparation(make_maker)
        self._clock = clock
        self._number = 0
        self._points = DragPoints()
        self._stroke: DragStroke | None = None
        """The one under way."""
        self._waits_for_rows = False
        self._finished: tuple[tuple[float, StoredLatent], ...] = ()
        """(seconds, latent) pairs of the last stroke that became a step."""
        self._rows: RowRange | None = None
        self._block: int | None = None
        self._picture = content_of(resolve(editing.session))
        """What the picture is made of that the points are set in."""
        self._shown_share: float | None = None
        editing.before_edit.append(self._edit_coming)
        editing.session_changed.connect(self._session_changed)
        editing.stepped.connect(self._abandon)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def points(self) -> tuple[DragPoint, ...]:
        """Handles and pins, in the order that they were set."""
        return self._points.points

    @property
    def selected(self) -> int | None:
        """Index of the point that keys move and remove."""
        return self._points.selected

    @property
    def phase(self) -> Phase:
        """Where the stroke is in its life."""
        return "rest" if self._stroke is None else self._stroke.phase

    @property
    def distance(self) -> float:
        """Pixels that the content of the farthest handle has to go."""
        return self._points.left

    @property
    def problem(self) -> str:
        """A sentence about a handle that does not follow; empty if all do."""
        return self._points.problem

    @property
    def rows(self) -> RowRange | None:
        """Rows of w that may change; None for the coarse and middle ones."""
        return self._rows

    @property
    def block(self) -> int | None:
        """Resolution of the features that are compared; None for the largest that is fast enough."""
        return self._block

    @property
    def has_stroke(self) -> bool:
        """Whether there is a finished stroke that can become keys of the timeline."""
        return len(self._finished) > 1

    # -- settings ---------------------------------------------------------------------------------------------------

    def set_rows(self, rows: RowRange | None) -> None:
        """Choose the rows of w that may change, from the next stroke on."""
        self._rows = rows
        self.changed.emit()

    def set_block(self, block: int | None) -> None:
        """Choose the features that are compared, from the next stroke on."""
        self._block = block
        self.changed.emit()

    def prepare(self) -> None:
        """Open the model's network on a thread, so that the first stroke begins at once."""
        model = self._renders.model
        if model is not None:
            self._preparation.begin(model, resolve(self._editing.session))

    # -- points -----------------------------------------------------------------------------------------------------

    def add(self, place: Pixels, *, is_pin: bool) -> None:
        """Set a handle or a pin, and select it. A stroke under way ends first."""
        self.finish()
        if len(self.points) >= MOST_POINTS:
            self._messages.warning(_TOO_MANY)
            return
        self._points = self._points.with_added(DragPoint(place, place, is_pin))
        self._picture = content_of(resolve(self._editing.session))
        self.changed.emit()

    def select(self, index: int | None) -> None:
        """Select a point; None selects nothing."""
        if index != self.selected:
            self._points = self._points.selecting(index)
            self.changed.emit()

    def remove_selected(self) -> None:
        """Remove the selected point. A stroke under way ends first."""
        if self.selected is None:
            return
        self.finish()
        self._points = self._points.without_selected()
        self.changed.emit()

    def clear(self) -> None:
        """Remove every point. A stroke under way ends first."""
        self.finish()
        if self.points:
            self._points = DragPoints()
            self.changed.emit()

    # -- a stroke ---------------------------------------------------------------------------------------------------

    def begin(self, place: Pixels, index: int | None = None, *, together: bool = False) -> bool:
        """Begin a stroke; return whether it began. A message says why if not.

        It changes the latent whose picture shows at `place`: under the mask of a blend the second one of that.

        Parameters
        ----------
        place
            Where the pointer was pressed.
        index
            A handle that was taken hold of, or a pin, which becomes one; None sets a new handle, in place of the former
            ones.
        together
            All handles move by what the pointer moves, and a new handle leaves the former ones.
        """
        self.finish()
        obstacle = self._obstacle()
        if obstacle:
            self._messages.warning(obstacle)
            return False
        if index is None and len(self._points.taken(None, place, together=together).points) > MOST_POINTS:
            self._messages.warning(_TOO_MANY)
            return False
        held = None if index is None else self.points[index]
        self._editing.announce_edit(SOURCE)
        self._playback.set_playing(False)
        self._editing.set_drifting(False)
        if held is not None:  # what played may have moved the picture on, which removes handles
            index = self.points.index(held) if held in self.points else None
        before, self._points = self._points, self._points.taken(index, place, together=together)
        targets = {i: point.target for i, point in enumerate(self.points) if not point.is_pin}
        dragged = {i: target for i, target in targets.items() if together or i == self.selected}
        self._stroke = DragStroke(before, dragged, self._blend_at(place))
        self._wait_for_rows(True)
        self._begin_with_rows()
        self.changed.emit()
        return True

    def aim(self, dx: float, dy: float) -> None:
        """Move the targets of the dragged handles to their places at the press plus an offset in pixels."""
        stroke = self._stroke
        if stroke is None or stroke.phase == "settling":
            return
        for index, start in stroke.dragged.items():
            point, target = self.points[index], self._in_picture(start, dx, dy)
            if not point.is_lost and point.target != target:
                self._points = self._points.with_replaced(index, replace(point, target=target))
                if not self._waits_for_rows:
                    self._renders.aim_drag(self._points.place_among_handles(index), target)
        self.changed.emit()

    def release(self) -> None:
        """Let the handles settle; the stroke ends by itself."""
        stroke = self._stroke
        if stroke is None or stroke.phase == "settling":
            return
        stroke.release()
        if stroke.report is not None and stroke.report.is_settled and self._points.distance < NEARER_PX:
            self._finish_settled()
        self.changed.emit()

    def nudge(self, dx: float, dy: float) -> None:
        """Move the selected handle's target by an offset in pixels, in the current stroke or a new one; or a pin."""
        index = self.selected
        if index is None:
            return
        if self.points[index].is_pin:
            self.finish()
            pin = self.points[index]
            place = self._in_picture(pin.place, dx, dy)
            self._points = self._points.with_replaced(index, replace(pin, place=place, target=place))
            self.changed.emit()
            return
        stroke = self._stroke
        if stroke is not None and stroke.phase == "settling" and index in stroke.dragged:
            stroke.phase = "moving"
            stroke.dragged = {index: self.points[index].target}
        elif not self.begin(self.points[index].place, index):
            return
        self.aim(dx, dy)
        self.release()

    def cancel(self) -> bool:
        """Return to the start of the stroke; return whether there was one."""
        stroke = self._stroke
        if stroke is None:
            return False
        self._end_drag()
        self._editing.cancel_gesture(SOURCE)
        self._points = stroke.before
        self._rest()
        return True

    def finish(self) -> None:
        """End the stroke with the latent that it has reached, as one step of undo."""
        if self._stroke is not None and self._stroke.edit is not None:
            self._playback.set_playing(False)  # else the next frame of the timeline would replace the result
        self._finish()

    def _finish(self) -> None:
        stroke = self._stroke
        if stroke is None:
            return
        self._end_drag()
        if stroke.edit is not None:
            self._editing.edit(stroke.edit, True, SOURCE)
            self._finished = tuple(stroke.samples)
        else:
            self._editing.cancel_gesture(SOURCE)
        self._points = self._points.at_rest()
        self._rest()

    # -- what an edit can become ------------------------------------------------------------------------------------

    @property
    def share(self) -> float | None:
        """Share of the edit that is shown, 0..1; None if the latent was not edited."""
        edited = edited_latent(self._editing.session)
        return None if edited is None else edited.share

    def fade(self, share: float, final: bool = True) -> None:
        """Show a share of the edit: 0 is the picture before it."""
        self.finish()
        if self.share is not None:
            self._editing.edit(FadeEdit(share), final, SOURCE)

    def cancel_fade(self) -> None:
        """Return to the share before the fading under way."""
        self._editing.cancel_gesture(SOURCE)

    def keep_as_keys(self) -> None:
        """Make keys of the last stroke, from the playhead on and at the speed of drawing."""
        if not self.has_stroke:
            return
        session = self._editing.session
        try:
            timeline = with_stroke(session.timeline, session, self._finished, self._playback.time)
        except LoomError as error:
            self._messages.warning(error.sentence)
            return
        self._editing.edit(SetTimeline(timeline, "Keep stroke as keys"))

    # -- what the controller calls ----------------------------------------------------------------------------------

    def take_advanced(self, event: DragAdvanced) -> None:
        """Show where the handles are, and the latent."""
        stroke, report = self._stroke, event.report
        if event.number != self._number or stroke is None:
            return
        if stroke.report is None:
            slowness = self._preparation.new_slowness()
            if slowness:
                self._messages.info(slowness)
        stroke.take(report)
        self._points = self._points.followed(report)
        if report.step > 0:
            if stroke.blend:
                stroke.edit = TakeBlendRows(stroke.blend, event.latent)
            else:
                stroke.edit = TakeEditedRows(stroke.recipe, event.latent)
            stroke.note(self._clock(), event.latent)
            self._editing.edit(stroke.edit, False, SOURCE)
        if stroke.is_stuck(self._points.distance):
            self._points = self._points.given_up(self._side * _MISSED)
            self.finish()
        elif stroke.phase == "settling" and report.is_settled:
            self._finish_settled()
        else:
            self.changed.emit()

    def take_failed(self, event: DragFailed) -> None:
        """End the stroke, and say why."""
        if event.number == self._number and self._stroke is not None:
            self.cancel()
            self._messages.exception(event.error)

    def forget(self) -> None:
        """Another model is open: points and network are of no use."""
        if self._stroke is not None:
            self._end_drag()
            self._stroke = None
        self._points, self._finished = DragPoints(), ()
        self._preparation.forget()
        self.changed.emit()

    def close(self) -> None:
        """End the stroke as a step, and wait for the thread that prepares. May be called twice."""
        self.finish()
        self._preparation.join()

    # -- inside -----------------------------------------------------------------------------------------------------

    @property
    def _side(self) -> int:
        facts = self._model.facts
        return 1 if facts is None else facts.resolution

    def _finish_settled(self) -> None:
        """End a stroke whose drag has settled: the handles are where tracking found their content."""
        stroke = self._stroke
        if stroke is not None:
            ways = {index: math.dist(start, self.points[index].target) for index, start in stroke.dragged.items()}
            self._points = self._points.at_content(ways, self._side * _LEFT_BEHIND)
        self.finish()

    def _in_picture(self, place: Pixels, dx: float, dy: float) -> Pixels:
        """Return a place moved by an offset, as far as the edge of the picture."""
        last = self._side - 1.0
        return min(max(place[0] + dx, 0.0), last), min(max(place[1] + dy, 0.0), last)

    def _obstacle(self) -> str:
        """Return why no stroke can begin; empty if one can."""
        session = self._editing.session
        if self._renders.model is None:
            return "Points can be dragged once the model is open; wait a moment."
        if session.tap is not None:
            return "A layer is shown; go back to the picture (L) to drag its points."
        if session.transform != Transform():
            return "Points cannot be dragged in a transformed picture; reset its transform first."
        if moved_by := self._editing.moved_by:
            return f"{moved_by} to drag points."
        return ""

    @Slot()
    def _begin_with_rows(self) -> None:
        """Begin the drag once the rows of w of the picture are known."""
        stroke, latent, model = self._stroke, self._latent(), self._renders.model
        if stroke is None or latent is None or model is None:
            return
        self._wait_for_rows(False)
        self._number += 1
        session, request = self._editing.session, resolve(self._editing.session)
        stroke.recipe = (recipe_before if self._was_dragged() else recipe_shown)(session, latent)
        stroke.note(self._clock(), latent)
        handles = [gpu_backend.Handle(point.place, point.target) for point in self._points.handles]
        settings = gpu_backend.DragSettings(
            pins=tuple(point.place for point in self._points.pins),
            mask=None if session.mask is None else session.mask.shares,
            rows=self._rows,
            blend=self._place_of(stroke.blend),
            block=self._block,
        )
        make = partial(self._preparation.maker.make, model, request.noise, request.edits, latent, handles, settings)
        self._renders.begin_drag(self._number, make)

    def _latent(self) -> StoredLatent | None:
        """Return the rows of w of the session; None until its picture has arrived."""
        blend = resolve(self._editing.session).blend
        if len(blend) == 1:
            latent = blend[0][0].latent
            if isinstance(latent.point, StoredLatent) and not latent.mix and not latent.directions:
                return latent.point
        return self._editing.shown_latent

    def _was_dragged(self) -> bool:
        """Return whether the session's edited rows come from a stroke, which the next one continues; not from a photo.

        The oldest step with these rows made them.
        """
        edited = edited_latent(self._editing.session)
        if edited is None:
            return False
        for entry in self._editing.history.entries:
            other = edited_latent(entry.session)
            if other is not None and other.rows == edited.rows:
                return entry.label == DRAG
        return False

    def _blend_at(self, place: Pixels) -> int:
        """Return the number of the blend whose second picture shows at a place; 0 for none."""
        facts = self._model.facts
        if facts is None:
            return 0
        x, y = ((at + 0.5) / facts.resolution for at in place)
        rows = self._rows or gpu_backend.default_drag_rows(facts.row_resolutions)
        found = blend_at(self._editing.session.blends, x, y, rows, facts.num_ws)
        return 0 if found is None else found.number

    def _place_of(self, blend: int) -> int | None:
        """Return the place of a blend of a number among those that act; None for the picture's own latent, 0."""
        acting = [item.number for item in self._editing.session.blends if item.acts and item.strength]
        return acting.index(blend) if blend else None

    def _end_drag(self) -> None:
        """End the drag on the render thread; its reports no longer count."""
        self._renders.end_drag()
        self._number += 1
        self._wait_for_rows(False)

    def _rest(self) -> None:
        self._stroke = None
        self._picture = content_of(resolve(self._editing.session))
        self.changed.emit()

    def _wait_for_rows(self, on: bool) -> None:
        """Wait for the rows of the next frame, or no longer; other frames concern no drag."""
        if on != self._waits_for_rows:
            self._waits_for_rows = on
            frames = self._preview.frame_changed
            if on:
                frames.connect(self._begin_with_rows)
            else:
                frames.disconnect(self._begin_with_rows)

    def _edit_coming(self, source: str) -> None:
        """End the stroke before another source edits the session: its edit acts on what the stroke has reached."""
        if source != SOURCE:
            self._finish()

    @Slot()
    def _abandon(self) -> None:
        """End the stroke without an edit: undo made it a step, and went to another one."""
        if self._stroke is not None:
            self._end_drag()
            self._stroke = None
            self.changed.emit()

    @Slot()
    def _session_changed(self) -> None:
        """Remove the handles once the picture is another one, since their content is elsewhere now; pins stay."""
        share = self.share
        is_other = share != self._shown_share
        self._shown_share = share
        if self._stroke is None and self.points and content_of(resolve(self._editing.session)) != self._picture:
            before, self._points = self._points, self._points.without_handles()
            is_other = is_other or self._points is not before
        if is_other:
            self.changed.emit()
