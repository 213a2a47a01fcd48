"""Where a farm is, and how it may be reached: plain text only ever within this machine."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from explorer_app.farm.errors import FarmError
from explorer_app.farm.keys import FarmKeys, default_keys_path, make_keys, read_keys
from gpu_backend import dataclass

DEFAULT_PORT = 8786
"""The default port of Dask's schedulers."""

_ADDRESS = re.compile(
    r"(?:(tls|tcp)://)?(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+|[0-9A-Fa-f:]*::[0-9A-Fa-f:]*))(?::([0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class FarmAddress:
    """A scheduler's place. `keys` None means plain text, which only a loopback address may have."""

    host: str
    port: int
    keys: FarmKeys | None

    @property
    def url(self) -> str:
        """As Dask writes it."""
        return f"{'tcp' if self.keys is None else 'tls'}://{bracketed(self.host)}:{self.port}"

    @property
    def text(self) -> str:
        """As a user writes it after ``--farm``."""
        scheme = "tcp://" if self.keys is None else ""
        return f"{scheme}{bracketed(self.host)}" + ("" if self.port == DEFAULT_PORT else f":{self.port}")


def farm_address(text: str, keys_path: Path | None = None) -> FarmAddress:
    """Return the place that ``HOST``, ``HOST:PORT`` or ``tls://HOST:PORT`` names, with the keys that it needs.

    On a loopback address, keys are made if there are none yet: other users of the machine reach that too.
    ``tcp://127.0.0.1`` requests plain text.

    Raises
    ------
    FarmError
        If the text is no address, requests plain text beyond this machine, or there are no usable keys.
    """
    host, port, is_plain = check_address(text)
    if is_plain:
        return FarmAddress(host, port, None)
    is_local = is_loopback(host)
    path = keys_path or default_keys_path()
    if is_local and keys_path is None and not path.exists():
        return FarmAddress(host, port, make_keys(path))
    return FarmAddress(host, port, read_keys(path))


def check_address(text: str) -> tuple[str, int, bool]:
    """Return host, port and whether plain text is requested. Nothing is looked up or read.

    Raises
    ------
    FarmError
        If the text is no address, or requests plain text beyond this machine.
    """
    match = _ADDRESS.fullmatch(text.strip())
    port = int(match[4]) if match is not None and match[4] else DEFAULT_PORT
    if match is None or port > 65535:
        raise FarmError(f"A farm is at a HOST or HOST:PORT such as 127.0.0.1:{DEFAULT_PORT}, not {text[:60]!r}.")
    host, is_plain = match[2] or match[3], match[1] == "tcp"
    if is_plain and not is_loopback(host):
        raise FarmError(
            f"A farm at {host} takes encrypted connections only, since its port lets anyone run programs "
            "there; make keys with `latentloom farm keys` and leave tcp:// out."
        )
    return host, port, is_plain


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, reachable from this machine alone. Names are not looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bracketed(host: str) -> str:
    """Return a host as a URL has it."""
    return f"[{host}]" if ":" in host else host
