"""A connection string that leads to a standby while its primary restarts: the standby is never touched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.fix_restarts import LIMIT_S, in_vain
from tests.fix_servers import RealServer, free_port, owned_directory, running_server, wait_until
from tests.integration.journal_support import (
    access_to,
    auto_conf,
    pg_ctl_restart,
    plan_of,
    snapshot,
    under_pg_ctl,
)

from pgdyno.apply.apply_plan import ApplyRequest, apply_plan
from pgdyno.apply.ledger.log import read_journal
from pgdyno.apply.revert import RevertRequest, revert
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connection
from pgdyno.base.errors import ServerStartError, StillChangedError
from pgdyno.postgres.connection.connection import addresses, connect_to_change

pytestmark = pytest.mark.server

ALL = RevertRequest(is_all=True, allow_restart=True)
RESTARTED = {"work_mem": "8MB", "max_wal_size": "2GB", "shared_buffers": "96MB"}


@pytest.fixture(scope="module")
def primary(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin) as started, under_pg_ctl(started):
        yield started


@pytest.fixture(scope="module")
def standby(primary: RealServer) -> Iterator[RealServer]:
    """A copy of the primary that follows it, on the same machine."""
    directory = owned_directory(primary.directory.parent, "pgdyno-test-")
    made = RealServer(primary.bin_directory, directory, free_port())
    try:
        primary.run(
            "pg_basebackup", "-D", str(made.data_directory), "-R", "-c", "fast", "-U", "postgres",
            "-h", str(primary.socket_directory), "-p", str(primary.port),
        )  # fmt: skip
        made.append_configuration(f"port = {made.port}\nunix_socket_directories = '{directory}'\n")
        made.start()
        with under_pg_ctl(made):
            yield made
    finally:
        shutil.rmtree(directory)


@pytest.fixture
def access(primary: RealServer, standby: RealServer, tmp_path: Path) -> ServerAccess:
    """As with --dsn 'host=primary,standby'."""
    dsn = (
        f"host={primary.socket_directory},{standby.socket_directory} port={primary.port},{standby.port}"
        " user=postgres dbname=postgres"
    )
    to_primary = access_to(primary, tmp_path / "journal")
    assert to_primary.restarter is not None

    def either() -> Connection:
        return connect_to_change(dsn)

    return replace(
        to_primary,
        connect=either,
        addresses=addresses(dsn),
        restarter=replace(to_primary.restarter, connect=either),
    )


@pytest.fixture(autouse=True)
def _nothing_is_left(primary: RealServer, standby: RealServer) -> Iterator[None]:
    before = snapshot(primary), snapshot(standby)
    yield
    assert snapshot(primary) - before[0] == []
    assert snapshot(standby) - before[1] == []


def test_the_primary_is_waited_for(primary: RealServer, access: ServerAccess) -> None:
    result = apply_plan(access, ApplyRequest(plan_of(**RESTARTED), allow_restart=True))
    assert result.restarts == 1
    assert primary.execute("SHOW shared_buffers") == [("96MB",)]
    assert revert(access, ALL).is_complete


def test_a_primary_that_does_not_come_up_is_rolled_back_and_not_its_standby(
    standby: RealServer, access: ServerAccess
) -> None:
    before = auto_conf(standby).read_bytes()
    plan = plan_of(work_mem="8MB", shared_preload_libraries="no_such_library")
    with pytest.raises(ServerStartError) as caught:
        apply_plan(access, ApplyRequest(plan, allow_restart=True))
    assert caught.value.message == (
        "the server did not start with the new settings; it runs with the original settings again"
    )
    assert auto_conf(standby).read_bytes() == before
    assert read_journal(access.journal_directory).open == ()


def test_a_standby_that_answers_for_its_primary_does_not_count_as_restarted(
    primary: RealServer, standby: RealServer, access: ServerAccess
) -> None:
    before = auto_conf(standby).read_bytes()
    stop = pg_ctl_restart(primary)
    stop = tuple("stop" if word == "restart" else word for word in stop)
    assert access.restarter is not None
    stopping = replace(access, restarter=replace(access.restarter, command=stop, limit_s=LIMIT_S))
    with in_vain(), pytest.raises(StillChangedError) as caught:
        apply_plan(stopping, ApplyRequest(plan_of(**RESTARTED), allow_restart=True))
    assert caught.value.message.startswith(
        "the server was not up within 60 s of its restart: "
        f"a different server answers at host={standby.socket_directory} port={standby.port}: "
    )
    assert auto_conf(standby).read_bytes() == before
    wait_until(lambda: not primary.takes_connections())
    by_files = replace(access_to(primary, access.journal_directory), data_directory=primary.data_directory)
    assert revert(by_files, ALL).is_complete
