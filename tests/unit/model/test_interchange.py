"""What keeps programs from running a server, in sentences that are written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.model.interchange import Demands, Offers, changed, lacking, unfit_version

LAYOUT = {"catalog_version_no": "202506291", "database_block_size": "8192"}
DEMANDS = Demands(
    layout=LAYOUT,
    extensions=frozenset({("plpgsql", "1.0"), ("pgcrypto", "1.4")}),
    libraries=frozenset({"$libdir/pgcrypto", "$libdir/plpgsql"}),
    auth_methods=frozenset({"peer", "scram-sha-256"}),
    has_ssl=False,
    icu_version=None,
    has_jit=False,
    configure="'--with-icu' '--with-ssl=openssl'",
)
OFFERS = Offers(
    layout=LAYOUT,
    extensions=frozenset({("plpgsql", "1.0"), ("pgcrypto", "1.3"), ("pgcrypto", "1.4")}),
    refused={},
    configure="'--with-icu' '--with-ssl=openssl'",
    has_ssl=True,
    icu_version="153.120",
    has_jit=False,
)


def test_programs_that_have_it_all_lack_nothing() -> None:
    assert lacking(DEMANDS, OFFERS) == ()


@pytest.mark.parametrize(
    ("demands", "offers", "said"),
    [
        (
            DEMANDS,
            replace(OFFERS, layout={**LAYOUT, "database_block_size": "16384"}),
            "database_block_size is 8192 in its control file, and 16384 in these programs",
        ),
        (
            replace(DEMANDS, extensions=frozenset({("postgis", "3.5.2")})),
            OFFERS,
            "extension postgis 3.5.2 is missing",
        ),
        (
            replace(DEMANDS, extensions=frozenset({("pgcrypto", "1.2")})),
            OFFERS,
            "extension pgcrypto 1.2 is missing",
        ),
        (
            DEMANDS,
            replace(OFFERS, refused={"$libdir/pgcrypto": "no such file", "$libdir/other": "not asked for"}),
            "library $libdir/pgcrypto cannot be loaded: no such file",
        ),
        (
            replace(DEMANDS, auth_methods=frozenset({"peer", "ldap"})),
            OFFERS,
            'pg_hba.conf has the method "ldap", and they are not built --with-ldap',
        ),
        (
            replace(DEMANDS, configure="'--with-lz4' '--with-icu'"),
            OFFERS,
            "its programs are built --with-lz4, and these are not: values and WAL may be compressed by it",
        ),
        (
            replace(DEMANDS, has_ssl=True),
            replace(OFFERS, has_ssl=False),
            "it offers SSL, and they are built without",
        ),
        (
            replace(DEMANDS, icu_version="153.112"),
            OFFERS,
            "its texts are sorted by ICU 153.112, and they have ICU 153.120",
        ),
        (
            replace(DEMANDS, icu_version="153.112"),
            replace(OFFERS, icu_version=None),
            "its texts are sorted by ICU 153.112, and they have no ICU",
        ),
    ],
    ids=["layout", "extension", "version", "library", "method", "lz4", "ssl", "icu", "no icu"],
)
def test_what_is_missing_is_said(demands: Demands, offers: Offers, said: str) -> None:
    assert lacking(demands, offers) == (said,)


def test_all_that_is_missing_is_said() -> None:
    demands = replace(DEMANDS, has_ssl=True, auth_methods=frozenset({"pam", "gss"}))
    assert len(lacking(demands, replace(OFFERS, has_ssl=False))) == 3


def test_jit_that_is_lost_is_no_obstacle() -> None:
    demands = replace(DEMANDS, has_jit=True)
    assert lacking(demands, OFFERS) == ()
    assert changed(demands, OFFERS) == ("without JIT compilation, which the server's present programs have",)
    assert changed(DEMANDS, replace(OFFERS, has_jit=True)) == ()


def test_options_that_are_lost_are_told() -> None:
    demands = replace(
        DEMANDS, configure="'--with-selinux' '--with-gssapi' '--with-perl' '--with-pgport=5432'"
    )
    assert lacking(demands, OFFERS) == ()
    assert changed(demands, OFFERS) == (
        "without gssapi, selinux, which the server's present programs are built with",
    )


@pytest.mark.parametrize(
    ("running", "offered"),
    [("18.6", "18.6"), ("18.6 (Debian 18.6-1.pgdg120+1)", "18.10"), ("18.0", "18.1"), ("19beta1", "19beta1")],
)
def test_the_same_or_a_newer_release_fits(running: str, offered: str) -> None:
    assert unfit_version(running, int(running[:2]), offered, int(offered[:2])) is None


def test_other_versions_do_not_fit() -> None:
    assert unfit_version("15.14", 15, "18.6", 18) == (
        "the server runs PostgreSQL 15.14, and they are 18.6: another major version takes pg_upgrade"
    )
    assert unfit_version("18.10", 18, "18.6", 18) == (
        "the server runs PostgreSQL 18.10, and they are 18.6: an older release than what has written the data"
    )
