"""What of a control connection's security reaches a load, and what is refused."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import RefusedError
from pgdyno.postgres.connection.load_security import Negotiated, load_parameters

DEFAULTS = {  # of libpq 18
    "channel_binding": "prefer",
    "sslmode": "prefer",
    "sslnegotiation": "postgres",
    "sslsni": "1",
    "ssl_min_protocol_version": "TLSv1.2",
    "gssencmode": "disable",
    "target_session_attrs": "any",
}
FILES = {"sslrootcert": "/h/root.crt", "sslcert": "/h/postgresql.crt", "sslkey": "/h/postgresql.key"}


@pytest.mark.parametrize(
    ("given", "is_tls", "expected"),
    [
        ({}, False, {}),
        ({}, True, {"sslmode": "require"}),
        ({"sslmode": "allow"}, True, {"sslmode": "require"}),
        ({"sslmode": "allow"}, False, {}),
        ({"sslmode": "disable"}, False, {"sslmode": "disable"}),
        (
            {"sslmode": "verify-full", "sslrootcert": "/ca"},
            True,
            {"sslmode": "verify-full", "sslrootcert": "/ca"},
        ),
        (
            {"sslcert": "/c", "sslkey": "/k", "sslcertmode": "allow"},
            True,
            {"sslmode": "require", "sslcert": "/c", "sslkey": "/k"},
        ),
        ({"sslcert": "/c", "sslkey": "/k", "sslcertmode": "disable"}, True, {"sslmode": "require"}),
        ({"sslcert": "/c", "sslkey": "/k", "sslmode": "disable"}, False, {"sslmode": "disable"}),
        (
            {"channel_binding": "require", "require_auth": "scram-sha-256", "password": "p"},
            True,
            {
                "channel_binding": "require",
                "require_auth": "scram-sha-256",
                "password": "p",
                "sslmode": "require",
            },
        ),
        ({"hostaddr": "192.0.2.7"}, False, {"hostaddr": "192.0.2.7"}),
    ],
)
def test_a_load_gets_the_outcome_of_what_was_negotiated(
    given: dict[str, str],
    is_tls: bool,  # noqa: FBT001
    expected: dict[str, str],
) -> None:
    assert load_parameters(Negotiated({**DEFAULTS, **given}, is_tls=is_tls)) == expected


def test_files_that_libpq_finds_by_itself_are_named_to_the_load() -> None:
    assert load_parameters(Negotiated(DEFAULTS, is_tls=True, default_files=FILES)) == {
        "sslmode": "require",
        **FILES,
    }
    assert load_parameters(Negotiated(DEFAULTS, default_files=FILES)) == {}
    own_certificate = Negotiated({**DEFAULTS, "sslcert": "/c"}, is_tls=True, default_files=FILES)
    assert load_parameters(own_certificate)["sslkey"] == "/h/postgresql.key"  # as libpq does


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("sslcrl", "/crl", "sslcrl=/crl"),
        ("sslcrldir", "/crls", "sslcrldir=/crls"),
        ("sslpassword", "s3cret", "sslpassword"),
        ("sslnegotiation", "direct", "sslnegotiation=direct"),
        ("sslcertmode", "require", "sslcertmode=require"),
        ("sslsni", "0", "sslsni=0"),
        ("ssl_min_protocol_version", "TLSv1.3", "ssl_min_protocol_version=TLSv1.3"),
        ("ssl_max_protocol_version", "TLSv1.2", "ssl_max_protocol_version=TLSv1.2"),
        ("requirepeer", "postgres", "requirepeer=postgres"),
        ("scram_client_key", "c2VjcmV0", "scram_client_key"),
        ("min_protocol_version", "3.2", "min_protocol_version=3.2"),
    ],
)
def test_what_the_load_generator_cannot_do_is_refused(name: str, value: str, shown: str) -> None:
    given = {**DEFAULTS, "sslrootcert": "/ca", name: value}
    with pytest.raises(RefusedError) as caught:
        load_parameters(Negotiated(given, is_tls=True))
    assert str(caught.value) == (
        f"pgdyno-driver does not support the connection parameter {shown}\n"
        "DETAIL:  load connections would be less secure than this one; nothing was loaded\n"
        f"HINT:  omit {name} if the load may be less strict than it requires"
    )


def test_the_systems_certificates_are_named_by_their_file() -> None:
    with pytest.raises(RefusedError) as caught:
        load_parameters(
            Negotiated({**DEFAULTS, "sslmode": "verify-full", "sslrootcert": "system"}, is_tls=True)
        )
    assert caught.value.message == (
        "pgdyno-driver does not support the connection parameter sslrootcert=system"
    )
    assert caught.value.hint == (
        "name a certificate file, such as sslrootcert=/etc/ssl/certs/ca-certificates.crt"
    )


def test_revocation_lists_that_libpq_does_not_read_either_are_no_matter() -> None:
    without_authority = Negotiated({**DEFAULTS, "sslcrl": "/crl"}, is_tls=True)
    assert load_parameters(without_authority) == {"sslmode": "require"}
    assert load_parameters(Negotiated({**DEFAULTS, "sslcrl": "/crl", "sslrootcert": "/ca"})) == {}
    by_default = Negotiated(DEFAULTS, is_tls=True, default_files={**FILES, "sslcrl": "/h/root.crl"})
    with pytest.raises(RefusedError):
        load_parameters(by_default)


def test_encryption_by_gssapi_is_refused() -> None:
    with pytest.raises(RefusedError) as caught:
        load_parameters(Negotiated(DEFAULTS, is_gss=True))
    assert str(caught.value) == (
        "the connection is encrypted by GSSAPI, which pgdyno-driver does not support\n"
        "DETAIL:  nothing was loaded\n"
        "HINT:  add gssencmode=disable to the connection string: TLS is then used if the server offers it"
    )
