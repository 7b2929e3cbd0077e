"""Which servers variants can name, on hosts made of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.registry import find_installation, is_packaged, registered_servers
from pgdyno.postgres.process.workspace import Workspace


def program(path: Path, version: str) -> None:
    """Put a program there that says it is PostgreSQL."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
    path.chmod(0o755)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "home", caller())


@pytest.fixture
def host(tmp_path: Path) -> Path:
    root = tmp_path / "host"
    program(root / "usr/lib/postgresql/9/bin/postgres", "9.6.24")
    program(root / "usr/lib/postgresql/17/bin/postgres", "17.2")
    program(root / "usr/pgsql-18/bin/postgres", "18.1")
    (root / "usr/lib/postgresql/16/bin").mkdir(parents=True)  # client programs only
    return root


def test_packages_are_found_by_family_and_major_the_newest_first(host: Path, workspace: Workspace) -> None:
    names = [server.name for server in registered_servers(workspace, host) if server.name != "embedded"]
    assert names == ["debian-17", "debian-9", "pgdg-18"]


def test_servers_that_pgdyno_built_are_found_and_unfinished_ones_are_not(
    host: Path, workspace: Workspace
) -> None:
    for name in ("source-17", "source-18", ".source-16.partial", "source-x"):
        program(workspace.root / "servers" / name / "bin/postgres", "18.6")
    names = [server.name for server in registered_servers(workspace, host) if server.name != "embedded"]
    assert names == ["debian-17", "debian-9", "pgdg-18", "source-18", "source-17"]
    found = find_installation("source-17", workspace, host)
    assert (found.name, found.bin_directory) == ("source-17", workspace.root / "servers/source-17/bin")


def test_builds_of_packages_come_after_those_of_the_workspace_which_win_by_the_same_name(
    host: Path, workspace: Workspace
) -> None:
    packaged = host / "usr/lib/pgdyno"
    for name in ("built-00000000000a", "built-00000000000b", "other"):
        program(packaged / name / "bin/postgres", "18.6")
    for name, time_s in (("built-00000000000a", 100), ("built-00000000000b", 200)):
        os.utime(packaged / name, (time_s, time_s))
    known = {server.name: server.bin_directory for server in registered_servers(workspace, host)}
    newest = packaged / "built-00000000000b/bin"
    assert [*known][-3:] == ["built", "built-00000000000b", "built-00000000000a"]
    assert (known["built"], known["built-00000000000b"]) == (newest, newest)
    ours = workspace.root / "servers/built-00000000000a/bin"
    program(ours / "postgres", "18.6")
    os.utime(ours.parent, (50, 50))
    servers = [(server.name, server.bin_directory) for server in registered_servers(workspace, host)][-3:]
    assert servers == [("built", ours), ("built-00000000000a", ours), ("built-00000000000b", newest)]
    assert is_packaged(newest.parent, host)
    assert not is_packaged(ours.parent, host)


def test_looking_for_servers_makes_no_directory(host: Path, workspace: Workspace) -> None:
    registered_servers(workspace, host)
    assert not workspace.root.exists()


def test_a_package_is_found_by_its_name(host: Path, workspace: Workspace) -> None:
    found = find_installation("pgdg-18", workspace, host)
    assert (found.name, found.version, found.major) == ("pgdg-18", "18.1", 18)


@pytest.mark.parametrize("place", ["opt/mine", "opt/mine/bin"])
def test_any_prefix_is_found_by_its_path(place: str, tmp_path: Path, workspace: Workspace) -> None:
    program(tmp_path / "opt/mine/bin/postgres", "18.1")
    found = find_installation(str(tmp_path / place), workspace, tmp_path)
    assert found.bin_directory == tmp_path / "opt/mine/bin"
    assert found.name == str(tmp_path / "opt/mine/bin")


def test_an_unknown_name_is_answered_with_the_known_ones(host: Path, workspace: Workspace) -> None:
    with pytest.raises(UsageError) as caught:
        find_installation("debian-16", workspace, host)
    assert caught.value.message == 'no server "debian-16"'
    assert "debian-17, debian-9, pgdg-18" in (caught.value.detail or "")
    assert "pgdyno server list" in (caught.value.hint or "")


def test_a_prefix_without_postgresql_is_named(tmp_path: Path, workspace: Workspace) -> None:
    with pytest.raises(ServerError) as caught:
        find_installation(str(tmp_path), workspace, tmp_path)
    assert caught.value.message == f'"{tmp_path}" contains no PostgreSQL'


def test_programs_that_do_not_run_are_reported_with_their_own_words(
    tmp_path: Path, workspace: Workspace
) -> None:
    broken = tmp_path / "opt/broken/bin/postgres"
    program(broken, "18.1")
    broken.write_text("#!/bin/sh\necho 'libxml2.so.2: cannot open shared object file' >&2; exit 127\n")
    with pytest.raises(ServerError) as caught:
        find_installation(str(tmp_path / "opt/broken"), workspace, tmp_path)
    assert caught.value.message == f'user "{caller().name}" could not run "{broken} --version"'
    assert caught.value.detail == "libxml2.so.2: cannot open shared object file"
