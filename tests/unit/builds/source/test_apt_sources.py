"""The host's apt sources, as Debian, Ubuntu, cloud images and apt.postgresql.org write them."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InstallationError
from pgdyno.builds.source.apt_sources import (
    Repository,
    host_repositories,
    parse_deb822,
    parse_list,
    source_suites,
    without_credentials,
)

ARCHIVE = "http://mirror.example/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

# As the Debian 12 container image ships it.
DEBIAN_SOURCES = f"""\
Types: deb
# http://snapshot.example/archive/debian/20250520T000000Z
URIs: {ARCHIVE}
Suites: bookworm bookworm-updates
Components: main
Signed-By: {KEYRING}

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
Signed-By: {KEYRING}
"""

# As Debian 11's installer and PostgreSQL's own instructions write it.
SOURCES_LIST = """\
# deb cdrom:[Debian GNU/Linux 11]/ bullseye main
deb http://mirror.example/debian/ bullseye main contrib  # with a comment
deb-src http://mirror.example/debian/ bullseye main

deb [ arch=amd64 signed-by=/usr/share/postgresql-common/pgdg/apt.postgresql.org.asc ] https://pgdg.example/pub/repos/apt bullseye-pgdg main
deb https://vendor.example/linux/debian bullseye stable
"""  # noqa: E501 — lines of the one-line format cannot be wrapped


def test_a_stanza_stands_for_each_of_its_suites() -> None:
    assert list(parse_deb822(DEBIAN_SOURCES)) == [
        Repository(ARCHIVE, "bookworm", ("main",), KEYRING),
        Repository(ARCHIVE, "bookworm-updates", ("main",), KEYRING),
        Repository("http://mirror.example/debian-security", "bookworm-security", ("main",), KEYRING),
    ]


def test_a_disabled_stanza_is_not_read() -> None:
    assert list(parse_deb822(DEBIAN_SOURCES.replace("Types: deb\n", "Types: deb\nEnabled: no\n"))) == []


def test_a_key_within_a_stanza_is_kept_as_it_is_written() -> None:
    key = "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY\n -----END PGP PUBLIC KEY BLOCK-----"
    text = f"URIs: {ARCHIVE}\nSuites: trixie\nComponents: main\nsigned-by:{key}\nTypes: deb\n"
    assert [one.signed_by for one in parse_deb822(text)] == [key]


def test_the_one_line_format_has_options_and_comments() -> None:
    assert list(parse_list(SOURCES_LIST)) == [
        Repository("http://mirror.example/debian/", "bullseye", ("main", "contrib")),
        Repository("http://mirror.example/debian/", "bullseye", ("main",)),
        Repository(
            "https://pgdg.example/pub/repos/apt",
            "bullseye-pgdg",
            ("main",),
            "/usr/share/postgresql-common/pgdg/apt.postgresql.org.asc",
        ),
        Repository("https://vendor.example/linux/debian", "bullseye", ("stable",)),
    ]


@given(st.text())
def test_no_text_breaks_the_parsers(text: str) -> None:
    with does_not_raise():
        list(parse_list(text))
        list(parse_deb822(text))


def test_files_of_both_formats_are_read_and_others_are_not(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb http://a/debian bookworm main\n")
    (tmp_path / "sources.list.d/b.sources").write_text(DEBIAN_SOURCES)
    (tmp_path / "sources.list.d/c.list").write_text("deb http://a/debian bookworm main\n")
    (tmp_path / "sources.list.d/d.list.disabled").write_text("deb http://d/debian bookworm main\n")
    assert [one.uri for one in host_repositories(tmp_path)] == [
        "http://a/debian",
        ARCHIVE,
        ARCHIVE,
        "http://mirror.example/debian-security",
    ]


def test_the_hosts_own_release_comes_before_the_archives_others() -> None:
    suites = source_suites(parse_deb822(DEBIAN_SOURCES))
    assert [one.suite for one in suites] == ["bookworm", "stable", "testing", "unstable", "oldstable"]
    assert {(one.uri, one.components, one.signed_by) for one in suites} == {(ARCHIVE, ("main",), KEYRING)}


def test_suites_of_postgresql_are_used_and_other_vendors_are_not() -> None:
    suites = source_suites(parse_list(SOURCES_LIST))
    assert [one.suite for one in suites][:2] == ["bullseye", "bullseye-pgdg"]
    assert not [one for one in suites if "vendor" in one.uri]


@pytest.mark.parametrize(
    ("uri", "later"),
    [
        ("mirror+file:/etc/apt/mirrors/debian.list", "stable"),
        ("http://mirror.example/ubuntu/", "devel"),
        ("http://snapshot.example/archive/debian/20260520T000000Z", "stable"),
    ],
)
def test_archives_are_recognised_by_their_address(uri: str, later: str) -> None:
    suites = source_suites([Repository(uri, "own", ("main", "universe"))])
    assert [one.suite for one in suites][:2] == ["own", later]


def test_a_host_without_such_an_archive_is_told_what_it_has_but_no_password() -> None:
    with pytest.raises(InstallationError) as caught:
        source_suites([Repository("https://me:secret@packages.example.org/apt", "stable", ("main",))])
    assert str(caught.value) == (
        "the host's apt sources name no archive of Debian, Ubuntu or PostgreSQL\n"
        "DETAIL:  archives in /etc/apt: https://packages.example.org/apt\n"
        "HINT:  name an installed PostgreSQL by its prefix instead: /opt/pg18@default"
    )


def test_an_address_that_is_none_belongs_to_no_archive() -> None:
    with pytest.raises(InstallationError, match="name no archive of Debian, Ubuntu or PostgreSQL"):
        source_suites(parse_list("deb http://[ bookworm main\n"))


def test_a_password_with_an_at_sign_is_not_shown_in_parts() -> None:
    assert without_credentials("https://ann:se@cret@mirror.example/debian") == "https://mirror.example/debian"
