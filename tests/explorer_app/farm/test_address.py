import os
from pathlib import Path

import pytest

from explorer_app.farm.address import farm_address
from explorer_app.farm.errors import FarmError
from explorer_app.farm.keys import _AUTHORITY, default_keys_path, make_keys, read_keys
from gpu_backend import LoomError


def test_a_loopback_address_makes_its_keys_once() -> None:
    address = farm_address("127.0.0.1")
    assert address.url == "tls://127.0.0.1:8786"
    assert address.keys is not None
    assert farm_address("localhost:99").keys == address.keys
    assert default_keys_path().stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["127.0.0.1:1234", "tls://127.0.0.1:1234"])
def test_a_port_may_be_named(text: str) -> None:
    address = farm_address(text)
    assert (address.url, address.text) == ("tls://127.0.0.1:1234", "127.0.0.1:1234")


def test_ipv6_has_brackets() -> None:
    assert farm_address("[::1]:1234").url == "tls://[::1]:1234"
    assert farm_address("::1").url == "tls://[::1]:8786"


def test_plain_text_is_for_this_machine_alone() -> None:
    assert farm_address("tcp://127.0.0.1:1234").url == "tcp://127.0.0.1:1234"
    for host in ("192.168.1.20", "0.0.0.0", "render.example", "[fe80::1]"):
        with pytest.raises(FarmError, match="encrypted connections only"):
            farm_address(f"tcp://{host}:8786")


def test_beyond_this_machine_keys_have_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match="latentloom farm keys"):
        farm_address("192.168.1.20", tmp_path / "farm.pem")
    make_keys(tmp_path / "farm.pem")
    assert farm_address("192.168.1.20", tmp_path / "farm.pem").url == "tls://192.168.1.20:8786"


@pytest.mark.parametrize(
    "text", ["", "a b", "host:port", "host:70000", "http://host", "host/path", "[::1", "a" * 300 + "!"]
)
def test_a_malformed_address_is_refused(text: str) -> None:
    with pytest.raises(FarmError, match="HOST"):
        farm_address(text)


def test_members_of_one_authority_have_different_keys(tmp_path: Path) -> None:
    one, two = make_keys(tmp_path / "one.pem"), make_keys(tmp_path / "two.pem")
    assert one.authority == two.authority
    assert one.key != two.key
    assert read_keys(tmp_path / "one.pem") == one


def test_a_new_authority_is_another_one(tmp_path: Path) -> None:
    one = make_keys(tmp_path / "farm.pem")
    assert make_keys(tmp_path / "farm.pem", new_authority=True).authority != one.authority


def test_keys_that_others_can_read_are_refused(tmp_path: Path) -> None:
    make_keys(tmp_path / "farm.pem")
    (tmp_path / "farm.pem").chmod(0o644)
    with pytest.raises(FarmError, match="can be read by other users"):
        read_keys(tmp_path / "farm.pem")


@pytest.mark.parametrize(
    "data", [b"", b"nothing", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" * 2]
)
def test_a_file_without_keys_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "farm.pem"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(FarmError, match="should hold the keys"):
        read_keys(path)


def test_keys_that_expired_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("explorer_app.farm.keys._MEMBER_DAYS", 0)
    make_keys(tmp_path / "farm.pem")
    with pytest.raises(FarmError, match="expired"):
        read_keys(tmp_path / "farm.pem")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_in_place_of_the_authority_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / _AUTHORITY)
    with pytest.raises(LoomError, match="a pipe"):
        make_keys(tmp_path / "farm.pem")


def test_keys_at_a_name_that_no_file_can_have_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FarmError, match="There are no keys"):
        read_keys(tmp_path / "\ud800.pem")
