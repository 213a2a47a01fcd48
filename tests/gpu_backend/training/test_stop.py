"""The first Ctrl-C is a request, one after a while an order."""

import signal
import threading
import time

import pytest

from gpu_backend.training.stop import ending_at_once, stop_signals


def test_a_second_ctrl_c_counts_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with stop_signals() as stop:
        assert not stop.is_set
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set
        now[0] += 0.2
        signal.raise_signal(signal.SIGINT)
        now[0] += 3.0
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_system_ends_who_may_not_hear() -> None:
    with ending_at_once():
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        with stop_signals() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.is_set
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_signals_alone() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[bool] = []

    def work() -> None:
        with stop_signals() as stop:
            seen.append(stop.is_set or signal.getsignal(signal.SIGINT) is not before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]
