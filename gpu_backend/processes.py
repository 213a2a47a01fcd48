"""Processes by their numbers, and the machine or container within which a number means one process."""

from __future__ import annotations

import functools
import os
import sys
import zlib


@functools.cache
def machine_tag() -> str:
    """Return 8 digits for the machine, or the container, within which a process number means one process."""
    machine = os.environ.get("COMPUTERNAME", "") if sys.platform == "win32" else os.uname().nodename
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    return f"{zlib.crc32(f'{machine} {container}'.encode()):08x}"


if sys.platform == "win32":

    def process_is_running(pid: int) -> bool:
        """Return whether a process of this machine, or container, with this number runs; any account's."""
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(0x1000, 0, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
        if handle:
            ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)

else:

    def process_is_running(pid: int) -> bool:
        """Return whether a process of this machine, or container, with this number runs; any account's."""
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:  # another account's
            return True
        return True
