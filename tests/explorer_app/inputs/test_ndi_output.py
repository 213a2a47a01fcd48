"""NDI through senders made of Python, and a module that stands for the real library."""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from explorer_app.inputs import ndi_output
from explorer_app.inputs.errors import InputError
from explorer_app.inputs.ndi_output import CyndilibSender, NdiOutput
from tests.helpers.live_inputs import PATIENCE_S

SMALL, LARGE = (np.zeros((side, side, 4), np.uint8) for side in (8, 16))


class Senders:
    """Makes senders and notes what they do; a test lets each picture through."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.has_sent = threading.Semaphore(0)
        self.may_send = threading.Semaphore(0)
        self.fails = False

    def __call__(self, name: str, width: int, height: int) -> Senders:
        self.done.append((name, width, height))
        return self

    def send(self, pixels: NDArray[np.uint8]) -> None:
        self.has_sent.release()
        assert self.may_send.acquire(timeout=PATIENCE_S)
        if self.fails:
            raise RuntimeError("no network")
        self.done.append(pixels.shape[0])

    def close(self) -> None:
        self.done.append("closed")

    def wait(self) -> None:
        assert self.has_sent.acquire(timeout=PATIENCE_S)


def test_the_newest_picture_is_sent_and_another_size_makes_another_sender() -> None:
    senders = Senders()
    ndi = NdiOutput("Loom", senders)
    ndi.show(SMALL)
    senders.wait()
    ndi.show(SMALL)  # replaced before it is sent
    ndi.show(LARGE)
    senders.may_send.release(2)
    senders.wait()
    ndi.close()
    ndi.close()
    assert senders.done == [("Loom", 8, 8), 8, "closed", ("Loom", 16, 16), 16, "closed"]


def test_a_library_that_refuses_is_called_again_with_the_next_picture() -> None:
    senders = Senders()
    senders.fails = True
    ndi = NdiOutput("Loom", senders)
    ndi.show(SMALL)
    senders.wait()
    senders.may_send.release()
    ndi.show(SMALL)
    senders.wait()
    assert ndi.problem == "no network"
    senders.fails = False
    senders.may_send.release()
    ndi.close()
    assert senders.done == [("Loom", 8, 8), "closed", ("Loom", 8, 8), 8, "closed"]
    assert ndi.problem == ""


def test_without_the_library_it_says_what_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndi_output, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install cyndilib"):
        NdiOutput("Loom")


def test_the_library_gets_the_size_the_format_and_writable_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[Any, ...]] = []

    class Noting:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            calls.append(("made", *arguments))

        def __getattr__(self, name: str) -> Any:
            return lambda *arguments: calls.append((name, *arguments))

    class FourCC:
        BGRX = "BGRX"

    for name, item in (("wrapper.ndi_structs", FourCC), ("video_frame", Noting), ("sender", Noting)):
        module = ModuleType(f"cyndilib.{name}")
        setattr(module, {"video_frame": "VideoSendFrame", "sender": "Sender"}.get(name, "FourCC"), item)
        monkeypatch.setitem(sys.modules, f"cyndilib.{name}", module)
    pixels = SMALL.copy()
    pixels.flags.writeable = False
    sender = CyndilibSender("Loom", 8, 8)
    sender.send(pixels)
    sender.close()
    assert ("set_resolution", 8, 8) in calls
    assert ("set_fourcc", "BGRX") in calls
    assert [call[0] for call in calls].index("set_video_frame") < [call[0] for call in calls].index("open")
    written = next(call[1] for call in calls if call[0] == "write_video")
    assert (written.shape, written.flags.writeable) == ((256,), True)
    assert calls[-1] == ("close",)
