"""Play OSC for `live_benchmark.py`, in a process: ``python packaging/osc_sender.py PORT COUNT RATE SECONDS TURN``.

Every one of COUNT addresses is sent RATE times a second. The value is the time within TURN seconds, 0..1, so that a
receiver on the same machine can tell how old it is.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

from pythonosc.osc_message_builder import OscMessageBuilder


def send(port: int, count: int, rate_hz: float, seconds: float, turn_s: float) -> None:
    """Send until the time is over."""
    packets = []
    for index in range(count):
        builder = OscMessageBuilder(f"/parameter/{index}")
        builder.add_arg(0.0, "f")
        packets.append(builder.build().dgram[:-4])
    outlet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    start_s = time.monotonic()
    turn = 0
    while (now_s := time.monotonic()) < start_s + seconds:
        value = struct.pack(">f", now_s % turn_s / turn_s)
        for packet in packets:
            outlet.sendto(packet + value, ("127.0.0.1", port))
        turn += 1
        time.sleep(max(0.0, start_s + turn / rate_hz - time.monotonic()))
    outlet.close()


if __name__ == "__main__":
    send(int(sys.argv[1]), int(sys.argv[2]), *(float(word) for word in sys.argv[3:6]))
