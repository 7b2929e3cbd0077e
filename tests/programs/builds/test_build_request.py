"""Who names an installation that a build is to replace gets its features, or is told why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import InstallationError, ServerError, UsageError
from pgdyno.builds.build_request import find_inherited_features
from pgdyno.postgres.process.workspace import Workspace


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """An installation with a server alone."""
    path = tmp_path / "pg18"
    (path / "bin").mkdir(parents=True)
    program(path / "bin/postgres", "postgres (PostgreSQL) 18.6")
    return path


def program(path: Path, said: str) -> None:
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
    path.chmod(0o755)


@pytest.mark.parametrize("place", ["", "bin"])
def test_a_prefix_and_its_programs_say_what_it_can_do(
    place: str, prefix: Path, builds_place: Workspace
) -> None:
    program(prefix / "bin/pg_config", "BINDIR = /b\nCONFIGURE =  '--prefix=/p' '--with-icu' 'CFLAGS=-O2 -g'")
    found = find_inherited_features(str(prefix / place), builds_place)
    assert (found.major, found.features.options) == (18, ("--with-icu",))
    assert found.extensions == ()


def test_the_extensions_that_databases_can_have_are_known(prefix: Path, builds_place: Workspace) -> None:
    (prefix / "share/extension").mkdir(parents=True)
    for name in ("plpgsql.control", "hstore.control", "hstore--1.8.sql"):
        (prefix / "share/extension" / name).write_text("")
    program(prefix / "bin/pg_config", f"SHAREDIR = {prefix}/share\nCONFIGURE = '--with-icu'")
    assert find_inherited_features(str(prefix), builds_place).extensions == ("hstore", "plpgsql")


def test_without_pg_config_its_package_is_named(prefix: Path, builds_place: Workspace) -> None:
    with pytest.raises(InstallationError) as caught:
        find_inherited_features(str(prefix), builds_place)
    assert str(caught.value) == (
        f"it is unknown how PostgreSQL 18.6 ({prefix}/bin) was built\n"
        f"DETAIL:  {prefix}/bin/pg_config: no such program\n"
        "HINT:  Debian and Ubuntu have it in postgresql-client-18"
    )


@pytest.mark.parametrize("said", ["CONFIGURE = ", "CONFIGURE = not recorded", "BINDIR = /b"])
def test_one_that_does_not_record_its_options_is_no_model(
    said: str, prefix: Path, builds_place: Workspace
) -> None:
    program(prefix / "bin/pg_config", said)
    with pytest.raises(InstallationError) as caught:
        find_inherited_features(str(prefix), builds_place)
    assert caught.value.detail == (
        f"{prefix}/bin/pg_config lists no options: it was built without any, or by meson"
    )
    assert caught.value.hint == "omit --like to build in support for the host's libraries"


def test_what_is_no_installation_is_none(tmp_path: Path, builds_place: Workspace) -> None:
    with pytest.raises(ServerError, match="contains no PostgreSQL"):
        find_inherited_features(str(tmp_path), builds_place)
    with pytest.raises(UsageError, match='no server "debian-9"'):
        find_inherited_features("debian-9", builds_place)


def test_another_major_version_is_refused(prefix: Path, builds_place: Workspace) -> None:
    program(prefix / "bin/pg_config", "CONFIGURE = '--with-icu'")
    found = find_inherited_features(str(prefix), builds_place)
    found.require_major(18, "debian:18")
    with pytest.raises(UsageError) as caught:
        found.require_major(17, "debian:17")
    assert str(caught.value) == (
        f'--like "{prefix}" is PostgreSQL 18, --source "debian:17" is 17\n'
        "DETAIL:  a build replaces a server of the same major version: another version cannot read "
        "its data,\n         and has other configure defaults\n"
        "HINT:  name a source of PostgreSQL 18, or an installation of PostgreSQL 17"
    )
