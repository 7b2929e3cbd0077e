"""What features need of the host, and by which packages."""

from __future__ import annotations

import pytest

from pgdyno.builds.needs import prerequisites
from pgdyno.builds.needs.prerequisites import Requirement, missing_error, missing_features, requirements_of
from pgdyno.builds.spec.features import Features, take_over


def packages(*options: str, major: int = 15) -> list[str]:
    return [one.package for one in requirements_of(Features(options), major)]


def test_all_that_debians_own_has_is_known() -> None:
    found = packages(
        "--with-tcl", "--with-perl", "--with-python", "--with-pam", "--with-ssl=openssl", "--with-libxml",
        "--with-libxslt", "--enable-nls", "--with-uuid=e2fs", "--with-gssapi", "--with-ldap", "--with-icu",
        "--with-lz4", "--with-zstd", "--with-systemd", "--with-selinux", "--with-liburing", "--with-libnuma",
        "--with-libcurl", "--with-system-tzdata=/usr/share/zoneinfo", "--with-pgport=5432",
    )  # fmt: skip
    assert sorted(found) == [
        "gettext", "libcurl4-openssl-dev", "libicu-dev", "libkrb5-dev", "libldap2-dev", "liblz4-dev",
        "libnuma-dev", "libpam0g-dev", "libperl-dev", "libreadline-dev", "libselinux1-dev", "libssl-dev",
        "libsystemd-dev", "liburing-dev", "libxml2-dev", "libxslt1-dev", "libzstd-dev", "perl", "python3",
        "python3-dev", "tcl", "tcl-dev", "tzdata", "uuid-dev",
    ]  # fmt: skip


def test_configure_looks_for_readline_by_itself_and_from_16_on_for_icu() -> None:
    assert packages() == ["libreadline-dev"]
    assert packages(major=16) == ["libreadline-dev", "libicu-dev"]
    assert packages("--without-readline", "--without-icu", major=16) == []
    assert packages("--with-libedit-preferred") == ["libedit-dev"]


def test_other_libraries_of_uuids_come_from_elsewhere() -> None:
    assert packages("--with-uuid=ossp", "--without-readline") == ["libossp-uuid-dev"]
    assert packages("--with-uuid=bsd", "--without-readline") == []


def test_interpreters_are_those_that_were_named() -> None:
    found = requirements_of(take_over(["--with-python", "PYTHON=/opt/bin/python3.12"]), 15)
    assert Requirement("/opt/bin/python3.12", "python3", program="/opt/bin/python3.12") in found
    (header,) = (one for one in found if one.name == "Python.h")
    assert header.arguments[0] == "/opt/bin/python3.12"


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prerequisites, "_has_header", lambda *_: False)
    features = take_over(
        ["--with-ldap", "--with-perl", "PERL=/no/such/perl", "--with-system-tzdata=/no/such/zones"]
    )
    assert str(missing_error(missing_features(features, 15, "gcc"))) == (
        "PostgreSQL cannot be built on this host yet\n"
        "DETAIL:  missing: readline/readline.h, ldap.h, /no/such/zones, /no/such/perl, libperl.so\n"
        "HINT:  apt-get install libreadline-dev libldap2-dev tzdata perl libperl-dev"
    )
