"""Security of load connections: equal to the control connection's, or the load is refused. Pure.

libpq negotiates: with ``sslmode=prefer``, its default, it uses TLS if the server offers it, and it verifies
the server with certificates in ``~/.postgresql``. The load generator does not negotiate; it receives the
outcome.

Source: PostgreSQL 18, chapter "libpq": "Parameter Key Words", "Environment Variables", "SSL Support".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pgdyno.base.errors import RefusedError

DEFAULT_FILES = MappingProxyType(
    {
        "sslrootcert": "root.crt",
        "sslcrl": "root.crl",
        "sslcert": "postgresql.crt",
        "sslkey": "postgresql.key",
    }
)
"""Files in ``~/.postgresql`` that libpq uses if the parameter is not set."""

_STRICT_MODES = frozenset({"require", "verify-ca", "verify-full"})
_CLIENT_CERTIFICATE = ("sslcert", "sslkey")
_NEVER: frozenset[str] = frozenset()
_IN_EVERY_CONNECTION: Mapping[str, frozenset[str]] = {
    "requirepeer": _NEVER,
    "scram_client_key": _NEVER,
    "scram_server_key": _NEVER,
    "min_protocol_version": frozenset({"3.0"}),
}
_IN_TLS: Mapping[str, frozenset[str]] = {
    "sslcrl": _NEVER,
    "sslcrldir": _NEVER,
    "sslpassword": _NEVER,
    "sslnegotiation": frozenset({"postgres"}),
    "sslcertmode": frozenset({"allow", "disable"}),
    "sslsni": frozenset({"1"}),
    "ssl_min_protocol_version": frozenset({"TLSv1", "TLSv1.1", "TLSv1.2"}),
    "ssl_max_protocol_version": frozenset({"TLSv1.3"}),
}
"""Parameters with the values that the load generator supports."""


@dataclass(frozen=True)
class Negotiated:
    """The outcome of libpq's negotiation for a connection.

    Args:
        parameters: those with a value, including libpq's defaults.
        default_files: existing files of ``DEFAULT_FILES``, by parameter.
    """

    parameters: Mapping[str, str]
    is_tls: bool = False
    is_gss: bool = False
    default_files: Mapping[str, str] = field(default_factory=dict)


def load_parameters(control: Negotiated) -> dict[str, str]:
    """Return the parameters that make load connections as secure as the control connection.

    Raises: RefusedError for a parameter that the load generator does not support.
    """
    if control.is_gss:
        raise RefusedError(
            "the connection is encrypted by GSSAPI, which pgdyno-driver does not support",
            detail="nothing was loaded",
            hint="add gssencmode=disable to the connection string: TLS is then used if the server offers it",
        )
    found = {name: value for name in ("password", "hostaddr") if (value := control.parameters.get(name))}
    found |= _authentication(control.parameters)
    _require_possible(control.parameters, _IN_EVERY_CONNECTION)
    if control.is_tls:
        return found | _tls(control)
    # An explicit sslmode=disable allows cleartext passwords.
    return found | ({"sslmode": "disable"} if control.parameters.get("sslmode") == "disable" else {})


def _authentication(parameters: Mapping[str, str]) -> dict[str, str]:
    found = {name: value for name in ("channel_binding", "require_auth") if (value := parameters.get(name))}
    return {name: value for name, value in found.items() if value != "prefer"}  # also the driver's default


def _tls(control: Negotiated) -> dict[str, str]:
    given = {**control.default_files, **control.parameters}
    if "sslrootcert" not in given:
        given = {name: value for name, value in given.items() if name != "sslcrl"}  # libpq reads no CRL then
    _require_possible(given, _IN_TLS)
    if given.get("sslrootcert") == "system":
        raise _refused(
            "sslrootcert",
            "system",
            "name a certificate file, such as sslrootcert=/etc/ssl/certs/ca-certificates.crt",
        )
    mode = given.get("sslmode", "")
    found = {"sslmode": mode if mode in _STRICT_MODES else "require"}
    if "sslrootcert" in given:
        found["sslrootcert"] = given["sslrootcert"]
    if given.get("sslcertmode") != "disable" and all(name in given for name in _CLIENT_CERTIFICATE):
        found |= {name: given[name] for name in _CLIENT_CERTIFICATE}
    return found


def _require_possible(parameters: Mapping[str, str], possible: Mapping[str, frozenset[str]]) -> None:
    for name, values in possible.items():
        value = parameters.get(name)
        if value and value not in values:
            raise _refused(name, value, f"omit {name} if the load may be less strict than it requires")


def _refused(name: str, value: str, hint: str) -> RefusedError:
    shown = name if "password" in name or "key" in name else f"{name}={value}"
    return RefusedError(
        f"pgdyno-driver does not support the connection parameter {shown}",
        detail="load connections would be less secure than this one; nothing was loaded",
        hint=hint,
    )
