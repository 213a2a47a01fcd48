"""Keys of a farm: an authority of its own, and certificates that it signed.

::

    FOLDER/farm-authority.pem    certificate and private key of the authority; stays where it was made
    FOLDER/farm.pem              certificate of the authority, certificate and private key of a member

A member's file lets its holder run code on every machine of the farm; connections without one are refused.
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from explorer_app.farm.errors import FarmError, require_farm_extra
from gpu_backend import Disk, LimitError, dataclass, read_regular_file, write_whole

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_AUTHORITY = "farm-authority.pem"
_MAX_NBYTES = 1 << 16
_AUTHORITY_DAYS, _MEMBER_DAYS = 3650, 730
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----\n?")
_MAKE = "make keys with `latentloom farm keys`, and copy the file that it names to every machine of the farm"


@dataclass(frozen=True, slots=True)
class FarmKeys:
    """The texts (PEM) of a member's file. `key` is secret."""

    authority: str
    certificate: str
    key: str

    def as_security(self) -> Mapping[str, Any]:
        """Return the arguments of `distributed.Security`: TLS for all connections, certificates on both sides."""
        return {
            "require_encryption": True,
            "tls_ca_file": self.authority,
            **{f"tls_{role}_cert": self.certificate for role in ("client", "scheduler", "worker")},
            **{f"tls_{role}_key": self.key for role in ("client", "scheduler", "worker")},
        }


def default_keys_path() -> Path:
    """Return the default path of a member's file."""
    return platformdirs.user_config_path("latentloom", appauthor=False) / "farm.pem"


def make_keys(path: Path, *, new_authority: bool = False) -> FarmKeys:
    """Write a new member's file, signed by the authority in its folder, which is made if there is none.

    Parameters
    ----------
    new_authority
        Make a new authority: members of the former one cannot connect any more.

    Raises
    ------
    FarmError
        If the extra `farm` is missing, the authority is damaged, or a file cannot be written.
    """
    require_farm_extra()
    from cryptography.hazmat.primitives.asymmetric import ec

    authority_path = path.with_name(_AUTHORITY)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if new_authority or not authority_path.exists():
            own_key = ec.generate_private_key(ec.SECP256R1())
            made = _certificate("Latent Loom farm authority", own_key, None, own_key, _AUTHORITY_DAYS)
            _write_private(authority_path, _pem(made) + _pem_of_key(own_key))
        issuer, issuer_key = _read_authority(authority_path)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(f"Latent Loom farm {path.stem}"[:64], key, issuer, issuer_key, _MEMBER_DAYS)
        keys = FarmKeys(_pem(issuer), _pem(certificate), _pem_of_key(key))
        _write_private(path, keys.authority + keys.certificate + keys.key)
    except OSError as error:
        raise FarmError(f"The farm's keys could not be written to {path.parent} ({error.strerror}).") from error
    return keys


def read_keys(path: Path) -> FarmKeys:
    """Read a member's file.

    Raises
    ------
    FarmError
        If it is missing, no such file, readable by other users, or expired.
    """
    require_farm_extra()
    from cryptography import x509

    try:
        text = read_regular_file(path, _MAX_NBYTES, "a file of farm keys").decode("ascii", "replace")
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise FarmError(f"The farm's keys in {path} can be read by other users; run chmod 600 on the file first.")
    except FileNotFoundError as error:
        raise FarmError(f"There are no keys of a farm at {path}; {_MAKE}.") from error
    except OSError as error:
        raise FarmError(f"The farm's keys in {path} cannot be read ({error.strerror}).") from error
    except LimitError as error:
        raise FarmError(error.sentence) from error
    blocks = [match[0].rstrip("\n") + "\n" for match in _BLOCK.finditer(text)]
    kinds = [block.splitlines()[0].strip("-") for block in blocks]
    if kinds != ["BEGIN CERTIFICATE", "BEGIN CERTIFICATE", "BEGIN PRIVATE KEY"]:
        raise FarmError(f"{path} should hold the keys of a farm, but does not; {_MAKE}.")
    try:
        ends = min(x509.load_pem_x509_certificate(block.encode()).not_valid_after_utc for block in blocks[:2])
    except ValueError as error:
        raise FarmError(f"{path} should hold the keys of a farm, but is damaged; {_MAKE}.", str(error)) from error
    if ends < datetime.datetime.now(datetime.UTC):
        raise FarmError(f"The farm's keys in {path} expired on {ends:%Y-%m-%d}; {_MAKE}.")
    return FarmKeys(*blocks)


def _read_authority(path: Path) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

    data = read_regular_file(path, _MAX_NBYTES, "a farm's authority")
    try:
        key = serialization.load_pem_private_key(data, None)
        certificate = x509.load_pem_x509_certificate(data)
    except ValueError as error:
        raise FarmError(
            f"{path} is damaged; make a new authority with `latentloom farm keys --new-authority`."
        ) from error
    if not isinstance(key, EllipticCurvePrivateKey):
        raise FarmError(
            f"{path} was made by another program; make an authority with `latentloom farm keys --new-authority`."
        )
    return certificate, key


def _certificate(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: EllipticCurvePrivateKey,
    days: int,
) -> x509.Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    is_authority = issuer is None
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks of other machines may be late
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=not is_authority,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=not is_authority,
                key_cert_sign=is_authority,
                crl_sign=is_authority,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
    )
    if not is_authority:
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        made = made.add_extension(usage, critical=False)
    return made.sign(issuer_key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode("ascii")


def _pem_of_key(key: EllipticCurvePrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")


class _PrivateDisk(Disk):
    """Creates files that only their owner may read, from the first byte on."""

    def write(self, path: Path, data: bytes, *, flushed: bool = True) -> None:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())


def _write_private(path: Path, text: str) -> None:
    write_whole(path, text.encode("ascii"), _PrivateDisk())
