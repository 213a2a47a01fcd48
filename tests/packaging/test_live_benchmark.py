"""The scripts that measure a performance by controllers: what is sent, and what is told of it."""

import importlib.util
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

import pytest

from explorer_app.inputs.osc_input import OscInput
from tests.helpers.live_inputs import HeardBoard

ROOT = Path(__file__).resolve().parents[2]


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "packaging" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_the_sender_plays_every_address_over_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    board = HeardBoard()
    osc = OscInput(board, port=0)
    script("osc_sender", monkeypatch).send(osc.port, 3, 1000.0, 0.01, 8.0)
    for index in range(3):
        board.wait_for(f"osc/parameter/{index}/0")
    osc.close()


def test_figures_tell_frames_ages_and_growth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    module = script("live_benchmark", monkeypatch)
    text = module.report(module.Figures(60.0, 480_000, 3600, [0.01] * 3600, 6.0, 12.0, [400.0, 400.2, 400.5]), 60.0)
    lines = text.splitlines()
    assert "8000 /s" in lines[0]
    assert "60.0 /s" in lines[1]
    assert "10.0 ms, 0.60 frames" in lines[2]
    assert "400.5 MiB, +0.5 MiB in the last 0.8 min" in lines[-1]
    assert "(400.0, 400.2, 400.5)" in lines[-1]


def test_a_silent_device_takes_sound_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    module = script("live_benchmark", monkeypatch)
    has_taken = threading.Event()

    def stream() -> Generator[bytes, int, None]:
        while True:
            assert (yield b"") == module.MIX_HZ // 50
            has_taken.set()

    sound = stream()
    next(sound)
    device = module.SilentDevice()
    device.start(sound)
    assert has_taken.wait(30.0)
    device.close()
    device.close()
