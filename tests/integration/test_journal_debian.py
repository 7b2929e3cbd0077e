"""Debian's PostgreSQL 15, made by pg_createcluster and restarted by pg_ctlcluster, over its DSN.

Its configuration lies in /etc, its postgresql.auto.conf in the data directory, and its tools are Debian's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_servers import free_port
from tests.integration.journal_support import plan_of

from pgdyno.app import wiring
from pgdyno.app.apply import ApplyRequest, apply_plan
from pgdyno.app.revert import RevertRequest, revert
from pgdyno.app.start_check import StartCheck
from pgdyno.journal.access import ServerAccess
from pgdyno.journal.log import read_journal
from pgdyno.journal.query import Connection
from pgdyno.journal.restart import command_restarter
from pgdyno.model.errors import ServerStartError
from pgdyno.server.connection import connect
from pgdyno.server.installation import installation_at

pytestmark = [
    pytest.mark.server,
    pytest.mark.debian,
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("pg_createcluster") is None, reason="apt install postgresql-15"),
    pytest.mark.skipif(os.geteuid() != 0, reason="creating a cluster in /etc/postgresql takes root"),
]

PROGRAMS = Path("/usr/lib/postgresql/15/bin")


@dataclass(frozen=True)
class Cluster:
    """One of Debian's clusters."""

    name: str
    port: int

    @property
    def data_directory(self) -> Path:
        return Path("/var/lib/postgresql/15") / self.name

    @property
    def dsn(self) -> str:
        return f"host=/var/run/postgresql port={self.port} user=postgres dbname=postgres"

    def access(self, journal_directory: Path) -> ServerAccess:
        def open_connection() -> Connection:
            return connect(self.dsn, is_read_only=False)

        restarter = command_restarter(
            ["pg_ctlcluster", "15", self.name, "restart"], open_connection, limit_s=30.0
        )
        return ServerAccess(open_connection, journal_directory, restarter=restarter)

    def state(self) -> tuple[list[Any], list[Any], bytes]:
        """Everything that a revert has to give back."""
        with psycopg.connect(self.dsn) as connection:
            files = connection.execute("SELECT * FROM pg_file_settings ORDER BY seqno").fetchall()
            settings = connection.execute("SELECT * FROM pg_settings ORDER BY name").fetchall()
        return settings, files, (self.data_directory / "postgresql.auto.conf").read_bytes()


def run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of our own, dropped at the end."""
    made = Cluster(f"pgdyno{os.getpid()}", free_port())
    run("pg_createcluster", "15", made.name, "-p", str(made.port), "--", "--auth-local=trust", "--no-sync")
    try:
        run("pg_ctlcluster", "15", made.name, "start")
        yield made
    finally:
        run("pg_dropcluster", "--stop", "15", made.name)


def test_a_plan_is_applied_with_a_restart_and_reverted(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.state()
    access = cluster.access(tmp_path / "journal")
    plan = plan_of(shared_buffers="96MB", work_mem="8MB", max_wal_size="2GB")
    check = StartCheck(installation_at(PROGRAMS), wiring.workspace())
    result = apply_plan(access, ApplyRequest(plan, allow_restart=True, start_check=check))
    assert [(one.key, one.effective) for one in result.outcomes] == [
        ("shared_buffers", "96MB"),
        ("work_mem", "8MB"),
        ("max_wal_size", "2GB"),
    ]
    assert revert(access, RevertRequest(allow_restart=True)).is_complete
    assert cluster.state() == before


def test_a_cluster_that_does_not_come_up_gets_its_old_values_back(cluster: Cluster, tmp_path: Path) -> None:
    before = cluster.state()
    access = cluster.access(tmp_path / "journal")
    plan = plan_of(work_mem="8MB", shared_preload_libraries="no_such_library")
    with pytest.raises(ServerStartError) as caught:
        apply_plan(access, ApplyRequest(plan, allow_restart=True))
    assert caught.value.message == (
        "the server did not come up with the new settings; the former ones are back and it runs"
    )
    assert caught.value.detail is not None
    assert "no_such_library" in caught.value.detail
    assert cluster.state() == before
    assert read_journal(tmp_path / "journal").open == ()
