"""Compiling pgdyno_loop: what is missing is named, and headers of another server are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.own_path import set_own_path

from pgdyno.base.errors import InstallationError
from pgdyno.measure.arenas.loop_library import LoopSources, compile_library, find_headers

TITLE = "PostgreSQL 17.2 (/opt/pg)"
EXTENSION = Path(__file__).parents[4] / "extension" / "pgdyno_loop"


@pytest.fixture
def headers(tmp_path: Path) -> Path:
    """Headers of PostgreSQL 17.2, as far as they are looked at."""
    directory = tmp_path / "server"
    directory.mkdir()
    (directory / "postgres.h").write_text("")
    (directory / "pg_config.h").write_text("/* a number */\n#define PG_VERSION_NUM 170002\n")
    return directory


def configuration(headers: Path) -> str:
    return f"BINDIR = /opt/pg/bin\nINCLUDEDIR = /opt/pg/include\nINCLUDEDIR-SERVER = {headers}\nVERSION = …\n"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that only fails."""
    program = tmp_path / "bin" / "cc"
    set_own_path(monkeypatch, program.parent)
    program.write_text("#!/bin/sh\necho 'one.c:1: fatal error: stdlib.h: No such file' >&2\nexit 1\n")
    program.chmod(0o755)


def test_headers_are_where_pg_config_says(headers: Path, compiler: None) -> None:
    assert find_headers(TITLE, 17, configuration(headers)) == headers


def test_all_that_is_missing_is_named_at_once_with_its_packages(tmp_path: Path, bare: None) -> None:
    with pytest.raises(InstallationError) as caught:
        find_headers(TITLE, 17, configuration(tmp_path / "none"))
    assert str(caught.value) == (
        f"the functions that loop inside the server cannot be compiled for {TITLE} yet\n"
        f"DETAIL:  missing: a C compiler, {tmp_path}/none/postgres.h\n"
        "HINT:  apt-get install gcc libc6-dev postgresql-server-dev-17, or use another PostgreSQL: "
        "--embedded"
    )


def test_an_installation_without_pg_config_is_told_so(compiler: None) -> None:
    with pytest.raises(InstallationError) as caught:
        find_headers(TITLE, 17, None)
    assert caught.value.detail == "missing: pg_config"


def test_headers_of_another_version_are_refused(headers: Path, compiler: None) -> None:
    with pytest.raises(InstallationError) as caught:
        find_headers("PostgreSQL 18.6 (embedded)", 18, configuration(headers))
    assert str(caught.value) == (
        "the headers of PostgreSQL 18.6 (embedded) are of a different version\n"
        f"DETAIL:  those in {headers} are of PostgreSQL 17\n"
        "HINT:  apt-get install postgresql-server-dev-18, or use the server programs of that version"
    )


def test_what_does_not_compile_is_told_in_the_compilers_words(
    tmp_path: Path, headers: Path, compiler: None
) -> None:
    with pytest.raises(InstallationError) as caught:
        compile_library(tmp_path, headers, tmp_path / "library", list)
    assert caught.value.message == (
        f"the functions that loop inside the server could not be compiled with the headers in {headers}"
    )
    assert caught.value.detail == "one.c:1: fatal error: stdlib.h: No such file"


def test_sources_and_script_are_those_of_the_extension() -> None:
    found = LoopSources.find()
    assert found.files["pgdyno_loop.c"] == (EXTENSION / "pgdyno_loop.c").read_bytes()
    assert found.script.lstrip().startswith("CREATE FUNCTION exec_query_in_loop(")
    assert "\\echo" not in found.script


def test_an_installed_pgdyno_has_them_in_its_package(tmp_path: Path) -> None:
    package = tmp_path / "pgdyno"
    packed = package / "extension" / "pgdyno_loop"
    packed.mkdir(parents=True)
    for name in LoopSources.find().files:
        (packed / name).write_bytes(b"packed")
    assert set(LoopSources.find(package).files.values()) == {b"packed"}


def test_other_sources_and_other_servers_have_another_name() -> None:
    found = LoopSources.find()
    other = LoopSources({**found.files, "parameters.c": b"changed"})
    names = {found.identity("18"), found.identity("17"), other.identity("18")}
    assert len(names) == 3
    assert found.identity("18") == LoopSources.find().identity("18")
