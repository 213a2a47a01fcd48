"""The picture as an NDI source in the network, where cyndilib is installed: other programs of a stage mix it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from explorer_app.inputs.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LIBRARY = "cyndilib"
_RATE = Fraction(60)
"""Frame rate announced to receivers; frames are sent as they come."""


def has_ndi() -> bool:
    """Return whether the library for NDI is installed."""
    return find_spec(_LIBRARY) is not None


class NdiSender(Protocol):
    """Sends pictures of one size."""

    def send(self, pixels: NDArray[np.uint8]) -> None:
        """Send (height, width, 4) uint8 B, G, R, X. Raises OSError or RuntimeError if the library refuses."""
        ...

    def close(self) -> None:
        """Leave the network."""
        ...


class NdiOutput:
    """Sends the newest picture on a thread of its own; one that is replaced before it is sent is left out.

    Parameters
    ----------
    name
        Name of the source in the network.
    make_sender
        Makes a sender for a name, a width and a height; None for cyndilib's.

    Raises
    ------
    InputError
        If cyndilib is missing.
    """

    def __init__(self, name: str, make_sender: Callable[[str, int, int], NdiSender] | None = None) -> None:
        if make_sender is None and not has_ndi():
            raise InputError("NDI needs a library that is not installed: run pip install cyndilib and start again.")
        self._name = name
        self._make_sender = make_sender or CyndilibSender
        self._condition = threading.Condition()
        self._newest: NDArray[np.uint8] | None = None
        self._is_closed = False
        self.problem = ""
        """Why the library refused the last picture; empty if it did not."""
        self._thread = threading.Thread(target=self._run, name="ndi-output", daemon=True)
        self._thread.start()

    def show(self, pixels: NDArray[np.uint8]) -> None:
        """Send a picture, (height, width, 4) uint8 B, G, R, X, which the caller no longer changes. Does not block."""
        with self._condition:
            self._newest = pixels
            self._condition.notify()

    def close(self) -> None:
        """Leave the network. May be called twice."""
        with self._condition:
            self._is_closed = True
            self._condition.notify()
        self._thread.join()

    def _run(self) -> None:
        sender: NdiSender | None = None
        shape: tuple[int, ...] = ()
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._newest is not None or self._is_closed)
                if self._is_closed:
                    break
                pixels, self._newest = self._newest, None
            assert pixels is not None
            try:
                if sender is None or pixels.shape != shape:
                    if sender is not None:
                        former, sender = sender, None
                        former.close()
                    sender, shape = self._make_sender(self._name, pixels.shape[1], pixels.shape[0]), pixels.shape
                sender.send(pixels)
                self.problem = ""
            except (OSError, RuntimeError, ValueError) as error:  # the next picture tries again
                self.problem = str(error) or type(error).__name__
                if sender is not None:
                    with suppress(OSError, RuntimeError, ValueError):  # else the name stays in the network
                        sender.close()
                sender = None
        if sender is not None:
            sender.close()


class CyndilibSender:
    """Sends pictures of one size through cyndilib."""

    def __init__(self, name: str, width: int, height: int) -> None:
        four_cc = import_module("cyndilib.wrapper.ndi_structs").FourCC
        frame: Any = import_module("cyndilib.video_frame").VideoSendFrame()
        frame.set_resolution(width, height)
        frame.set_frame_rate(_RATE)
        frame.set_fourcc(four_cc.BGRX)
        # Pictures come at the renderer's rate; the library is not to wait for its own clock.
        self._sender: Any = import_module("cyndilib.sender").Sender(name, clock_video=False)
        self._sender.set_video_frame(frame)
        self._sender.open()

    def send(self, pixels: NDArray[np.uint8]) -> None:
        """Send a picture; the library takes writable memory only, hence the copy."""
        self._sender.write_video(pixels.reshape(-1).copy())

    def close(self) -> None:
        """Leave the network."""
        self._sender.close()
