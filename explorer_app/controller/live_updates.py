"""Coalesces session changes: at most one render request per screen refresh, however many input events arrive.

A mouse may send a thousand events per second. Each event only replaces the session. A change after a pause is rendered
immediately; later changes wait for the next tick, which is one screen refresh. Panels update with the rendered frame,
at most every sixth refresh: numbers cannot be read faster, and the picture has priority.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer, Slot

REFRESH_HZ = 60.0
"""Assumed refresh rate in Hz until the screen's rate is known."""

_MOST_HZ = 250.0

_EARLY = 0.25
"""A tick is over this part of a refresh before its end: a drag reports at the same rate, and would otherwise wait for a
timer whenever a report comes a little earlier than the one before it."""

REFRESHES_PER_PANEL_UPDATE = 6
"""Panels update at most every sixth screen refresh: numbers that change faster are unreadable."""

PATIENCE_MS = 100
"""Panels update without a frame after this time: the renderer may be slow, or may reject the session."""


def refresh_ms(hz: float = REFRESH_HZ) -> int:
    """Return the refresh interval of a screen, in whole ms, rounded down; rendering more often would be wasted."""
    return int(1000.0 * refresh_s(hz))


def refresh_s(hz: float = REFRESH_HZ) -> float:
    """Return the refresh interval of a screen in seconds, that of 60 Hz if its rate in Hz is not known."""
    return 1.0 / min(_MOST_HZ, hz if hz >= 1.0 else REFRESH_HZ)


def next_tick_s(end_s: float, now_s: float, period_s: float) -> float:
    """Return when the tick ends that begins now, at the end of another one that was to end at `end_s`, all in seconds.

    A tick that begins a little early or late moves no later one, so that their rate is that of the screen. Ticks that
    were missed are not made up for.
    """
    end_s += period_s
    return end_s if period_s / 2 < end_s - now_s <= (1.0 + _EARLY) * period_s else now_s + period_s


class LiveUpdates(QObject):
    """Coalesces changes of a session.

    Parameters
    ----------
    request
        Requests a render of the current session.
    update_panels
        Shows the current session in the panels.
    clock
        Monotonic time in seconds, with any origin.
    """

    def __init__(
        self,
        request: Callable[[], object],
        update_panels: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._request, self._update_panels, self._clock = request, update_panels, clock
        self._needs_request = self._needs_panel_update = self._has_frame = False
        self._panels_updated_s = self._tick_end_s = float("-inf")
        self._interval_s = refresh_s()
        # Changes come once per tick during a drag. Both timers run only while something waits for them, and what
        # is known of them is kept here: starting a timer, or asking it, costs as much as all the rest of a change.
        self._waits_for_tick = self._waits_for_panels = False
        self._tick = QTimer(self)
        self._tick.setSingleShot(True)
        self._tick.setTimerType(Qt.TimerType.PreciseTimer)
        self._tick.timeout.connect(self._advance)
        self._late = QTimer(self)
        self._late.setSingleShot(True)
        self._late.setInterval(PATIENCE_MS)
        self._late.timeout.connect(self._update_late_panels)

    def follow_screen(self, hz: float) -> None:
        """Set the tick interval from a screen's refresh rate in Hz."""
        self._interval_s = refresh_s(hz)

    def changed(self, *, panels: bool = True) -> None:
        """Record that the session changed; further changes wait for the next tick.

        `panels` is False where only modulation changed, which panels do not show.
        """
        self._needs_request = True
        self._needs_panel_update |= panels
        left_s = self._tick_end_s - self._clock()
        if left_s <= _EARLY * self._interval_s:
            self._advance()
        elif not self._waits_for_tick:
            self._waits_for_tick = True
            self._tick.start(max(1, int(1000.0 * left_s)))

    def frame_shown(self) -> None:
        """Record that a frame was painted, and update the panels if their interval has passed."""
        self._has_frame = True
        self._update_panels_after(self._panel_interval_ms)

    def stop(self) -> None:
        """Drop pending requests and panel updates; the caller does both itself, or shuts down. Idempotent.

        The next change updates the panels immediately.
        """
        self._needs_request = self._needs_panel_update = False
        self._panels_updated_s = self._tick_end_s = float("-inf")
        self._waits_for_tick = self._waits_for_panels = False
        self._tick.stop()
        self._late.stop()

    @property
    def _panel_interval_ms(self) -> int:
        """Shortest interval between panel updates in ms: 10 updates per second on a 60 Hz screen."""
        return REFRESHES_PER_PANEL_UPDATE * int(1000.0 * self._interval_s)

    @Slot()
    def _advance(self) -> None:
        """Request the picture if the session changed, and start a tick."""
        if self._waits_for_tick:
            self._waits_for_tick = False
            self._tick.stop()
        if not self._needs_request:
            self._update_panels_after(self._panel_interval_ms)
        else:
            had_frame = self._has_frame
            self._tick_end_s = next_tick_s(self._tick_end_s, self._clock(), self._interval_s)
            self._needs_request = self._has_frame = False
            self._request()
            if not had_frame:  # while frames come, they update the panels, which are then painted with the picture
                self._update_panels_after(PATIENCE_MS)
        if self._needs_panel_update and not self._waits_for_panels:
            self._waits_for_panels = True
            self._late.start()

    @Slot()
    def _update_late_panels(self) -> None:
        """Update the panels that no frame has updated meanwhile."""
        self._waits_for_panels = False
        self._update_panels_after(self._panel_interval_ms)
        if self._needs_panel_update:
            self._waits_for_panels = True
            self._late.start()

    def _update_panels_after(self, interval_ms: float) -> None:
        """Update the panels if an update is pending and the last one is at least `interval_ms` ago."""
        if self._needs_panel_update:
            now_s = self._clock()
            if now_s - self._panels_updated_s >= interval_ms / 1000.0:
                self._needs_panel_update = False
                self._panels_updated_s = now_s
                self._update_panels()
