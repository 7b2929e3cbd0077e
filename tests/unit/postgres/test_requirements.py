"""What keeps programs from running a server, in sentences that are written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.postgres.requirements import (
    Offers,
    Requirements,
    changed,
    foreign,
    lacking,
    options_in,
    version_conflict,
)

LAYOUT = {"catalog_version_no": "202506291", "database_block_size": "8192"}
DEFAULTS = {"port": "5432", "unix_socket_directories": "/tmp", "ssl_ciphers": "HIGH"}
DEMANDS = Requirements(
    layout=LAYOUT,
    extensions=frozenset({("plpgsql", "1.0"), ("pgcrypto", "1.4")}),
    libraries=frozenset({"$libdir/pgcrypto", "$libdir/plpgsql"}),
    auth_methods=frozenset({"peer", "scram-sha-256"}),
    has_ssl=False,
    compressions=frozenset({"lz4"}),
    has_xml=False,
    search_files=frozenset({"english"}),
    collator=None,
    has_jit=False,
    defaults=DEFAULTS,
    options=frozenset({"icu", "lz4"}),
)
OFFERS = Offers(
    layout=LAYOUT,
    extensions=frozenset({("plpgsql", "1.0"), ("pgcrypto", "1.3"), ("pgcrypto", "1.4")}),
    refused={},
    unsupported_methods=frozenset(),
    has_ssl=True,
    compressions=frozenset({"lz4", "zstd"}),
    has_xml=False,
    search_files=frozenset({"english", "german"}),
    collator="153.120",
    has_jit=False,
    defaults={**DEFAULTS, "work_mem": "4096"},
    options=frozenset({"icu", "lz4", "zstd"}),
)


def test_programs_that_have_it_all_lack_nothing() -> None:
    assert lacking(DEMANDS, OFFERS) == ()
    assert changed(DEMANDS, OFFERS) == ()


@pytest.mark.parametrize(
    ("demands", "offers", "said"),
    [
        (
            DEMANDS,
            replace(OFFERS, layout={**LAYOUT, "database_block_size": "16384"}),
            "database_block_size is 8192 in its control file, but 16384 in these binaries",
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
            DEMANDS,
            replace(OFFERS, compressions=frozenset({"zstd"})),
            "values or WAL may be compressed with lz4, which these binaries do not support",
        ),
        (replace(DEMANDS, has_xml=True), OFFERS, "it uses the type xml, which these binaries do not support"),
        (
            replace(DEMANDS, search_files=frozenset({"english", "nb_no"})),
            OFFERS,
            "text search dictionaries use a file nb_no, which the binaries' tsearch_data lacks",
        ),
        (
            replace(DEMANDS, auth_methods=frozenset({"peer", "ldap"})),
            replace(OFFERS, unsupported_methods=frozenset({"ldap", "pam"})),
            'pg_hba.conf uses the method "ldap", which these binaries do not support',
        ),
        (
            replace(DEMANDS, has_ssl=True),
            replace(OFFERS, has_ssl=False),
            "it offers SSL, which these binaries do not support",
        ),
        (
            replace(DEMANDS, collator="153.112"),
            OFFERS,
            "text is sorted by ICU collations of version 153.112, but these binaries have version 153.120",
        ),
        (
            replace(DEMANDS, collator="153.112"),
            replace(OFFERS, collator=None),
            "text is sorted by ICU collations of version 153.112, but these binaries have no ICU",
        ),
        (
            replace(DEMANDS, defaults={"unix_socket_directories": "/var/run/postgresql"}),
            OFFERS,
            (
                "unix_socket_directories is not set anywhere and would change from /var/run/postgresql "
                "to /tmp: set it to /var/run/postgresql"
            ),
        ),
    ],
    ids=[
        *("layout", "extension", "version", "library", "lz4", "xml", "dictionary", "method", "ssl", "icu"),
        *("no icu", "socket"),
    ],
)
def test_what_is_missing_is_said(demands: Requirements, offers: Offers, said: str) -> None:
    assert lacking(demands, offers) == (said,)


OWN = ("plpgsql", "pgcrypto", "pgoutput", "auto_explain")


@pytest.mark.parametrize(
    ("extensions", "libraries", "found"),
    [
        (set(), set(), ()),
        ({("vector", "0.8.1")}, {"$libdir/vector"}, ("vector", "$libdir/vector")),
        (set(), {"pgoutput", "auto_explain.so", "$libdir/auto_explain"}, ()),
        (set(), {"/usr/lib/auto_explain.so"}, ("/usr/lib/auto_explain.so",)),
        (set(), {"$libdir/plugins/auto_explain"}, ("$libdir/plugins/auto_explain",)),
        (set(), {"$libdir/../auto_explain"}, ("$libdir/../auto_explain",)),
    ],
    ids=["own", "foreign", "own by any name", "by a path", "in another directory", "beside"],
)
def test_what_was_not_built_with_a_build_is_foreign_to_it(
    extensions: set[tuple[str, str]], libraries: set[str], found: tuple[str, ...]
) -> None:
    demands = replace(
        DEMANDS, extensions=DEMANDS.extensions | extensions, libraries=DEMANDS.libraries | libraries
    )
    assert foreign(demands, OWN, has_paths=False) == found


def test_with_paths_of_the_servers_own_a_mere_name_may_lead_anywhere() -> None:
    demands = replace(DEMANDS, libraries=DEMANDS.libraries | {"auto_explain"})
    assert foreign(demands, OWN, has_paths=True) == ("auto_explain",)


def test_all_that_is_missing_is_said() -> None:
    demands = replace(DEMANDS, has_ssl=True, has_xml=True)
    assert lacking(demands, replace(OFFERS, has_ssl=False)) == (
        "it uses the type xml, which these binaries do not support",
        "it offers SSL, which these binaries do not support",
    )


def test_a_keytab_counts_only_where_it_is_used() -> None:
    demands = replace(DEMANDS, defaults={"krb_server_keyfile": "FILE:/etc/krb5.keytab"})
    offers = replace(OFFERS, defaults={"krb_server_keyfile": "FILE:/usr/local/etc/krb5.keytab"})
    assert (lacking(demands, offers), changed(demands, offers)) == ((), ())
    used = replace(demands, auth_methods=frozenset({"gss"}))
    assert len(lacking(used, offers)) == 1
    assert lacking(used, offers)[0].startswith(
        "krb_server_keyfile is not set anywhere and would change from FILE:/etc/"
    )


def test_what_changes_is_no_obstacle() -> None:
    demands = replace(
        DEMANDS,
        has_jit=True,
        options=frozenset({"selinux", "systemd", "perl", "pgport", "icu"}),
        defaults={"ssl_ciphers": "MEDIUM"},
    )
    assert lacking(demands, OFFERS) == ()
    assert changed(demands, OFFERS) == (
        "without JIT compilation, which its current binaries have",
        "without selinux, which its current binaries are built with",
        "without systemd, which its current binaries are built with",
        "ssl_ciphers is not set anywhere and changes from MEDIUM to HIGH",
    )
    assert changed(replace(DEMANDS, has_jit=False), replace(OFFERS, has_jit=True)) == ()


def test_nothing_is_said_of_programs_that_do_not_say_how_they_were_configured() -> None:
    assert options_in("'--with-lz4' '--with-ssl=openssl' '--prefix=/x'") == frozenset({"lz4", "ssl"})
    assert options_in("") is None
    assert options_in(None) is None
    demands = replace(DEMANDS, options=frozenset({"selinux"}))
    assert changed(demands, replace(OFFERS, options=None)) == ()
    assert changed(replace(DEMANDS, options=None), OFFERS) == ()


@pytest.mark.parametrize(
    ("running", "offered"),
    [("18.6", "18.6"), ("18.6 (Debian 18.6-1.pgdg120+1)", "18.10"), ("18.0", "18.1"), ("19beta1", "19beta1")],
)
def test_the_same_or_a_newer_release_fits(running: str, offered: str) -> None:
    assert version_conflict(running, int(running[:2]), offered, int(offered[:2])) is None


def test_other_versions_do_not_fit() -> None:
    assert version_conflict("15.14", 15, "18.6", 18) == (
        "the server runs PostgreSQL 15.14, these binaries are 18.6: "
        "a different major version requires pg_upgrade"
    )
    assert version_conflict("18.10", 18, "18.6", 18) == (
        "the server runs PostgreSQL 18.10, these binaries are 18.6: "
        "an older release than the one that wrote the data"
    )
