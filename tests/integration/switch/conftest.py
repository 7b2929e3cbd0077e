"""Servers to switch, and a copy of Debian's programs to switch them to.

The copy lies in a tree of its own, laid out like Debian's, so that it has its own libraries and extensions:
what is taken away there is missing in it, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_debian import VERSION, DebianCluster
from tests.fix_home import pgdyno
from tests.fix_servers import as_unprivileged, running_server
from tests.integration.journal_support import under_pg_ctl
from tests.integration.switch.programs import PROGRAMS, SHARED, Linked, Switch


@pytest.fixture(autouse=True)
def _debian() -> None:
    """Debian's programs are what is switched from."""
    if not (PROGRAMS / "bin/postgres").is_file():
        pytest.skip(f"not installed: {PROGRAMS} (apt install postgresql-{VERSION})")


@pytest.fixture
def other() -> Iterator[Path]:
    """Return the prefix of another PostgreSQL 15, which everybody can run."""
    root = Path(tempfile.mkdtemp(prefix="pgdyno-other-"))
    root.chmod(0o755)
    prefix = root / PROGRAMS.relative_to("/")
    for tree in (PROGRAMS, SHARED):
        shutil.copytree(tree, root / tree.relative_to("/"), symlinks=True, copy_function=linked_copy)
    yield prefix
    shutil.rmtree(root)


def linked_copy(source: str, destination: str) -> str:
    """Give a file a second name, which takes no time; tests take names away and never write into a file."""
    try:
        os.link(source, destination)
    except OSError:  # on another file system
        shutil.copy2(source, destination)
    return destination


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a PGDYNO_HOME that scratch servers can reach."""
    directory = Path(tempfile.mkdtemp(prefix="pgdyno-switch-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def switch(debian15: DebianCluster, home: Path) -> Switch:
    """Runs a command of pgdyno on the cluster; returns its status, output and errors."""

    def run(command: str, *arguments: str, restart: bool = True) -> tuple[int, str, str]:
        how = ("--allow-restart", "--restart-command", f"pg_ctlcluster {VERSION} {debian15.name} restart")
        done = pgdyno(
            command, "--dsn", debian15.dsn, *(how if restart else ()), *arguments, PGDYNO_HOME=str(home)
        )
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def linked() -> Iterator[Linked]:
    """Return a running server that is started through a link."""
    with running_server(PROGRAMS / "bin") as server, under_pg_ctl(server):
        link, restart = server.directory / "current", server.directory / "restart"
        link.symlink_to(PROGRAMS)
        os.lchown(link, 1, 1)
        pg_ctl = " ".join([*as_unprivileged(), f"{link}/bin/pg_ctl -D {server.data_directory}"])
        log = server.directory / "pg_ctl.log"
        restart.write_text(f"#!/bin/sh\n{pg_ctl} stop -m fast\nexec {pg_ctl} start -w -l {log}\n")
        restart.chmod(0o755)
        yield Linked(server, link, restart)
