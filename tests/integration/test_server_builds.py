"""PostgreSQL 17 and 18 built from source for real, in the user's own workspace, and started.

Not among the usual tests: building both takes about 12 minutes on two idle cores. What an earlier run has
built is not built again, and stays installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pgdyno.builds.install import InstallRequest, install_from_source
from pgdyno.builds.product.manifest import Manifest
from pgdyno.builds.spec.configure_options import DEFAULT_CFLAGS
from pgdyno.cli.output import Lines
from pgdyno.model.plans.confounding import build_differences, is_confounded, parse_build
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import Instance, initialise
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("PGDYNO_FULL_BUILDS") != "1", reason="full builds are requested: make test-builds"
    ),
    pytest.mark.timeout(3600),
    pytest.mark.server,
]

EXTENSIONS = ("pg_stat_statements", "pg_prewarm", "btree_gin", "pgcrypto", "pgstattuple")


@pytest.fixture(scope="module")
def manifests() -> dict[str, Manifest]:
    """Build what is not there yet, and return the manifests by name."""
    request = InstallRequest((17, 18), DEFAULT_CFLAGS, wants_liburing=True)
    return {one.name: one for one in install_from_source(request, Lines())}


@contextmanager
def running(name: str, **settings: str) -> Iterator[psycopg.Connection]:
    """Start a built server on an empty data directory, as the account that servers run as."""
    place = workspace()
    installation: Installation = find_installation(name, place)
    with place.scratch() as scratch, place.sockets(scratch) as sockets:
        initialise(installation, place.account, scratch / "data")
        server = Instance(installation, place.account, scratch / "data", sockets, 5432, settings)
        server.start()
        try:
            with server.connect() as connection:
                yield connection
        finally:
            server.stop(is_immediate=True)


def ask(connection: psycopg.Connection, sql: Any) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize("name", ["source-17", "source-18"])
def test_a_built_server_starts_and_has_its_extensions(name: str, manifests: dict[str, Manifest]) -> None:
    with running(name, shared_preload_libraries="pg_stat_statements") as connection:
        assert ask(connection, "SHOW server_version") == manifests[name].server_version
        for extension in EXTENSIONS:
            connection.execute(f'CREATE EXTENSION "{extension}"'.encode())
        assert ask(connection, "SELECT count(*) FROM pg_stat_statements") > 0


@pytest.mark.usefixtures("manifests")
def test_io_uring_reads_data_in_the_build_of_18() -> None:
    with running("source-18", io_method="io_uring", shared_buffers="1MB") as connection:
        assert ask(connection, "SHOW io_method") == "io_uring"
        connection.execute("CREATE TABLE t AS SELECT i, repeat('x', 500) FROM generate_series(1, 40000) AS i")
        assert ask(connection, "SELECT count(*) FROM t") == 40000
        # More than fits into shared_buffers: it was read, and reads of every method are counted here.
        reads = ask(connection, "SELECT sum(reads) FROM pg_stat_io WHERE context = 'bulkread'")
        assert reads > 0


@pytest.mark.usefixtures("manifests")
def test_the_two_builds_differ_in_nothing_but_their_version() -> None:
    place = workspace()
    builds = []
    for name in ("source-17", "source-18"):
        text = find_installation(name, place).build_configuration(place.account).or_none()
        assert text is not None
        with running(name) as connection:
            builds.append(parse_build(name, text, version_text=ask(connection, "SELECT version()")))
    differences = build_differences(*builds)
    assert not is_confounded(differences)
    assert [one.sentence for one in differences] == [
        "only source-18 has io_uring, which exists from PostgreSQL 18 on"
    ]
