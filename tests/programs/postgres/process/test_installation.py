"""An installation is known by what its ``postgres`` says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation, installation_at


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("postgres (PostgreSQL) 18.6 (Debian 18.6-1.pgdg12+1)", "18.6"),
        ("postgres (PostgreSQL) 19devel", "19devel"),
        ("postgres (PostgreSQL) 16.1+site-2~rc1", "16.1+site-2~rc1"),
        ("postgres (PostgreSQL) 18/../../etc", "18"),
        ("postgres (PostgreSQL) 18.6\\033[2J", "18.6"),
    ],
)
def test_a_version_is_no_path(tmp_path: Path, said: str, version: str) -> None:
    postgres = tmp_path / "postgres"
    postgres.write_text(f"#!/bin/sh\nprintf '{said}\\n'\n")
    postgres.chmod(0o755)
    assert installation_at(tmp_path, caller()).version == version


def test_a_missing_program_is_named_with_where_it_is(tmp_path: Path) -> None:
    postgres = tmp_path / "postgres"
    postgres.write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 17.10'\n")
    postgres.chmod(0o755)
    with pytest.raises(ServerError) as caught:
        installation_at(tmp_path, caller()).program("pg_controldata")
    assert caught.value.message == f'no program "pg_controldata" in {tmp_path}'
    assert caught.value.hint == (
        "a server alone is not enough: name an installation with its other programs, such as "
        "/usr/lib/postgresql/17/bin of the package postgresql-17"
    )


def at(prefix: Path) -> Installation:
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    return Installation(prefix / "bin", "18.0", 18, "test")


@pytest.mark.parametrize("place", ["lib", "lib/postgresql"])
def test_a_library_is_found_where_builds_install_it(tmp_path: Path, place: str) -> None:
    found = at(tmp_path)
    assert not found.has_library("counter", caller())
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "counter.so").touch()
    assert found.has_library("counter", caller())


def test_a_library_is_found_where_pg_config_has_it(tmp_path: Path) -> None:
    found, other = at(tmp_path / "usr"), tmp_path / "lib64/pgsql"
    program = tmp_path / "usr/bin/pg_config"
    program.write_text(f"#!/bin/sh\necho 'LIBDIR = /none'\necho 'PKGLIBDIR = {other}'\n")
    program.chmod(0o755)
    assert not found.has_library("counter", caller())
    other.mkdir(parents=True)
    (other / "counter.so").touch()
    assert found.has_library("counter", caller())
