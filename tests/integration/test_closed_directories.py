"""Directories that the account of servers cannot enter are named, before anything fails below them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno

from pgdyno.base.errors import PrivilegeError
from pgdyno.builds.directory import BuildDirectory
from pgdyno.postgres.process.account import current_account
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.workspace import Workspace

pytestmark = pytest.mark.root


@pytest.fixture
def closed(workspace: Workspace) -> Iterator[Path]:
    """A directory of root's that nobody else can enter, below one that all can."""
    path = workspace.root / "closed"
    path.mkdir(mode=0o700)
    yield path
    shutil.rmtree(path)


def message(closed: Path) -> str:
    return f'user "{current_account().name}" cannot enter the directory "{closed}"'


@pytest.mark.server
def test_above_a_home(closed: Path, pg18_bin: Path) -> None:
    done = pgdyno("inspect", "--embedded", PGDYNO_HOME=f"{closed}/below/home")
    assert done.returncode == 1
    first, detail, hint = done.stderr.splitlines()
    assert first == f"pgdyno: ERROR:  {message(closed)}  (PGD-304)"
    assert detail.startswith(
        "DETAIL:  root runs servers, load generators and builds as that user; they need "
        f"{closed}/below/home/installations/embedded-"
    )
    assert hint == (
        "HINT:  choose a directory that it can reach: pgdyno's files are in PGDYNO_HOME, or in "
        f"/var/lib/pgdyno; or give it access: chmod o+x {closed}"
    )


@pytest.mark.server
def test_above_data(closed: Path, workspace: Workspace, installation: Installation) -> None:
    with pytest.raises(PrivilegeError) as caught:
        initialise(installation, workspace.account, closed / "data")
    assert caught.value.message == message(closed)
    assert not (closed / "data").exists()
    server = Instance(installation, workspace.account, closed / "data", closed, 5432)
    with pytest.raises(PrivilegeError) as caught:  # one that was made while it was open
        server.start()
    assert caught.value.message == message(closed)


@pytest.mark.server
def test_above_programs(closed: Path, pg18_bin: Path) -> None:
    (closed / "bin").mkdir()
    (closed / "bin/postgres").symlink_to(pg18_bin / "postgres")
    done = pgdyno("bench", "pgbench-select", "--pg-bin", str(closed / "bin"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == f"pgdyno: ERROR:  {message(closed)}  (PGD-304)"


def test_above_a_build(closed: Path) -> None:
    (closed / "source").mkdir()
    place = BuildDirectory(closed, closed / "installed", current_account())
    with pytest.raises(PrivilegeError) as caught:
        place.give(place.source)
    assert caught.value.message == message(closed)
    assert (closed / "source").owner() == "root"
