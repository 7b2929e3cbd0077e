"""A cluster of Debian's own making: ``pg_createcluster`` and ``pg_ctlcluster``, configuration in /etc.

``debian15`` is fresh for one test and dropped afterwards; ``debian15_as_found`` is shared by the tests of a
module, which leave it as they found it, and modules may make a ``debian_cluster`` of their own.
``pg_createcluster`` takes over a data directory that was copied, because initdb takes a second of CPU time.
It needs root and Debian's packages postgresql-15 and postgresql-common; without them its tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.cluster_template import make_cluster
from tests.fix_servers import as_unprivileged, free_port, owned_directory

VERSION = "15"
PROGRAMS = Path("/usr/lib/postgresql", VERSION, "bin")
CONFIGURATION = "shared_buffers = 64MB\n"


@dataclass(frozen=True)
class DebianCluster:
    """A running cluster as ``pg_lsclusters`` shows it."""

    name: str
    directory: Path
    port: int

    @property
    def data_directory(self) -> Path:
        """PGDATA; it holds no postgresql.conf."""
        return self.directory / "data"

    @property
    def configuration_directory(self) -> Path:
        """Where Debian keeps postgresql.conf and conf.d."""
        return Path("/etc/postgresql", VERSION, self.name)

    @property
    def dsn(self) -> str:
        """Database postgres as superuser over the socket, where every role is trusted."""
        return f"host={self.directory} port={self.port} user=postgres dbname=postgres"

    def control(self, action: str) -> None:
        """Start, stop, restart or reload as a Debian administrator does; fails the test if it fails."""
        _run("pg_ctlcluster", VERSION, self.name, action)

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        """Run one statement as superuser, outside a transaction, and return its rows."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def debian15() -> Iterator[DebianCluster]:
    """Return a PostgreSQL 15 of the test's own."""
    with debian_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def debian15_as_found() -> Iterator[DebianCluster]:
    """Return a PostgreSQL 15 for all tests of a module that leave it as they found it."""
    with debian_cluster() as cluster:
        yield cluster


@contextmanager
def debian_cluster() -> Iterator[DebianCluster]:
    """Provide a PostgreSQL 15 started by ``pg_ctlcluster``, with a file of its own in conf.d."""
    if shutil.which("pg_createcluster") is None or not PROGRAMS.is_dir():
        pytest.skip("Debian's PostgreSQL 15 is not installed: apt install postgresql-15")
    if os.geteuid() != 0:
        pytest.skip("pg_createcluster needs root")
    directory = owned_directory(Path(tempfile.gettempdir()), "pgdyno-deb-")
    cluster = DebianCluster(directory.name.removeprefix("pgdyno-").replace("-", "_"), directory, free_port())
    try:
        make_cluster(PROGRAMS, as_unprivileged(), directory)
        _run(
            "pg_createcluster", VERSION, cluster.name, "--datadir", str(cluster.data_directory),
            "--socketdir", str(directory), "--port", str(cluster.port),
            "--logfile", str(directory / "log"), "--start-conf", "manual",
        )  # fmt: skip
        conf = cluster.configuration_directory / "conf.d/site.conf"
        conf.write_text(CONFIGURATION, encoding="utf-8")
        cluster.control("start")
        yield cluster
    finally:
        # pg_dropcluster keeps a configuration directory that holds files of others.
        (cluster.configuration_directory / "conf.d/site.conf").unlink(missing_ok=True)
        subprocess.run(
            ["pg_dropcluster", "--stop", VERSION, cluster.name], capture_output=True, check=False, timeout=250
        )
        shutil.rmtree(directory, ignore_errors=True)  # pg_dropcluster may have removed it with the data


def _run(*command: str) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{' '.join(command)} failed: {done.stdout}{done.stderr}"
